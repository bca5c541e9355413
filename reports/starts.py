"""How the ranks of a case started together: what of its time that explains, and whether one rank was late."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from microbench.record import Record
from reports.summary import Summary
from reports.variants import own
from reports.view import View, number, own_warnings

FEW = 0.80  # of the iterations began in time: fewer are told
MOSTLY = 0.50  # of the time is entry skew: more is told
LATE = 0.10  # of the time: by as much must a rank be late to be told
BARRIERS = ("barrier", "dissemination")  # ways to start after which ranks begin as they are let go
SLOWER = 2  # times: so much longer may a barrier take here than where it was measured by itself
KEPT = 0.50  # of the iterations: where fewer began in time, all count, and the benchmark itself says so


@dataclass(frozen=True)
class Late:
    """A rank that was the last to begin far more often than by chance, in ``times`` of ``iterations``."""

    rank: int
    host: str
    times: int
    iterations: int


def sync(r: Record) -> str:
    """How the ranks started together; ``-`` where the record does not say."""
    return str(r.method.get("sync") or "-")


def skew(r: Record) -> float | None:
    """The time in s from the first rank's begin to the last one's, in the median of iterations."""
    found = r.metrics.get("entry_skew")
    return None if found is None else found.value


def skew_share(r: Record) -> float | None:
    """The entry skew as a part of an iteration, which runs the operation ``batched`` times."""
    found, time = skew(r), r.metrics.get("time")
    if found is None or time is None or not time.value:
        return None
    return found / (time.value * max(1.0, number(r.method.get("batched")) or 1.0))


def usual_skew_share(v: View, s: Summary) -> float | None:
    """The median over launches of the skew's part of the time."""
    found = _known(skew_share(r) for r in v.launches(s))
    return median(found) if found else None


def in_time(r: Record) -> float | None:
    """The part of the iterations that every rank began in time."""
    return number(r.method.get("valid_fraction"))


def least_in_time(v: View, s: Summary) -> Record | None:
    """The launch with the smallest part of iterations in time; None where no launch says."""
    told = [r for r in v.launches(s) if in_time(r) is not None]
    return min(told, key=lambda r: in_time(r) or 0.0, default=None)


def told_by_benchmark(r: Record) -> bool:
    """Whether the record warns by itself that ranks were late: where it therefore kept every iteration."""
    return (in_time(r) or 0.0) < KEPT and bool(own_warnings(r))


def late(v: View, s: Summary) -> list[Late]:
    """The ranks that begin last, in most of the launches, by more than their way to start explains."""
    launches = v.launches(s)
    blamed = Counter(rank for r in launches for rank in _blamed(v, r))
    counts = [c for r in launches if len(c := _counts(r)) == len(s.hosts)]
    total = sum(map(sum, counts))
    return [Late(rank, s.hosts[rank], sum(c[rank] for c in counts), total)
            for rank, n in sorted(blamed.items()) if 2 * n > len(launches) and rank < len(s.hosts)]  # fmt: skip


def _blamed(v: View, r: Record) -> Sequence[int]:
    found, share = skew(r), skew_share(r)
    if found is None or share is None or share < LATE or found <= explained_s(v, r):
        return ()
    return [rank for rank in _integers(r.method.get("late_ranks")) if rank < len(_counts(r))]


def explained_s(v: View, r: Record) -> float:
    """The entry skew, in s, that is no rank's fault.

    It is what clocks and timer cannot tell apart, and how far from each other a barrier may let its ranks go: those
    that leave first waited for the last to enter, so all leave within a barrier's time of then. That is measured by
    itself, maybe while the machine was faster, so twice of it. Where no barrier was measured, the operation's own
    time with everybody in stands for it.
    """
    timer = sum(number(r.method.get(name)) or 0.0 for name in ("timer_overhead_s", "timer_tick_s"))
    unknown = max(number(r.method.get("clock_bound_s")) or 0.0, timer)
    if sync(r) not in BARRIERS:
        return unknown
    own = r.metrics.get("last_exit")
    instead = math.inf if own is None or own.value is None else own.value
    if sync(r) == "barrier":
        return max(unknown, SLOWER * _longest(v, r, "barrier", r.ranks, instead))
    rounds = (r.ranks - 1).bit_length()  # of a message each
    return max(unknown, SLOWER * rounds * _longest(v, r, "latency", None, instead / max(1, rounds)))


def _longest(v: View, r: Record, benchmark: str, ranks: int | None, instead: float) -> float:
    """The time of the library's own benchmark on the fabric of ``r``, at its smallest size: the upper end, if any."""
    same = [s for s in v.of(benchmark) if own(s) and (s.fabric, s.recipe, s.mpi) == (r.fabric, r.recipe, r.mpi)
            and ranks in (None, s.ranks) and s.value("time") is not None]  # fmt: skip
    least = min((s.nbytes or 0 for s in same), default=0)
    ends = [s.ends("time") or (0.0, s.value("time") or 0.0) for s in same if (s.nbytes or 0) == least]
    return max((high for _, high in ends), default=instead)


def _counts(r: Record) -> list[int]:
    """How often each rank was the last to begin; nothing where the record does not say, or is damaged."""
    found = _integers(r.method.get("last_arrivals"))
    return found if len(found) == len(r.hosts) else []


def _integers(data: object) -> list[int]:
    return [x for x in data if isinstance(x, int) and x >= 0] if isinstance(data, list | tuple) else []


def _known(values: Iterable[float | None]) -> list[float]:
    return [x for x in values if x is not None]
