"""What libraries read and what they pass over in silence, and what a user's own settings get wrong. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Collection, Iterable, Mapping
from fnmatch import fnmatchcase

from fabrics.recipes import ucx
from fabrics.recipes.want import split_port

_OFI = ("mpich-ofi", "openmpi-ofi", "impi-ofi")
_OPENMPI = ("openmpi-ob1", "openmpi-ucx", "openmpi-ofi")
READ_BY: Mapping[str, tuple[str, ...]] = {  # by prefix; the longest that fits counts
    "UCX_": ("mpich-ucx", "openmpi-ucx"),
    "FI_": _OFI,
    "HFI_": _OFI,
    "PSM2_": _OFI,
    "MPIR_CVAR_": ("mpich-ucx", "mpich-ofi", "impi-ofi"),
    "I_MPI_": ("impi-ofi",),
    "OMPI_MCA_": _OPENMPI,
    "OMPI_MCA_btl": ("openmpi-ob1",),
    "OMPI_MCA_pml_ucx_": ("openmpi-ucx",),
    "OMPI_MCA_mtl": ("openmpi-ofi",),
    "GLOO_": ("gloo",),
    "NCCL_": ("nccl",),
}
_TORCH = ("gloo", "nccl")  # their variables may stand beside an MPI's, and an MPI's beside theirs
_CHOICES = {  # the variable by which a library chooses its stack, and what each stack wants there
    "MPIR_CVAR_CH4_NETMOD": {"mpich-ucx": "ucx", "mpich-ofi": "ofi"},
    "OMPI_MCA_pml": {"openmpi-ob1": "ob1", "openmpi-ucx": "ucx", "openmpi-ofi": "cm"},
}
_PROVIDERS = frozenset(
    (
        "tcp",
        "udp",
        "sockets",
        "shm",
        "verbs",
        "psm",
        "psm2",
        "psm3",
        "opx",
        "efa",
        "cxi",
        "usnic",
        "mlx",
        "ucx",
        "net",
        "lnx",
        "sm2",
        "mrail",
        "off_coll",
        "ofi_rxm",
        "ofi_rxd",
        "ofi_mrail",
    )
)
_Environment = Mapping[str, str]


def in_use(backend: str, environment: _Environment) -> str:
    """The stack that ``mpich`` or ``openmpi`` runs on with these settings; any other backend names its own."""
    if backend == "mpich":
        return "mpich-ofi" if environment.get("MPIR_CVAR_CH4_NETMOD") == "ofi" else "mpich-ucx"
    if backend == "openmpi":
        return {"ucx": "openmpi-ucx", "cm": "openmpi-ofi"}.get(environment.get("OMPI_MCA_pml", ""), "openmpi-ob1")
    return backend


def readers(variable: str) -> tuple[str, ...] | None:
    """The stacks that read a variable, None for one that chooses no transport."""
    fitting = [prefix for prefix in READ_BY if variable.startswith(prefix)]
    return READ_BY[max(fitting, key=len)] if fitting else None


def ignored(environment: _Environment, backend: str) -> dict[str, str]:
    """The variables that ``backend`` passes over in silence with these settings, and why, or what else they need."""
    stack = in_use(backend, environment)
    found: dict[str, str] = {}
    for name in environment:
        reading = readers(name)
        if reading is None or (stack in _TORCH) != any(reader in _TORCH for reader in reading):
            continue
        if stack not in reading:
            found[name] = f"{stack} does not read it"
        elif why := _unmet(name, environment):
            found[name] = why
    return found


def check_settings(environment: _Environment, backend: str, devices_here: Collection[str]) -> list[str]:
    """What a user's settings get wrong, one line each: devices that are not here, variables that nothing reads.

    ``devices_here`` names this host's interfaces (``eth0``) and RDMA devices with their ports (``mlx5_0:1``).
    """
    useless = ignored(environment, backend)
    stack = in_use(backend, environment)
    lines = [f"{name}={environment[name]}: {why}" for name, why in useless.items()]
    for name, value in environment.items():
        reading = readers(name)
        if name in useless or reading is None or stack not in reading:
            continue
        lines += [f"{name}={value}: {wrong}" for wrong in _wrong(name, value, stack, devices_here)]
    return [*lines, *_unopened(environment, stack)]


def elsewhere(environment: _Environment, stacks: Collection[str], devices_here: Collection[str]) -> dict[str, str]:
    """The variables that name a fabric which these settings do not lead to, and why, whatever the library says of it.

    ``stacks`` are those that the library may run on (:func:`in_use`). A variable names a fabric by a device or a
    provider: one that none of them reads, or whose every device is absent, leaves the choice to the library.
    """
    found: dict[str, str] = {}
    for name, value in environment.items():
        reading = readers(name)
        if reading is None or name not in (*_DEVICES, "FI_PROVIDER") or any(reader in _TORCH for reader in reading):
            continue
        if not any(stack in reading for stack in stacks):
            found[name] = f"{' and '.join(stacks)} does not read it"
        elif name in _DEVICES and not any(_DEVICES[name](value, entry, devices_here) for entry in value.split(",")):
            found[name] = f"no such device here; here are {', '.join(sorted(devices_here)) or 'none'}"
        elif name == "FI_PROVIDER" and not any(entry in _PROVIDERS for entry in _listed(value)):
            found[name] = "libfabric has no such provider"
    return found


def _listed(value: str) -> list[str]:
    """The providers that FI_PROVIDER names or, after ^, excludes."""
    return value.removeprefix("^").replace(";", ",").split(",")


def _wrong(name: str, value: str, stack: str, devices_here: Collection[str]) -> list[str]:
    """What is wrong with the value of a variable that is read."""
    wanted = _CHOICES.get(name, {}).get(stack)
    if wanted is not None and value != wanted:
        return [f"{stack} needs {wanted}"]
    if name == "FI_PROVIDER":
        return [f"libfabric has no provider {entry!r}" for entry in _listed(value) if entry not in _PROVIDERS]
    if name not in _DEVICES:
        return []
    unknown = [entry for entry in value.split(",") if not _DEVICES[name](value, entry, devices_here)]
    here = ", ".join(sorted(devices_here)) or "none"
    return [f"no such device here: {', '.join(unknown)}; here are {here}"] if unknown else []


def _unopened(environment: _Environment, stack: str) -> list[str]:
    """Settings without which Open MPI does not open what was asked for."""
    if stack == "openmpi-ucx" and "tcp" in environment.get("UCX_TLS", "").split(","):
        lists = ("OMPI_MCA_pml_ucx_tls", "OMPI_MCA_pml_ucx_devices")
        missing = [name for name in lists if environment.get(name) != "any"]
        return [f"{name} is not any: pml ucx does not open for TCP" for name in missing]
    if stack == "openmpi-ofi" and environment.get("FI_PROVIDER", "").partition(";")[0] == "tcp":
        included = environment.get("OMPI_MCA_mtl_ofi_provider_include", "")
        return (
            [] if "tcp" in included.split(",") else ["OMPI_MCA_mtl_ofi_provider_include lacks tcp: mtl ofi excludes it"]
        )
    return []


def _unmet(name: str, environment: _Environment) -> str:
    """Why a variable has no effect without another, empty where that is set."""
    for prefix, (met, why) in _NEEDS.items():
        if name.startswith(prefix) and not met(environment):
            return why
    return ""


def _provider(wanted: str) -> Callable[[_Environment], bool]:
    def met(environment: _Environment) -> bool:
        value = environment.get("FI_PROVIDER", "")
        return not value.startswith("^") and wanted in value.replace(";", ",").split(",")

    return met


def _has_rdma(environment: _Environment) -> bool:
    transports = environment.get("UCX_TLS", "").split(",")
    return any(transport in ucx.TRANSPORTS for transport in transports)


def _has_btl_tcp(environment: _Environment) -> bool:
    return environment.get("OMPI_MCA_pml") == "ob1" and "tcp" in environment.get("OMPI_MCA_btl", "").split(",")


_FREE = "is ignored where another transport is free to carry the bytes"
_NEEDS: Mapping[str, tuple[Callable[[_Environment], bool], str]] = {  # by prefix
    "UCX_NET_DEVICES": (lambda env: "UCX_TLS" in env, f"{_FREE}: set UCX_TLS, such as UCX_TLS=tcp,self, too"),
    "UCX_IB_": (_has_rdma, "no transport of UCX_TLS is RDMA"),
    "FI_TCP_": (_provider("tcp"), f"{_FREE}: set FI_PROVIDER=tcp too"),
    "FI_VERBS_": (_provider("verbs"), f"{_FREE}: set FI_PROVIDER=verbs;ofi_rxm too"),
    "FI_EFA_": (_provider("efa"), f"{_FREE}: set FI_PROVIDER=efa too"),
    "FI_CXI_": (_provider("cxi"), f"{_FREE}: set FI_PROVIDER=cxi too"),
    "FI_OPX_": (_provider("opx"), f"{_FREE}: set FI_PROVIDER=opx too"),
    "FI_PSM2_": (_provider("psm2"), f"{_FREE}: set FI_PROVIDER=psm2 too"),
    "HFI_": (_provider("psm2"), f"{_FREE}: set FI_PROVIDER=psm2 too"),
    "PSM2_": (_provider("psm2"), f"{_FREE}: set FI_PROVIDER=psm2 too"),
    "OMPI_MCA_btl_tcp_": (_has_btl_tcp, f"{_FREE}: set OMPI_MCA_pml=ob1 and OMPI_MCA_btl=self,tcp too"),
    "OMPI_MCA_pml_ucx_": (lambda env: env.get("OMPI_MCA_pml") == "ucx", "set OMPI_MCA_pml=ucx too"),
    "OMPI_MCA_mtl": (lambda env: env.get("OMPI_MCA_pml") == "cm", "set OMPI_MCA_pml=cm too"),
    "NCCL_IB_HCA": (lambda env: env.get("NCCL_IB_DISABLE", "0") == "0", "NCCL_IB_DISABLE turns InfiniBand off"),
    "NCCL_IB_GID_INDEX": (lambda env: env.get("NCCL_IB_DISABLE", "0") == "0", "NCCL_IB_DISABLE turns InfiniBand off"),
}


def _exact(_value: str, entry: str, here: Iterable[str]) -> bool:
    return entry in here


def _ucx_device(_value: str, entry: str, here: Iterable[str]) -> bool:
    return entry == "all" or any(fnmatchcase(device, entry.removeprefix("^")) for device in here)


def _prefix_of_name(_value: str, entry: str, here: Iterable[str]) -> bool:
    return any(split_port(device)[0].startswith(entry) for device in here)


def _name_or_all(_value: str, entry: str, here: Iterable[str]) -> bool:
    return entry == "all" or any(split_port(device)[0] == entry for device in here)


def _interface_or_network(_value: str, entry: str, here: Iterable[str]) -> bool:
    """A network in CIDR notation counts as here: its addresses are not known to us."""
    if entry in here:
        return True
    try:
        ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False
    return "/" in entry


def _nccl_device(value: str, entry: str, here: Iterable[str]) -> bool:
    """``=`` before the list makes names exact, else they are prefixes; ``^`` excludes, and need not be here."""
    if value.startswith("^"):
        return True
    bare = entry.removeprefix("=")
    if value.startswith("="):
        return any(bare in (device, split_port(device)[0]) for device in here)
    return any(device.startswith(bare) for device in here)


_DEVICES: Mapping[str, Callable[[str, str, Collection[str]], bool]] = {
    "UCX_NET_DEVICES": _ucx_device,
    "FI_TCP_IFACE": _exact,
    "FI_VERBS_DEVICE_NAME": _prefix_of_name,
    "FI_VERBS_IFACE": _prefix_of_name,
    "FI_EFA_IFACE": _name_or_all,
    "FI_CXI_DEVICE_NAME": _name_or_all,
    "OMPI_MCA_btl_tcp_if_include": _interface_or_network,
    "GLOO_SOCKET_IFNAME": _exact,
    "NCCL_SOCKET_IFNAME": _nccl_device,
    "NCCL_IB_HCA": _nccl_device,
}
