"""What every chapter looks at: a run, its summaries, and the questions that several chapters ask."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from microbench.record import Metric, Record
from reports.load import RunData, mapping
from reports.summary import Summary, behind_the_numbers, newest, summarise
from reports.units import MB_PER_S, Unit, count
from reports.units import rate as rate_text

if TYPE_CHECKING:
    from reports.limits.model import Judgement

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)

MESSAGE_RATE = "message_rate"
POINT_TO_POINT = ("latency", "bandwidth", "bibw", MESSAGE_RATE)
LOGGP, REDUCE_LOCAL = "loggp", "reduce_local"  # what models are fitted to, and no tables of their own
TRAINING = "train"
OFFLOAD, OVERLAP = "offload_", "overlap_"  # how the names of benchmarks begin that overlap collectives with compute
CFD = "cfd"
DPU = "dpu"  # the benchmark that characterizes DPUs
MEMORY_BYTES_PER_S = 10e12  # of a host: the fastest accelerator's HBM has 8 TB/s, the DDR5 of two sockets below 2 TB/s


@dataclass(frozen=True)
class Finding:
    """A sentence that the numbers support, and the numbers (base units) that it is made of.

    ``short`` tells whether it stands in the first lines of the report too; in JSON it always does.
    """

    chapter: int
    text: str
    values: Mapping[str, Any] = field(default_factory=dict)
    short: bool = True


@dataclass(frozen=True)
class Chapter:
    """A chapter of the report: its findings, and its blocks of text."""

    number: int
    title: str
    blocks: tuple[str, ...]
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class View:
    """A run with its summaries, and the unit in which rates in bytes are printed; made once, read by all chapters.

    ``judgement`` is there where limits are given.
    """

    data: RunData
    summaries: tuple[Summary, ...]
    byte_rate: Unit = MB_PER_S
    judgement: Judgement | None = None

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """One record per case and launch."""
        return newest(self.data.records)

    @cached_property
    def _launches(self) -> Mapping[str, Sequence[Record]]:
        cases = grouped(self.records, lambda r: r.id)
        return {case: behind_the_numbers(records) for case, records in cases.items()}

    def launches(self, s: Summary) -> Sequence[Record]:
        """The records behind a summary's numbers, one a launch."""
        return self._launches.get(s.id, ())

    @cached_property
    def published(self) -> tuple[Summary, ...]:
        """The summaries whose numbers may stand under their fabric's name, by fabric as in the run."""
        good = [s for s in self.summaries if s.published]
        return tuple(sorted(good, key=lambda s: self.order(s.fabric)))

    @cached_property
    def fabrics(self) -> Mapping[str, Mapping[str, Any]]:
        """Every fabric by name, in the run's order; one that only records name has no description."""
        listed = {str(f["name"]): f for f in self.data.fabrics if f.get("name")}
        return listed | {r.fabric: {} for r in self.data.records if r.fabric not in listed}

    @cached_property
    def _order(self) -> Mapping[str, int]:
        return {name: place for place, name in enumerate(self.fabrics)}

    def order(self, fabric: str) -> int:
        """The fabric's place in every table."""
        return self._order.get(fabric, len(self._order))

    def rate(self, fabric: str) -> float | None:
        """The declared rate in bit/s."""
        return number(self.fabrics.get(fabric, {}).get("rate_bits_per_s"))

    @cached_property
    def emulated(self) -> tuple[str, ...]:
        """The names of the emulated fabrics."""
        marked = {r.fabric for r in self.data.records if r.emulated}
        return tuple(name for name, f in self.fabrics.items() if f.get("emulated") or name in marked)

    @cached_property
    def networks(self) -> tuple[str, ...]:
        """The fabrics that join hosts and have published numbers, the slowest first.

        By declared rate; those that declare none come first, by the bandwidth measured.
        """
        measured = {s.fabric for s in self.published if not alone(s)}
        names = [n for n in self.fabrics if n in measured and not self.inside_a_host(n)]
        return tuple(sorted(names, key=lambda n: (self.rate(n) or 0.0, self.peak(n))))

    def inside_a_host(self, fabric: str) -> bool:
        """Whether the fabric's bytes never leave a host: shared memory and loopback."""
        known = self.fabrics.get(fabric, {})
        devices = {d for names in mapping(known.get("devices")).values() for d in names or ()}
        return known.get("kind") == "shm" or fabric == "shm" or devices == {"lo"}

    def peak(self, fabric: str) -> float:
        """The highest one-way bandwidth measured, bytes/s; 0 where none was."""
        found = self.stream(fabric)
        return 0.0 if found is None else found.value("bandwidth") or 0.0

    def stream(self, fabric: str) -> Summary | None:
        """The one-way stream of the highest bandwidth measured; None where none was."""
        found = [s for s in self.of("bandwidth") if s.fabric == fabric and s.value("bandwidth") is not None]
        return max(found, key=lambda s: s.value("bandwidth") or 0.0, default=None)

    @cached_property
    def reference(self) -> str:
        """The fabric that others are set against: the slowest network, else the first fabric measured."""
        names = [*self.networks, *(s.fabric for s in self.published)]
        return names[0] if names else ""

    @property
    def why_reference(self) -> str:
        """What makes a fabric the reference, in words."""
        if len(self.networks) < 2:
            return "the only network measured" if self.networks else "the first fabric measured, as none is a network"
        declared = self.rate(self.reference)
        if declared:
            return f"the network of the lowest declared rate, {rate_text(declared)}"
        return "of the networks without a declared rate the one of the lowest bandwidth measured"

    def of(self, *benchmarks: str) -> list[Summary]:
        """The published summaries of these benchmarks."""
        return [s for s in self.published if s.benchmark in benchmarks]

    def absent(self, *benchmarks: str) -> str:
        """Why a chapter has nothing to show of these benchmarks."""
        told = [s for s in self.summaries if not benchmarks or s.benchmark in benchmarks]
        if not told:
            return "Nothing to show: the run has no such case on disk."
        tally: dict[str, int] = {}
        for s in told:
            what = "disproved" if s.status == "ok" else s.status
            tally[what] = tally.get(what, 0) + 1
        counts = ", ".join(f"{n} {what}" for what, n in tally.items())
        return f"Nothing to show: no such case has numbers ({counts}); chapter 8 has the reasons."


def view(data: RunData, byte_rate: Unit = MB_PER_S) -> View:
    """The run with its summaries."""
    return View(data, summarise(data.records), byte_rate)


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """The items by ``key``, in the order in which the keys first appear."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def setup(s: Summary) -> tuple[str | int, ...]:
    """All that must agree for two fabrics to be compared, the size apart."""
    return (s.benchmark, s.ranks, s.recipe, s.backend, s.mpi, s.algorithm, s.mode, s.workload, s.device,
            s.direction, s.dtype)  # fmt: skip


def setup_text(s: Summary) -> str:
    """The setup in words: ``uni, 2 ranks, pure recipe, mpi, int8``."""
    parts = (s.direction, how_many(s.ranks), s.recipe and f"{s.recipe} recipe",
             s.backend, s.algorithm and f"{s.algorithm} algorithm", s.mode, s.dtype,
             "" if s.device == "cpu" else s.device)  # fmt: skip
    return ", ".join(part for part in parts if part)


def kind(s: Summary | Record) -> str:
    """What a case is, but for its size and fabric: ``allreduce 2 ranks``, or the model that is trained."""
    if s.benchmark == TRAINING and s.workload:
        return s.workload
    return f"{s.benchmark} {how_many(s.ranks)}" + (f" ({s.workload})" if s.workload else "")


def how_many(ranks: int) -> str:
    """``1 rank``, ``4 ranks``; what was imported may not tell."""
    return count(ranks, "rank") if ranks else "unknown ranks"


def impossible(metrics: Mapping[str, Metric], hosts: Sequence[str]) -> tuple[str, ...]:
    """The names of rates that no memory could carry: they tell a wrong unit or a clock that is broken, not a fabric.

    All bytes of a message are read from some memory once at least.
    """
    most = MEMORY_BYTES_PER_S * max(1, len(set(hosts)))
    return tuple(name for name, m in metrics.items() if m.unit == "bytes/s" and m.value is not None and m.value > most)


def alone(s: Summary | Record) -> bool:
    """Whether one rank ran it: it moved nothing between ranks, so it tells nothing of a fabric."""
    return s.ranks == 1


def ways(s: Summary) -> int:
    """2 where both directions are counted, else 1."""
    return 2 if s.direction == "bi" or s.benchmark == "bibw" else 1


def links(s: Summary) -> int:
    """How many links its bytes may take at once: one, but for pairs of ranks on several hosts one of each."""
    if s.benchmark != MESSAGE_RATE:
        return 1
    half = len(s.hosts) // 2
    crossing = [pair for pair in zip(s.hosts[:half], s.hosts[half:], strict=False) if len(set(pair)) > 1]
    return max(1, min((len(set(side)) for side in zip(*crossing, strict=True)), default=1))


def number(data: Any) -> float | None:
    """``data`` as a finite float, or None."""
    good = isinstance(data, int | float) and not isinstance(data, bool) and math.isfinite(data)
    return float(data) if good else None


def own_warnings(r: Record) -> list[str]:
    """What the benchmark itself warned of."""
    told = r.method.get("warnings")
    return [text for text in told if isinstance(text, str)] if isinstance(told, list | tuple) else []


def jobs_of(v: View, fabric: str) -> list[Mapping[str, Any]]:
    """The jobs that ran over a fabric, but for those that were tried again since."""
    return [job for job in v.data.jobs if job.get("fabric") == fabric and not job.get("retried")]
