"""The one table of benchmarks: a module registers its own when it is imported."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fabrics.errors import UserError
from microbench.case import Case, Outcome

if TYPE_CHECKING:
    from microbench.job import Job

Run = Callable[["Job", Case], Outcome]
Kind = Literal["", "overlap", "offload", "dpu", "train", "cfd"]
TRAIN: Kind = "train"

MODULES = (
    "microbench.pt2pt",
    "microbench.message_rate",
    "microbench.loggp",
    "microbench.reducing",
    "collectives.library",
    "collectives.overlap.bench",
    "training.bench",
    "training.cfd.bench",
    "training.characterize.bench",
)

BLOCKING, LIBRARY, MPI = "blocking", "library", "mpi"  # the usual mode, algorithm and backend


def case_mode(name: str) -> str:
    """What a case says of a mode of that name: nothing of the usual one, so that its id stays as it was."""
    return "" if name == BLOCKING else name


def _once(ranks: int) -> int:
    return 1


@dataclass(frozen=True)
class Benchmark:
    """A benchmark's name, what it needs, and the function that every rank of a job runs.

    ``dtypes`` is empty where it has none; ``sized`` tells whether it takes message sizes; ``exact_ranks``
    is 0 where any number from ``min_ranks`` on will do. ``precision`` is the half width of the median's interval,
    relative to it, at which measuring stops unless a plan says otherwise. ``synchronised`` tells whether its ranks
    start together, in one of the ways of :mod:`microbench.sync`. ``pairs`` tells that half of the ranks send to the
    other half, so that they must be even in number. ``modes`` names the ways in which it can be called, the usual one
    first, and is empty where there is but one; ``algorithms`` and ``backends`` likewise. ``largest_buffer`` tells,
    by the number of ranks, how many times a size the largest buffer of a rank is. ``kind`` is empty but for what
    overlaps a collective with compute on hosts alone (``overlap``) or on hosts and DPUs (``offload``), what
    characterizes DPUs (``dpu``), what trains (``train``), and the solver (``cfd``): plans, placement and ``bench``
    go by it.
    """

    name: str
    summary: str
    run: Run
    min_ranks: int = 2
    exact_ranks: int = 0
    sized: bool = True
    dtypes: tuple[str, ...] = ()
    precision: float = 0.025
    synchronised: bool = False
    pairs: bool = False
    modes: tuple[str, ...] = ()
    algorithms: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    largest_buffer: Callable[[int], int] = _once
    kind: Kind = ""

    @property
    def dpus(self) -> bool:
        """Whether some of its ranks run on DPUs."""
        return self.kind in ("offload", "dpu")

    @property
    def on_devices(self) -> bool:
        """Whether its buffers may be in device memory: it has some, and measures nothing beside MPI's own calls."""
        return bool(self.dtypes) and not self.kind

    @property
    def overlaps(self) -> bool:
        """Whether it overlaps a collective with compute, and takes the options of that."""
        return self.kind in ("offload", "overlap")

    @property
    def usual_dtype(self) -> str:
        """The type that is measured where none is named: bytes between two ranks, float32 in collectives, or none."""
        if not self.dtypes:
            return ""
        return "int8" if self.pairs or self.exact_ranks == 2 else "float32"


class Registry:
    """Benchmarks by name."""

    def __init__(self) -> None:
        self._table: dict[str, Benchmark] = {}

    def add(self, benchmark: Benchmark) -> Benchmark:
        """Enter ``benchmark``; a name that another one has raises ValueError."""
        if self._table.setdefault(benchmark.name, benchmark) is not benchmark:
            raise ValueError(f"two benchmarks are named {benchmark.name!r}")
        return benchmark

    def get(self, name: str) -> Benchmark:
        """The benchmark of that name; KeyError tells the names there are."""
        if name not in self._table:
            raise KeyError(f"unknown benchmark {name!r}: one of {', '.join(sorted(self._table))}")
        return self._table[name]

    def __iter__(self) -> Iterator[Benchmark]:
        return iter(sorted(self._table.values(), key=lambda b: b.name))


def load(modules: Iterable[str] = MODULES) -> Registry:
    """The benchmarks of ``modules``, each of which exports ``BENCHMARKS``; UserError for one that is missing."""
    registry = Registry()
    for name in modules:
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise UserError(f"no module {error.name!r}, where benchmarks are to come from") from None
        for benchmark in module.BENCHMARKS:
            registry.add(benchmark)
    return registry
