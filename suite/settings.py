"""The environment of each rank of a job: the recipes of its libraries, for its host and its rail. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fabrics.model import Fabric
from fabrics.recipes import LIBRARIES, NoRecipe, recipe

Environment = Mapping[str, str]


@dataclass(frozen=True)
class Settings:
    """The variables that all ranks share, and those that differ: ``sets`` of them, and which one each rank has."""

    shared: Environment
    sets: tuple[Environment, ...] = ()
    of: tuple[int, ...] = ()

    @property
    def by_rank(self) -> str:
        """What a worker reads of those that differ; empty where none does."""
        return json.dumps({"sets": self.sets, "of": self.of}, separators=(",", ":")) if self.sets else ""


def own(text: str, rank: int) -> dict[str, str]:
    """A rank's variables of what :attr:`Settings.by_rank` says."""
    data = json.loads(text) if text else {"sets": [], "of": []}
    return dict(data["sets"][data["of"][rank]]) if rank < len(data["of"]) else {}


def settings(fabric: Fabric, backends: Iterable[str], flavour: str, hosts: Sequence[str]) -> Settings:
    """The recipes of ``backends`` on ``fabric`` for one rank per entry of ``hosts``.

    Raises NoRecipe where a library has none: a plan leaves out what such a library would measure.
    """
    found: dict[tuple[tuple[str, ...], int], dict[str, str]] = {}
    keys: list[tuple[tuple[str, ...], int]] = []
    placed: dict[str, int] = {}
    for host in hosts:
        local = placed.get(host, 0)
        placed[host] = local + 1
        key = (tuple(fabric.devices.get(host, ())), local % len(fabric.rails) if fabric.rails else 0)
        keys.append(key)
        if key not in found:
            found[key] = _environment(fabric, backends, flavour, host, local if fabric.rails else None)
    return split(list(found.values()), [list(found).index(key) for key in keys])


def _environment(
    fabric: Fabric, backends: Iterable[str], flavour: str, host: str, local_rank: int | None
) -> dict[str, str]:
    env: dict[str, str] = {}
    where = host if host in fabric.devices else None
    for backend in backends:
        env.update(recipe(fabric, backend, flavour, where, local_rank=local_rank).env)
    return env


def split(environments: Sequence[Environment], of: Sequence[int]) -> Settings:
    """What all share of a few environments, and what is left of each; ``of`` says which one each rank has."""
    first = environments[0]
    shared = {n: v for n, v in first.items() if all(env.get(n) == v for env in environments)}
    sets = tuple({n: v for n, v in env.items() if n not in shared} for env in environments)
    return Settings(shared, sets, tuple(of)) if any(sets) else Settings(shared)


def why_none(fabric: Fabric, backend: str, flavour: str, hosts: Sequence[str]) -> str:
    """Why ``backend`` has no recipe for ranks on these hosts, or nothing."""
    try:
        settings(fabric, (backend,), flavour, hosts)
    except NoRecipe as error:
        return str(error)
    return ""


def able(fabric: Fabric, backends: Iterable[str], flavour: str, hosts: Sequence[str]) -> list[str]:
    """Those of ``backends`` that have a recipe here; what compares several leaves out the others, and tells why."""
    return [name for name in backends if name in LIBRARIES and not why_none(fabric, name, flavour, hosts)]
