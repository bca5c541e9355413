"""A case over its launches: the launch is the unit of replication, the value the median of launches.

Hunold and Carpen-Amarie (TPDS 2016): times vary more between launches of a job than within one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from microbench.record import Better, Metric, Record
from microbench.stats import quantile, samples_needed

LAUNCHES_FOR_INTERVAL = samples_needed(0.5)
WRONG = ("failed", "timeout", "invalid")  # of a record: something did not go as it should have
IMPORTED = "imported"  # the proof of what another suite measured
NOT_OK = ("invalid", "failed", "timeout", "unsupported", "skipped")  # the most telling first


@dataclass(frozen=True)
class Spread:
    """How far apart a metric's launches lie, in its own unit; ``relative`` is (high - low) / value."""

    launches: int
    low: float
    high: float
    relative: float | None


@dataclass(frozen=True)
class Summary:
    """One case over its launches, flat like a record.

    ``metrics`` has the shape of a record's: ``value`` is the median over launches, ``n`` the samples of
    all of them. ``low`` and ``high`` are the interval within the launch where there is one, and a 95 %
    interval over launches from six on; from two to five there is none, and ``spread`` has the range.
    ``launches`` counts those behind the numbers, ``attempted`` all. ``method`` is the first launch's.
    """

    id: str
    benchmark: str
    fabric: str
    recipe: str
    backend: str
    mpi: str
    thread_level: str
    algorithm: str
    mode: str
    workload: str
    device: str
    direction: str
    nbytes: int | None
    dtype: str
    ranks: int
    ranks_per_host: int
    hosts: tuple[str, ...]
    roles: tuple[str, ...]
    reported_ranks: tuple[int, ...]
    placement: str
    proof: str
    emulated: bool
    oversubscribed: bool
    status: str = "ok"
    reason: str = ""
    launches: int = 0
    attempted: int = 0
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    spread: Mapping[str, Spread] = field(default_factory=dict)
    method: Mapping[str, Any] = field(default_factory=dict)

    @property
    def imported(self) -> bool:
        """Whether another suite measured it: it has no proof, no samples, and of one launch no interval."""
        return self.proof == IMPORTED

    @property
    def published(self) -> bool:
        """Whether its numbers may stand under the fabric's name."""
        return self.status == "ok" and self.proof != "disproved"

    def value(self, name: str) -> float | None:
        """The metric's value in base units, or None where it was not measured."""
        metric = self.metrics.get(name)
        return None if metric is None else metric.value

    def ends(self, name: str) -> tuple[float, float] | None:
        """The ends of the metric's interval, or of its range over launches where that is all there is."""
        metric, spread = self.metrics.get(name), self.spread.get(name)
        if metric is None or spread is None:
            return None
        if metric.low is not None and metric.high is not None:
            return metric.low, metric.high
        return (spread.low, spread.high) if spread.launches > 1 else None

    def interval(self, name: str) -> tuple[float, float] | None:
        """The same where it is an interval: a verdict may not rest on the range of a few launches."""
        spread = self.spread.get(name)
        return None if spread is None or ranged(spread.launches) else self.ends(name)


IDENTITY = tuple(f.name for f in fields(Record) if f.name in {g.name for g in fields(Summary)} - {"status",
                 "reason", "metrics", "method"})  # fmt: skip


def basis(launches: int) -> str:
    """What the ends of a metric over so many launches are."""
    if launches <= 1:
        return "within one launch"
    return f"range of {launches} launches" if ranged(launches) else f"over {launches} launches"


def ranged(launches: int) -> bool:
    """Whether so many launches have a range only: more than one, and too few for an interval."""
    return 1 < launches < LAUNCHES_FOR_INTERVAL


def too_few(launches: int) -> str:
    """Why no verdict may rest on so many launches, or nothing.

    Two on each side lie apart by chance in one of three cases, three in one of ten. One has its samples' interval.
    """
    if not ranged(launches):
        return ""
    return f"only a range of {launches} launches, where a verdict takes {LAUNCHES_FOR_INTERVAL}"


def newest(records: Iterable[Record]) -> tuple[Record, ...]:
    """One record per case and launch: a later line, as a resumed run writes it, replaces an earlier one."""
    return tuple({(record.id, record.launch): record for record in records}.values())


def summarise(records: Iterable[Record]) -> tuple[Summary, ...]:
    """A summary per case, in the order in which the cases first appear."""
    cases: dict[str, list[Record]] = {}
    for record in newest(records):
        cases.setdefault(record.id, []).append(record)
    return tuple(_summary(launches) for launches in cases.values())


@dataclass(frozen=True)
class Launches:
    """A metric of a case, one value a launch, in the order of launches."""

    values: tuple[float, ...]
    unit: str
    better: Better


def by_launch(records: Iterable[Record]) -> dict[tuple[str, str], Launches]:
    """The values of every published metric by case and name: what two runs are compared by."""
    found: dict[tuple[str, str], list[Metric]] = {}
    for record in sorted(newest(records), key=lambda r: r.launch):
        if record.status == "ok" and record.proof != "disproved":
            for name, metric in record.metrics.items():
                if metric.value is not None:
                    found.setdefault((record.id, name), []).append(metric)
    return {key: Launches(tuple(float(m.value) for m in metrics if m.value is not None), metrics[0].unit,
                          metrics[0].better) for key, metrics in found.items()}  # fmt: skip


def _summary(records: Sequence[Record]) -> Summary:
    good = behind_the_numbers(records)
    told = good[0] if good else min(records, key=lambda r: NOT_OK.index(r.status))
    merged = {name: _over_launches([r.metrics[name] for r in good if name in r.metrics], _percentile(name))
              for name in dict.fromkeys(name for r in good for name in r.metrics)}  # fmt: skip
    proofs = {r.proof for r in good or records}
    identity = {name: getattr(told, name) for name in IDENTITY} | {
        "proof": proofs.pop() if len(proofs) == 1 else "unknown",
        "emulated": any(r.emulated for r in records),
        "oversubscribed": any(r.oversubscribed for r in good or records),
    }
    return Summary(
        **identity,
        status=told.status,
        reason=told.reason,
        launches=len(good),
        attempted=len(records),
        metrics={name: metric for name, (metric, _) in merged.items()},
        spread={name: spread for name, (_, spread) in merged.items() if spread is not None},
        method=told.method,
    )


def _percentile(name: str) -> bool:
    """Whether a metric is a percentile: ``time_p99``, ``gloo.step_p90``."""
    return name.rpartition("_p")[2].isdigit()


def behind_the_numbers(records: Iterable[Record]) -> list[Record]:
    """The good launches; those whose bytes went elsewhere count only where there are no others."""
    good = [r for r in records if r.status == "ok"]
    return [r for r in good if r.proof != "disproved"] or good


def _over_launches(metrics: Sequence[Metric], whole: bool = False) -> tuple[Metric, Spread | None]:
    """A metric over its launches; one that must be ``whole`` has no value where a launch has none.

    The launches that can tell a percentile are the quick ones: their percentile may lie below the median of all.
    """
    given = [m.value for m in metrics if m.value is not None]
    if whole and given and len(given) < len(metrics):
        absent = next(m for m in metrics if m.value is None)
        note = f"n/a in {len(metrics) - len(given)} of {len(metrics)} launches: {absent.note or 'not measured'}"
        return replace(absent, n=sum(m.n for m in metrics), note=note), None
    n = sum(m.n for m in metrics if m.value is not None or not given)
    first = next((m for m in metrics if m.value is not None), metrics[0])
    if not given:
        return replace(first, n=n, low=None, high=None, note=first.note or "not measured"), None
    if len(given) == 1:
        note = first.note or ("no interval" if first.low is None else basis(1))
        return replace(first, note=note), Spread(1, given[0], given[0], 0.0)
    middle = quantile(given)
    low, high = min(given), max(given)
    relative = (high - low) / abs(middle.value) if middle.value else None
    metric = replace(first, value=middle.value, n=n, low=middle.low, high=middle.high, note=basis(len(given)))
    return metric, Spread(len(given), low, high, relative)
