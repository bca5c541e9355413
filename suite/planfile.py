"""Plan files: what a tier measures, as TOML. The tiers are plan files themselves, in ``suite/plans``.

``[allreduce]`` is a section; ``[[allreduce]]`` may stand several times, with other sizes for other rank counts.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any

from collectives.overlap.options import AUTO, REGISTERS
from fabrics import textfile
from fabrics.errors import UserError
from fabrics.model import Fabric
from microbench.device import CPU
from microbench.dtypes import dtype, elements
from microbench.registry import BLOCKING, LIBRARY, MPI, TRAIN, Benchmark, Kind, Registry
from microbench.stats import FEWEST_LAUNCHES
from suite import flows, overlaps
from suite.placement import FEWEST_HOSTS, within_host
from suite.planvalues import READERS
from training.characterize.kernels import NAMES
from training.setup import Setup

TIERS = ("quick", "default", "full")
NETWORKS = "networks"  # among a section's fabrics: all that join hosts
_WAYS = ("modes", "algorithms", "backends")
_OVERLAPS = ("compare", "fractions", "skews", "outstanding", "compute", "placement")
_OFFLOADS = ("workers", "chunk", "dpu_memory", "dpus")
_MOST_LAUNCHES = 1000
_COMMON = ("fabrics", "budget_s", "min_iterations", "max_iterations", "precision", "deadline_s")


@dataclass(frozen=True)
class Section:
    """What to measure of one benchmark; empty ``fabrics`` means every usable one, ``networks`` all that join hosts.

    ``precision`` is the relative half width at which measuring stops, 0 where it never stops early; ``deadline_s`` is
    when a case is given up, None where the plan computes it; ``sync`` names how the ranks of a collective start
    together, empty where the job chooses. ``modes`` are of the MPI library's own algorithm and ``algorithms`` of MPI,
    so that ways stand beside each other and make no product; ``devices`` tell whose memory the buffers are in, a case
    for each. ``kind`` and ``pairs`` are the benchmark's.

    Where DPUs take part (``kind`` of the benchmark), ``ranks`` counts those on hosts, empty: one on every host that has
    a DPU; ``dpus`` is how many DPUs there are, 0: that of each of these hosts. What overlaps a collective with compute
    is swept by ``fractions``, ``skews``, ``outstanding``, ``compute`` and ``workers``
    (:class:`collectives.overlap.options.Options`); without ``compare`` it has the usual modes. ``kernels`` are what
    DPUs are characterized by; ``flows`` are what the solver solves, empty: the usual one.
    """

    benchmark: str
    sizes: tuple[int, ...] = ()
    dtypes: tuple[str, ...] = ()
    ranks: tuple[int, ...] = (2,)
    fabrics: tuple[str, ...] = ()
    models: tuple[Mapping[str, Any], ...] = ()
    flows: tuple[Mapping[str, Any], ...] = ()
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
    kind: Kind = ""
    pairs: bool = False
    compare: tuple[str, ...] = ()
    fractions: tuple[float, ...] = (1.0,)
    skews: tuple[float, ...] = (0.0,)
    outstanding: tuple[int, ...] = (1,)
    compute: tuple[str, ...] = (REGISTERS,)
    placement: str = AUTO
    workers: tuple[int, ...] = (1,)
    chunk: int | None = None
    dpu_memory: int | None = None
    dpus: int = 0
    kernels: tuple[str, ...] = NAMES

    @property
    def named(self) -> tuple[str, ...]:
        """The fabrics that it names one by one."""
        return tuple(name for name in self.fabrics if name != NETWORKS)

    def takes(self, fabric: Fabric) -> bool:
        """Whether it is for this fabric, too."""
        joins = NETWORKS in self.fabrics and not within_host(fabric)
        return not self.fabrics or joins or fabric.name in self.fabrics

    @property
    def overlaps(self) -> bool:
        """Whether its cases overlap a collective with compute."""
        return self.kind in ("offload", "overlap")

    @property
    def with_dpus(self) -> bool:
        """Whether DPUs take part."""
        return self.kind in ("offload", "dpu")


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
        if key not in allowed(known):
            raise UserError(f"{where} has no {key!r}: allowed are {', '.join(allowed(known))}")
    usual: dict[str, Any] = {"precision": known.precision, "kind": known.kind, "pairs": known.pairs}
    usual |= {"ranks": ()} if known.kind == "offload" else {}
    usual |= {"dtypes": (known.usual_dtype,)} if known.dtypes else {}
    section = Section(benchmark, **(usual | {key: _value(where, key, value) for key, value in values.items()}))
    if known.sized and not section.sizes:
        raise UserError(f'{where} needs sizes, such as sizes = "8:4M"')
    if known.kind == TRAIN and not section.models:
        raise UserError(f'{where} needs models, such as models = [{{ model = "resnet50", batch = 16 }}]')
    if section.min_iterations > section.max_iterations:
        raise UserError(f"{where}: min_iterations {section.min_iterations} is above {section.max_iterations}, the most")
    _check_ranks(plan, section, known)
    _check_ways(where, section, known)
    _check_types(where, section)
    _check_deadline(where, section)
    _check_overlap(where, section)
    _check_training(where, section)
    return section


def allowed(known: Benchmark) -> tuple[str, ...]:
    """The keys of a benchmark's section: what it has."""
    if known.kind == TRAIN:
        return ("models", "ranks", *_COMMON)
    if known.kind == flows.KIND:
        return ("flows", "ranks", *_COMMON)
    sized = (*(("sizes",) if known.sized else ()), *(("dtypes",) if known.dtypes else ()))
    sized += ("devices",) if known.on_devices else ()
    ways = (way for way in _WAYS if len(getattr(known, way)) > 1)
    overlap = (*(_OVERLAPS if known.overlaps else ()), *(_OFFLOADS if known.kind == "offload" else ()))
    kernels = ("kernels",) if known.kind == "dpu" else ()
    return (*sized, "ranks", *(("sync",) if known.synchronised else ()), *ways, *overlap, *kernels, *_COMMON)


def _value(where: str, key: str, value: Any) -> Any:
    reader, takes = READERS[key]
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
    """A case is not given up while its budget lasts, be that the section's or a model's or a flow's own."""
    named = (*section.models, *section.flows)
    budgets = [float(one.get("budget_s", section.budget_s)) for one in named] or [section.budget_s]
    if section.deadline_s is not None and section.deadline_s < max(budgets):
        raise UserError(
            f"{where}: deadline_s = {section.deadline_s:g} is below budget_s = {max(budgets):g}:"
            " a case would be given up while it measures"
        )


def _check_overlap(where: str, section: Section) -> None:
    """Every combination of a section's options can be, and there are hosts for all of its DPUs."""
    if not section.overlaps:
        return
    try:
        list(overlaps.combinations(section))
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    if section.ranks and section.dpus > min(section.ranks):
        raise UserError(f"{where}: dpus = {section.dpus} is above ranks = {min(section.ranks)}: a DPU is beside a host")


def _check_training(where: str, section: Section) -> None:
    """With strong scaling, every number of ranks divides the batch of all."""
    for model, ranks in product(section.models, section.ranks):
        try:
            Setup.of({key: value for key, value in model.items() if key != "budget_s"}).batch_of(ranks)
        except UserError as error:
            raise UserError(f"{where}: {error}") from None


def _check_ranks(plan: str, section: Section, known: Benchmark) -> None:
    where = f"plan {plan}: [{section.benchmark}]"
    fewest, of = (FEWEST_HOSTS, "host ranks") if known.dpus else (known.min_ranks, "ranks")
    for ranks in section.ranks:
        if known.exact_ranks and not known.dpus and ranks != known.exact_ranks:
            raise UserError(f"{where} takes exactly {known.exact_ranks} ranks, not {ranks}")
        if ranks < fewest:
            raise UserError(f"{where} needs {fewest} {of} or more, not {ranks}")


def _check_ways(where: str, section: Section, known: Benchmark) -> None:
    """Modes, algorithms and backends are those that the benchmark has, and none is given that could make no case."""
    for way in _WAYS:
        has = getattr(known, way)
        for name in getattr(section, way):
            if has and name not in has:
                raise UserError(f"{where} has no {name!r} among its {way}: {', '.join(has)}")
    needless = (
        ("modes", BLOCKING, LIBRARY, "algorithms", "are of the library's own algorithm"),
        ("modes", BLOCKING, MPI, "backends", "are of MPI's own calls"),
        ("algorithms", LIBRARY, MPI, "backends", "are schedules of MPI's messages"),
    )
    for way, usual, needed, of, why in needless:
        if getattr(section, way) != (usual,) and needed not in getattr(section, of):
            told = f"{where}: {way} {why}, which its {of} leave out"
            raise UserError(f"{told}: add {needed!r} to {of}, or leave out {way}")
