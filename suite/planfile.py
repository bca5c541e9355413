"""Plan files: what a tier measures, as TOML. The tiers are plan files themselves, in ``suite/plans``.

``[allreduce]`` is a section; ``[[allreduce]]`` may stand several times, with other sizes for other rank counts.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from fabrics import textfile
from fabrics.errors import UserError
from microbench import sync
from microbench.device import CPU, DEVICES
from microbench.dtypes import dtype, elements
from microbench.registry import BLOCKING, LIBRARY, MPI, Benchmark, Registry
from microbench.sizes import parse_sizes
from microbench.stats import FEWEST_LAUNCHES
from suite.arguments import LONGEST_S
from training import workload

TIERS = ("quick", "default", "full")
_WAYS = ("modes", "algorithms", "backends")
_BRIEFEST_S = 0.001
_MOST_LAUNCHES = 1000
_COMMON = ("fabrics", "budget_s", "min_iterations", "max_iterations", "precision", "deadline_s")


@dataclass(frozen=True)
class Section:
    """What to measure of one benchmark; empty ``fabrics`` means every usable one.

    ``precision`` is the relative half width at which measuring stops, 0 where it never stops early; ``deadline_s`` is
    when a case is given up, None where the plan computes it; ``sync`` names how the ranks of a collective start
    together, empty where the job chooses. ``modes`` are of the MPI library's own algorithm; ``devices`` tell whose
    memory the buffers are in.
    """

    benchmark: str
    sizes: tuple[int, ...] = ()
    dtypes: tuple[str, ...] = ()
    ranks: tuple[int, ...] = (2,)
    fabrics: tuple[str, ...] = ()
    models: tuple[Mapping[str, Any], ...] = ()
    budget_s: float = 0.5
    min_iterations: int = 10
    max_iterations: int = 1000
    precision: float = 0.0
    deadline_s: float | None = None
    sync: str = ""
    modes: tuple[str, ...] = (BLOCKING,)
    algorithms: tuple[str, ...] = (LIBRARY,)
    backends: tuple[str, ...] = (MPI,)
    devices: tuple[str, ...] = (CPU,)


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
    return parse(textfile.read(path, "plan"), str(path), registry)


def parse(text: str, name: str, registry: Registry) -> PlanFile:
    """Parse a plan strictly: an unknown key is an error that names it and what is allowed."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"plan {name}: {error}") from None
    common = {key: data.pop(key) for key in list(data) if not _is_section(data[key])}
    launches = common.pop("launches", FEWEST_LAUNCHES)
    if isinstance(launches, bool) or not isinstance(launches, int) or not 1 <= launches <= _MOST_LAUNCHES:
        raise UserError(
            f"plan {name}: launches = {launches!r}: launches takes a whole number from 1 to {_MOST_LAUNCHES}"
        )
    for key, value in common.items():
        if key not in _COMMON:
            raise UserError(f"plan {name}: at its top there is no {key!r}: allowed are launches, {', '.join(_COMMON)}")
        _value(f"plan {name}", key, value)
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
    where = f"plan {plan}: [{benchmark}]"
    try:
        known = registry.get(benchmark)
    except KeyError as error:
        raise UserError(f"plan {plan}: {error.args[0]}") from None
    for key in values:
        if key not in _allowed(known):
            raise UserError(f"{where} has no {key!r}: allowed are {', '.join(_allowed(known))}")
    usual: dict[str, Any] = {"precision": known.precision}
    usual |= {"dtypes": (known.usual_dtype,)} if known.dtypes else {}
    section = Section(benchmark, **(usual | {key: _value(where, key, value) for key, value in values.items()}))
    if known.sized and not section.sizes:
        raise UserError(f'{where} needs sizes, such as sizes = "8:4M"')
    if benchmark == "train" and not section.models:
        raise UserError(f'{where} needs models, such as models = [{{ model = "resnet50", batch = 16 }}]')
    if section.min_iterations > section.max_iterations:
        raise UserError(f"{where}: min_iterations {section.min_iterations} is above {section.max_iterations}, the most")
    _check_ranks(plan, section, known)
    _check_ways(where, section, known)
    _check_types(where, section)
    _check_deadline(where, section)
    return section


def _allowed(known: Benchmark) -> tuple[str, ...]:
    """The keys of a benchmark's section: what it has."""
    if known.name == "train":
        return ("models", *_COMMON)
    sized = (*(("sizes",) if known.sized else ()), *(("dtypes", "devices") if known.dtypes else ()))
    ways = (way for way in _WAYS if len(getattr(known, way)) > 1)
    return (*sized, "ranks", *(("sync",) if known.synchronised else ()), *ways, *_COMMON)


def _value(where: str, key: str, value: Any) -> Any:
    reader, takes = _READERS[key]
    try:
        return reader(value)
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    except (TypeError, ValueError, AttributeError):
        raise UserError(f"{where}: {key} = {value!r}: {key} takes {takes}") from None


def _check_types(where: str, section: Section) -> None:
    """Sizes are whole numbers of elements of every type."""
    for name in section.dtypes:
        for nbytes in section.sizes:
            try:
                elements(nbytes, dtype(name))
            except UserError as error:
                raise UserError(f"{where}: {error}") from None


def _check_deadline(where: str, section: Section) -> None:
    """A case is not given up while its budget lasts, be that the section's or a model's own."""
    budgets = [float(model.get("budget_s", section.budget_s)) for model in section.models] or [section.budget_s]
    if section.deadline_s is not None and section.deadline_s < max(budgets):
        raise UserError(
            f"{where}: deadline_s = {section.deadline_s:g} is below budget_s = {max(budgets):g}:"
            " a case would be given up while it measures"
        )


def _check_ranks(plan: str, section: Section, known: Benchmark) -> None:
    for ranks in section.ranks:
        if known.exact_ranks and ranks != known.exact_ranks:
            raise UserError(f"plan {plan}: [{section.benchmark}] takes exactly {known.exact_ranks} ranks, not {ranks}")
        if known.pairs and ranks % 2:
            raise UserError(f"plan {plan}: [{section.benchmark}] pairs its ranks: {ranks} is an odd number of them")
        if ranks < known.min_ranks:
            raise UserError(f"plan {plan}: [{section.benchmark}] needs {known.min_ranks} ranks or more, not {ranks}")


def _check_ways(where: str, section: Section, known: Benchmark) -> None:
    """Modes, algorithms and backends are those that the benchmark has."""
    for way in _WAYS:
        has = getattr(known, way)
        for name in getattr(section, way):
            if has and name not in has:
                raise UserError(f"{where} has no {name!r} among its {way}: {', '.join(has)}")


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(value)
    return value


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not _BRIEFEST_S <= value <= LONGEST_S:
        raise ValueError(value)
    return float(value)


def _some(value: Any, of: Callable[[Any], Any]) -> tuple[Any, ...]:
    if not isinstance(value, list) or not value:
        raise ValueError(value)
    return tuple(of(v) for v in value)


def _share(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise ValueError(value)
    return float(value)


def _sync(value: Any) -> str:
    """Empty for ``auto``, which is what a section has that does not say."""
    if value not in sync.NAMES:
        raise ValueError(value)
    return "" if value == sync.NAMES[0] else str(value)


def _name(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _device(value: Any) -> str:
    if value not in DEVICES:
        raise ValueError(value)
    return str(value)


def _sizes(value: Any) -> tuple[int, ...]:
    return parse_sizes(_name(value))


def _model(value: Any) -> dict[str, Any]:
    """A model's options, whole and checked, with its own budget if it has one."""
    options = {key: option for key, option in dict(value).items() if key != "budget_s"}
    checked = asdict(workload.parse(options, workload.IMAGE_PX))
    return checked | ({"budget_s": _value("a model", "budget_s", value["budget_s"])} if "budget_s" in value else {})


_READERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "sizes": (_sizes, 'a text such as "8:4M"'),
    "dtypes": (lambda value: _some(value, lambda name: dtype(_name(name)).name), 'a list such as ["float32"]'),
    "ranks": (lambda value: _some(value, _whole), "a list of whole numbers such as [2, 3]"),
    "fabrics": (lambda value: _some(value, _name), 'a list such as ["shm"]'),
    "models": (lambda value: _some(value, _model), 'a list such as [{ model = "resnet50", batch = 16 }]'),
    "budget_s": (_seconds, f"seconds, from {_BRIEFEST_S:g} to {LONGEST_S:g} (a day)"),
    "deadline_s": (_seconds, f"seconds, from {_BRIEFEST_S:g} to {LONGEST_S:g} (a day)"),
    "min_iterations": (_whole, "a whole number from 1 on"),
    "max_iterations": (_whole, "a whole number from 1 on"),
    "precision": (_share, "a half width from 0 (never stop early) to below 1, such as 0.01"),
    "modes": (lambda value: _some(value, _name), 'a list such as ["blocking", "nonblocking"]'),
    "algorithms": (lambda value: _some(value, _name), 'a list such as ["library", "ring"]'),
    "backends": (lambda value: _some(value, _name), 'a list such as ["mpi", "gloo"]'),
    "devices": (lambda value: _some(value, _device), f"a list of {', '.join(DEVICES)}"),
    "sync": (_sync, f"one of {', '.join(sync.NAMES)}; for several ways write a [[section]] for each"),
}
