"""Recipes: the environment that makes one library use one fabric and no other path. Pure.

Only variables that the library in use reads, and always the transport together with the device: a device alone
is ignored in silence where another transport is free to carry the bytes.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from fabrics.model import Fabric, Recipe
from fabrics.recipes import libraries, ofi, ucx
from fabrics.recipes.want import FLAVOURS, LOOPBACK, NoRecipe, Want, devices_of

__all__ = ("FLAVOURS", "LIBRARIES", "LOOPBACK", "TRANSPORTS", "NoRecipe", "SourcedRecipe", "exports", "recipe")

TRANSPORTS = tuple(dict.fromkeys((*ucx.TRANSPORTS, *(name for names in ofi.PROVIDERS.values() for name in names))))
NOT_VERIFIED = "not verified on hardware"
_SOURCES = {
    "openmpi-ob1": "https://docs.open-mpi.org/en/v5.0.x/tuning-apps/networking/tcp.html",
    "impi-ofi": "https://intel.com/content/www/us/en/docs/mpi-library/developer-reference-linux/2021-9/"
    "communication-fabrics-control.html",
    "gloo": "https://docs.pytorch.org/docs/stable/distributed.html",
    "nccl": "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
}


@dataclass(frozen=True)
class SourcedRecipe(Recipe):
    """A recipe with the address of the documentation that says so, and whether it was seen to work on such a fabric."""

    source: str = ""
    verified: bool = False


def recipe(
    fabric: Fabric,
    backend: str,
    flavour: str = "pure",
    host: str | None = None,
    *,
    transport: str | None = None,
    local_rank: int | None = None,
) -> SourcedRecipe:
    """The recipe for ``backend`` on ``fabric``, for one host or, without ``host``, for all alike.

    ``flavour`` ``job`` leaves shared memory to ranks of one host. ``transport`` is UCX's (``rc``, ``ud``, ``dc``) or a
    libfabric provider (``psm2``, ``opx``) where the kind has several. ``local_rank`` picks the device of its rail.
    Raises NoRecipe where there is none, for an unknown backend or flavour, or where the hosts' devices differ and
    ``host`` is not given.
    """
    if backend not in _ENVIRONMENTS:
        raise NoRecipe(f"backend {backend!r}: one of {', '.join(LIBRARIES)}")
    if flavour not in FLAVOURS:
        raise NoRecipe(f"flavour {flavour!r}: one of {', '.join(FLAVOURS)}")
    want = Want(() if fabric.kind == "shm" else devices_of(fabric, host, local_rank), flavour, transport)
    if fabric.kind == "shm" and transport is not None:
        raise NoRecipe(f"transport {transport!r}: shared memory has none to choose")
    if want.loopback and not want.pure:
        raise NoRecipe("lo joins no hosts: a job would send nothing over it")
    env = _ENVIRONMENTS[backend](fabric, want)
    verified = not fabric.rdma and backend != "nccl"
    return SourcedRecipe(fabric.name, flavour, backend, env, _source(fabric, backend, env.get("FI_PROVIDER")), verified)


def _source(fabric: Fabric, backend: str, provider: str | None) -> str:
    if provider is not None:
        return ofi.SOURCES[provider]
    if backend == "openmpi" and not fabric.rdma:
        return _SOURCES["openmpi-ob1"]
    return _SOURCES.get(backend, ucx.SOURCE)


def exports(found: SourcedRecipe) -> list[str]:
    """Its variables as lines for a shell, and as comments what must be known beside them, and where that stands."""
    lines = [f"export {name}={shlex.quote(value)}" for name, value in found.env.items()]
    if found.backend.startswith("openmpi") and (others := [n for n in found.env if not n.startswith("OMPI_MCA_")]):
        lines.append(f"# to other hosts: mpirun {' '.join(f'-x {name}' for name in others)}")
    return [*lines, *([] if found.verified else [f"# {NOT_VERIFIED}"]), f"# source: {found.source}"]


_ENVIRONMENTS: dict[str, libraries.Library] = {
    "mpich": libraries.mpich,
    "mpich-ucx": libraries.mpich_ucx,
    "mpich-ofi": libraries.mpich_ofi,
    "openmpi": libraries.openmpi,
    "openmpi-ob1": libraries.openmpi_ob1,
    "openmpi-ucx": libraries.openmpi_ucx,
    "openmpi-ofi": libraries.openmpi_ofi,
    "impi-ofi": libraries.impi_ofi,
    "gloo": libraries.gloo,
    "nccl": libraries.nccl,
}
LIBRARIES = tuple(_ENVIRONMENTS)
