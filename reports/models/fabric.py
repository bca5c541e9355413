"""What is fitted of each fabric: costs of messages, of their ends, and of a reduction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from microbench.stats import Interval
from reports.models import hockney, loggp
from reports.models.hockney import Hockney
from reports.models.least_squares import line
from reports.models.loggp import LogGP, Probes
from reports.models.points import interval, of_summaries
from reports.summary import Summary
from reports.view import LOGGP, REDUCE_LOCAL, View, alone, grouped, setup

LEAST_S = 1e-9  # an overhead that came out below is none that a clock can tell
PROBES = ("time", "burst", "send_overhead", "receive_overhead")


@dataclass(frozen=True, eq=False)
class Fitted:
    """The models of one fabric; each is None where it was not measured, and ``why`` says what else is missing.

    ``two_way`` is what is left of a stream's rate where the other way is busy too, 1 where that was not measured.
    """

    fabric: str
    hockney: Hockney | None = None
    loggp: LogGP | None = None
    two_way: float = 1.0
    reduce_s_per_byte: Interval | None = None
    why: tuple[str, ...] = ()


def fitted(v: View, name: str) -> Fitted:
    """The models of a fabric, from two ranks' messages by the MPI library."""
    trips = most(s for s in v.of("latency") if s.fabric == name)
    bursts = most(s for s in v.of(LOGGP) if s.fabric == name)
    why, found, parameters = [], None, None
    try:
        found = hockney.fit(of_summaries(v, trips, "time"))
    except ValueError as error:
        why.append(f"latency: {error}" if trips else "latency was not measured")
    try:
        parameters = loggp.fit(probes(v, bursts))
    except ValueError as error:
        why += [f"LogGP: {error}"] if bursts else []
    return Fitted(name, found, parameters, two_way(v, name), reduction(v, name), tuple(why))


def most(summaries: Iterable[Summary]) -> list[Summary]:
    """Of summaries of one fabric, those of the setup with the most sizes."""
    groups = grouped((s for s in summaries if s.value("time") is not None), setup)
    return max(groups.values(), key=len, default=[])


def probes(v: View, summaries: Sequence[Summary]) -> Probes:
    """The probes of LogGP at the sizes that have all four."""
    whole = [s for s in summaries if all(s.value(name) is not None for name in PROBES)]
    return Probes(*(of_summaries(v, whole, name, lambda x: max(x, LEAST_S)) for name in PROBES))


def two_way(v: View, name: str) -> float:
    """The rate of a two-way stream each way over that of a one-way stream, at the largest size of both; at most 1."""
    one, both = ({s.nbytes: s.value("bandwidth") for s in v.of(benchmark) if s.fabric == name and s.nbytes}
                 for benchmark in ("bandwidth", "bibw"))  # fmt: skip
    shared = [n for n in one if n is not None and one[n] and both.get(n)]
    if not shared:
        return 1.0
    largest = max(shared)
    return min(1.0, (both[largest] or 0.0) / (2 * (one[largest] or 1.0)))


def reduction(v: View, name: str) -> Interval | None:
    """Seconds per byte reduced, of float32: from the fabric's own ranks, else from whichever reduced most sizes."""
    found = [s for s in v.of(REDUCE_LOCAL) if s.dtype == "float32" and s.nbytes]
    rows = most([s for s in found if s.fabric == name]) or most(found)
    points = of_summaries(v, rows, "time")
    if len(points) < 2:
        return None
    times = points.resampled()
    return interval(line(points.nbytes, times, points.weights)[1], len(points))


def fabrics(v: View) -> list[str]:
    """The fabrics between whose ranks latency, or LogGP's probes, were measured."""
    measured = {s.fabric for s in v.of("latency", LOGGP) if not alone(s)}
    return [name for name in v.fabrics if name in measured]
