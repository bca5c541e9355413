"""Recipes for a user's own jobs: lines to copy into a shell, and the same as JSON. Pure.

Where a fabric's devices differ by host, or its rails by rank, there is a recipe for each, and it says for which.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fabrics.lab.config import format_rate
from fabrics.model import Fabric
from fabrics.recipes import FLAVOURS, LIBRARIES, NoRecipe, SourcedRecipe, exports, recipe

MEANING: Mapping[str, str] = {
    FLAVOURS[0]: "one rank a host, and no other path left",
    FLAVOURS[1]: "shared memory within a host, this fabric between hosts",
}
PREAMBLE = """\
# Export these in the shell that starts the job. Hydra's mpiexec and srun pass on what is exported; Open MPI's mpirun
# passes the variables of OMPI_MCA_, and others by -x NAME. fabricbench run sets its own, and needs none of this."""


@dataclass(frozen=True)
class Asked:
    """Which libraries, in which flavour, and by which transport where a kind of fabric has several."""

    backends: tuple[str, ...] = LIBRARIES
    flavour: str = FLAVOURS[0]
    transport: str | None = None


@dataclass(frozen=True)
class Told:
    """A recipe, or the reason why there is none, for these hosts and local ranks; none named, for all alike."""

    backend: str
    flavour: str
    found: SourcedRecipe | None
    reason: str = ""
    hosts: tuple[str, ...] = ()
    local_ranks: tuple[int, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON data."""
        known: dict[str, Any] = {"env": None, "reason": self.reason, "source": "", "verified": False}
        if self.found is not None:
            known |= {"env": dict(self.found.env), "source": self.found.source, "verified": self.found.verified}
        where = {"hosts": self.hosts, "local_ranks": self.local_ranks}
        return {"backend": self.backend, "flavour": self.flavour, **where, **known}


def recipes(fabric: Fabric, asked: Asked) -> list[Told]:
    """What every library asked for needs on a fabric, in the order of :data:`fabrics.recipes.LIBRARIES`."""
    return [told for backend in asked.backends for told in _of(fabric, backend, asked)]


def _of(fabric: Fabric, backend: str, asked: Asked) -> Iterator[Told]:
    """Hosts that need the same on the same ranks together."""
    groups: dict[tuple[Any, ...], tuple[list[str], list[Told]]] = {}
    for host in fabric.devices or ("",):
        own = list(_by_rank(fabric, backend, asked, host))
        key = tuple((told.reason, _items(told.found), told.local_ranks) for told in own)
        groups.setdefault(key, ([], own))[0].append(host)
    for hosts, own in groups.values():
        yield from (replace(told, hosts=tuple(hosts) if len(groups) > 1 else ()) for told in own)


def _by_rank(fabric: Fabric, backend: str, asked: Asked, host: str) -> Iterator[Told]:
    """What a host's local ranks need, those with the same together."""
    groups: dict[tuple[Any, ...], tuple[SourcedRecipe | None, str, list[int]]] = {}
    for rank in range(len(fabric.rails)) or (None,):
        found, reason = _try(fabric, backend, asked, host, rank)
        groups.setdefault((reason, _items(found)), (found, reason, []))[2].extend([] if rank is None else [rank])
    for found, reason, ranks in groups.values():
        yield Told(backend, asked.flavour, found, reason, (), tuple(ranks) if len(groups) > 1 else ())


def _items(found: SourcedRecipe | None) -> tuple[tuple[str, str], ...]:
    return () if found is None else tuple(found.env.items())


def _try(fabric: Fabric, backend: str, asked: Asked, host: str, rank: int | None) -> tuple[SourcedRecipe | None, str]:
    try:
        where = host or None
        return recipe(fabric, backend, asked.flavour, where, transport=asked.transport, local_rank=rank), ""
    except NoRecipe as error:
        return None, str(error)


def as_text(fabrics: Iterable[Fabric], asked: Asked) -> str:
    """Blocks of a shell's lines, each under a comment that says for what; a comment alone where there is no recipe."""
    blocks = [f"{PREAMBLE}\n# Flavour {asked.flavour}: {MEANING[asked.flavour]}."]
    for fabric in fabrics:
        blocks.append("\n".join(_heading(fabric)))
        blocks += ["\n".join(_block(told, fabric)) for told in recipes(fabric, asked)]
    return "\n\n".join(blocks)


def _heading(fabric: Fabric) -> Iterator[str]:
    rate = "" if fabric.rate_bits_per_s is None else format_rate(fabric.rate_bits_per_s)
    words = [fabric.kind, rate, "EMULATED" if fabric.emulated else ""]
    yield f"# === {fabric.name}: {', '.join(word for word in words if word)}"
    if fabric.note:
        yield f"# note: {fabric.note}"
    if fabric.unusable:
        yield f"# not measured here: {fabric.unusable}"


def _block(told: Told, fabric: Fabric) -> Iterator[str]:
    where = [f"on {' '.join(told.hosts)}"] if told.hosts else []
    where += [f"local rank {_ranks(told.local_ranks, len(fabric.rails))}"] if told.local_ranks else []
    title = ", ".join([f"# {told.backend} on {fabric.name}", *where])
    if told.found is None:
        yield f"{title}: none: {told.reason}"
        return
    yield title
    yield from exports(told.found)


def _ranks(ranks: Sequence[int], of: int) -> str:
    """``0, 2 of each 4``: rails are dealt out again and again."""
    return f"{', '.join(map(str, ranks))} of each {of}"
