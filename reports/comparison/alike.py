"""Which cases of two sides belong together, and what makes two of them apples and oranges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reports.comparison.sides import Side, SideCase
from reports.units import count, size
from reports.view import grouped

TRAITS: Mapping[str, str] = {
    "proof": "proof", "ranks": "ranks", "ranks_per_host": "ranks a host", "hosts": "hosts",
    "thread_level": "thread level", "pages": "page policy", "recipe": "recipe", "dtype": "dtype", "device": "device",
    "direction": "direction", "sync": "start of the ranks", "emulated": "emulated", "oversubscribed": "oversubscribed",
}  # fmt: skip
"""What must be the same, and what it is called; the library's version need not: it may be what is compared."""

_SAME = ("benchmark", "fabric", "backend", "algorithm", "mode", "workload", "nbytes")
HOSTS = "hosts"


@dataclass(frozen=True)
class Refused:
    """Two cases that are not compared, and in what they differ."""

    case: str
    beside: str
    differences: tuple[str, ...]


@dataclass(frozen=True)
class Pairing:
    """The cases of two sides: those that are compared, those refused, and those that one side alone has."""

    pairs: tuple[tuple[SideCase, SideCase], ...]
    refused: tuple[Refused, ...]
    only_old: tuple[str, ...]
    only_new: tuple[str, ...]


def differences(old: SideCase, new: SideCase, other_hosts: bool = False) -> tuple[str, ...]:
    """In what two cases differ that must agree: ``thread level: single against multiple``."""
    traits = [(key, name) for key, name in TRAITS.items() if not (other_hosts and key == HOSTS)]
    found = ((name, old.fields.get(key), new.fields.get(key)) for key, name in traits)
    return tuple(f"{name}: {_told(a)} against {_told(b)}" for name, a, b in found if _plain(a) != _plain(b))


def pair(old: Side, new: Side, other_hosts: bool = False) -> Pairing:
    """Pair the cases of the same id, and of the others those that differ only in what must agree.

    The latter are refused, beside the one that they differ least from.
    """
    both = [(old.cases[case], new.cases[case]) for case in old.cases if case in new.cases]
    told = [(a, b, differences(a, b, other_hosts)) for a, b in both]
    left = grouped([found for case, found in new.cases.items() if case not in old.cases], _key)
    lone, refused = [], [Refused(a.id, b.id, why) for a, b, why in told if why]
    for a in (found for case, found in old.cases.items() if case not in new.cases):
        if not (near := left.get(_key(a))):
            lone.append(a.id)
            continue
        b = min(near, key=lambda b: len(differences(a, b, other_hosts)))
        near.remove(b)
        refused.append(Refused(a.id, b.id, differences(a, b, other_hosts) or (f"name: {a.id} against {b.id}",)))
    only_new = tuple(b.id for found in left.values() for b in found)
    return Pairing(tuple((a, b) for a, b, why in told if not why), tuple(refused), tuple(lone), only_new)


def words(case: SideCase) -> str:
    """A case for people: ``allreduce 2 ranks 64 KiB on eth10g (ring)``."""
    f = case.fields
    what = [str(f.get("benchmark")), str(f.get("workload") or ""), count(int(f.get("ranks") or 0), "rank")]
    nbytes = f.get("nbytes")
    ways = [str(f[key]) for key, usual in (("algorithm", "library"), ("backend", "mpi"), ("mode", ""))
            if f.get(key) and f[key] != usual]  # fmt: skip
    told = " ".join(part for part in (*what, size(nbytes) if isinstance(nbytes, int) else "") if part)
    return f"{told} on {f.get('fabric')}" + (f" ({', '.join(ways)})" if ways else "")


def _key(case: SideCase) -> tuple[Any, ...]:
    return tuple(case.fields.get(name) for name in _SAME)


def _plain(value: object) -> object:
    return list(value) if isinstance(value, list | tuple) else value


def _told(value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if value not in ("", None) else "not recorded"
