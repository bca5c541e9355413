"""Plan files: what a tier measures, as TOML. The tiers are plan files themselves, in ``suite/plans``.

``[allreduce]`` is a section; ``[[allreduce]]`` may stand several times, with other sizes for other rank counts.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from fabrics.errors import UserError
from microbench.dtypes import dtype
from microbench.registry import Benchmark, Registry
from microbench.sizes import parse_sizes

TIERS = ("quick", "default", "full")


@dataclass(frozen=True)
class Section:
    """What to measure of one benchmark; empty ``fabrics`` means every usable one."""

    benchmark: str
    sizes: tuple[int, ...] = ()
    dtypes: tuple[str, ...] = ()
    ranks: tuple[int, ...] = (2,)
    fabrics: tuple[str, ...] = ()
    models: tuple[Mapping[str, Any], ...] = ()
    budget_s: float = 0.5
    min_iterations: int = 10
    max_iterations: int = 1000


@dataclass(frozen=True)
class PlanFile:
    """A parsed plan: its name, launches, and a section per benchmark."""

    name: str
    launches: int
    sections: tuple[Section, ...] = field(default_factory=tuple)


def read_tier(tier: str, registry: Registry) -> PlanFile:
    """The plan of a tier."""
    text = resources.files("suite").joinpath("plans", f"{tier}.toml").read_text("utf-8")
    return parse(text, tier, registry)


def read_plan(path: Path, registry: Registry) -> PlanFile:
    """A user's plan; UserError says where it cannot be meant."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read plan {path}: {getattr(error, 'strerror', None) or error}") from None
    return parse(text, str(path), registry)


def parse(text: str, name: str, registry: Registry) -> PlanFile:
    """Parse a plan strictly: an unknown key is an error that names it and what is allowed."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"plan {name}: {error}") from None
    common = {key: data.pop(key) for key in list(data) if not _is_section(data[key])}
    launches = common.pop("launches", 1)
    if not isinstance(launches, int) or launches < 1:
        raise UserError(f"plan {name}: launches = {launches!r}: a whole number from 1 on is allowed")
    tables = [(key, table) for key, value in data.items() for table in (value if isinstance(value, list) else [value])]
    sections = tuple(_section(name, key, {**common, **table}, registry) for key, table in tables)
    if not sections:
        raise UserError(f"plan {name} measures nothing: add a section such as [latency]")
    return PlanFile(name, launches, sections)


def _is_section(value: Any) -> bool:
    """A table, or an array of tables: ``[latency]``, ``[[allreduce]]``."""
    return isinstance(value, dict) or (
        isinstance(value, list) and bool(value) and all(isinstance(v, dict) for v in value)
    )


def _section(plan: str, benchmark: str, values: dict[str, Any], registry: Registry) -> Section:
    try:
        known = registry.get(benchmark)
    except KeyError as error:
        raise UserError(f"plan {plan}: {error.args[0]}") from None
    for key, value in values.items():
        if key not in _READERS:
            raise UserError(f"plan {plan}: [{benchmark}] has no {key!r}: allowed are {', '.join(_READERS)}")
        try:
            values[key] = _READERS[key](value)
        except (TypeError, ValueError, AttributeError):
            raise UserError(f"plan {plan}: [{benchmark}] {key} = {value!r} is not what {key} takes") from None
    if known.sized and not values.get("sizes"):
        raise UserError(f'plan {plan}: [{benchmark}] needs sizes, such as sizes = "8:4M"')
    section = Section(benchmark, **values)
    _check_ranks(plan, section, known)
    return section


def _check_ranks(plan: str, section: Section, known: Benchmark) -> None:
    for ranks in section.ranks:
        if known.exact_ranks and ranks != known.exact_ranks:
            raise UserError(f"plan {plan}: [{section.benchmark}] takes exactly {known.exact_ranks} ranks, not {ranks}")
        if ranks < known.min_ranks:
            raise UserError(f"plan {plan}: [{section.benchmark}] needs {known.min_ranks} ranks or more, not {ranks}")


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(value)
    return value


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise ValueError(value)
    return float(value)


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise ValueError(value)
    return tuple(value)


_READERS: dict[str, Callable[[Any], Any]] = {
    "sizes": parse_sizes,
    "dtypes": lambda value: tuple(dtype(name).name for name in _names(value)),
    "ranks": lambda value: tuple(_whole(v) for v in value),
    "fabrics": _names,
    "models": lambda value: tuple(dict(v) for v in value),
    "budget_s": _seconds,
    "min_iterations": _whole,
    "max_iterations": _whole,
}
