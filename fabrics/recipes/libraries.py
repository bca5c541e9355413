"""Each library's own settings around UCX's and libfabric's: which of the two, and what within a host. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fabrics.model import Fabric
from fabrics.recipes import ofi, ucx
from fabrics.recipes.want import LOOPBACK, NoRecipe, Want, gid_index

Library = Callable[[Fabric, Want], Mapping[str, str]]
_MCA = "OMPI_MCA_"
_OWN_COLLECTIVES = {f"{_MCA}coll": "^hcoll,ucc"}  # either would open devices of its own choice


def _uses_ofi(fabric: Fabric, want: Want) -> bool:
    """Whether UCX, the usual choice, has no way there."""
    return fabric.kind not in ucx.KINDS or want.loopback


def mpich(fabric: Fabric, want: Want) -> Mapping[str, str]:
    """MPICH as built: its default netmod, ucx, and ofi where ucx has no way."""
    return mpich_ofi(fabric, want) if _uses_ofi(fabric, want) else ucx.variables(fabric, want)


def mpich_ucx(fabric: Fabric, want: Want) -> Mapping[str, str]:
    """MPICH with the ucx netmod."""
    return {"MPIR_CVAR_CH4_NETMOD": "ucx", **_nolocal(fabric, want), **ucx.variables(fabric, want)}


def mpich_ofi(fabric: Fabric, want: Want) -> Mapping[str, str]:
    """MPICH with the ofi netmod; for shared memory it still opens a provider, which then is held to lo."""
    if fabric.kind == "shm":
        return {"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": LOOPBACK}
    return {"MPIR_CVAR_CH4_NETMOD": "ofi", **_nolocal(fabric, want), **ofi.variables(fabric, want)}


def _nolocal(fabric: Fabric, want: Want) -> dict[str, str]:
    """Keeps MPICH's own shared memory out of the way of ranks that it takes for neighbours."""
    return {"MPIR_CVAR_NOLOCAL": "1"} if want.pure and fabric.kind != "shm" else {}


def openmpi(fabric: Fabric, want: Want) -> Mapping[str, str]:
    """Open MPI: ob1 for TCP and shared memory, ucx for InfiniBand and RoCE, ofi for the others."""
    if not fabric.rdma:
        return openmpi_ob1(fabric, want)
    return (openmpi_ofi if _uses_ofi(fabric, want) else openmpi_ucx)(fabric, want)


def openmpi_ob1(fabric: Fabric, want: Want) -> Mapping[str, str]:
    """Open MPI's own TCP and shared memory."""
    if fabric.rdma:
        raise NoRecipe(f"openmpi-ob1 has no transport for {fabric.kind}: openmpi-ucx or openmpi-ofi may")
    if want.transport is not None:
        raise NoRecipe(f"transport {want.transport!r}: openmpi-ob1 has none to choose")
    common = {f"{_MCA}pml": "ob1", **_OWN_COLLECTIVES}
    if fabric.kind == "shm":
        return {**common, f"{_MCA}btl": "self,sm"}
    btl = "self,tcp" if want.pure else "self,sm,tcp"
    return {**common, f"{_MCA}btl": btl, f"{_MCA}btl_tcp_if_include": ",".join(want.devices)}


def openmpi_ucx(fabric: Fabric, want: Want) -> Mapping[str, str]:
    """Open MPI over UCX; unless both lists are ``any``, it opens for InfiniBand alone."""
    lists = {f"{_MCA}pml_ucx_tls": "any", f"{_MCA}pml_ucx_devices": "any"}
    return {f"{_MCA}pml": "ucx", **lists, **_OWN_COLLECTIVES, **ucx.variables(fabric, want)}


def openmpi_ofi(fabric: Fabric, want: Want) -> Mapping[str, str]:
    """Open MPI over libfabric, beside which it has no shared memory; tcp is excluded unless it is named."""
    if fabric.kind == "shm" or want.loopback:
        raise NoRecipe("openmpi-ofi carries nothing within a host: openmpi-ob1 does")
    name = ofi.provider(fabric, want)
    if not want.pure and name not in ofi.SHARES_MEMORY:
        raise NoRecipe(f"openmpi-ofi has no shared memory beside {name}: it has the pure flavour alone")
    mtl = {f"{_MCA}mtl": "ofi", f"{_MCA}mtl_ofi_provider_include": name.partition(";")[0]}
    return {f"{_MCA}pml": "cm", **mtl, **_OWN_COLLECTIVES, **ofi.variables(fabric, want)}


def impi_ofi(fabric: Fabric, want: Want) -> Mapping[str, str]:
    """Intel MPI."""
    if fabric.kind == "shm":
        return {"I_MPI_FABRICS": "shm"}
    return {"I_MPI_FABRICS": "ofi" if want.pure else "shm:ofi", **ofi.variables(fabric, want)}


def gloo(fabric: Fabric, want: Want) -> Mapping[str, str]:
    """torch's gloo, which has TCP alone."""
    if fabric.kind == "shm":
        raise NoRecipe("gloo has no shared-memory transport")
    if fabric.rdma:
        raise NoRecipe(f"gloo speaks TCP, not {fabric.kind}")
    if want.transport is not None:
        raise NoRecipe(f"transport {want.transport!r}: gloo has none to choose")
    return {"GLOO_SOCKET_IFNAME": ",".join(want.devices)}


def nccl(fabric: Fabric, want: Want) -> Mapping[str, str]:
    """NCCL's sockets and InfiniBand; ``=`` before the names makes it match them exactly."""
    if fabric.kind not in ("shm", "tcp", "ib", "roce"):
        raise NoRecipe(f"nccl reaches {fabric.kind} through a plugin, which these variables do not choose")
    if want.transport is not None:
        raise NoRecipe(f"transport {want.transport!r}: nccl has none to choose")
    if fabric.kind == "shm":
        return {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "0"}
    alone = {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"} if want.pure else {}
    names = "=" + ",".join(want.devices)
    if fabric.kind == "tcp":
        return {"NCCL_NET": "Socket", "NCCL_IB_DISABLE": "1", "NCCL_SOCKET_IFNAME": names, **alone}
    env = {"NCCL_NET": "IB", "NCCL_IB_DISABLE": "0", "NCCL_IB_HCA": names, **alone}
    if fabric.kind == "roce" and (index := gid_index(fabric, want.devices)) is not None:
        env["NCCL_IB_GID_INDEX"] = str(index)
    return env
