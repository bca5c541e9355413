"""From results of other suites to records: what a log does not tell comes from the user, or stays unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from microbench.case import Case
from microbench.record import Metric, Record
from microbench.registry import LIBRARY
from suite.imported.model import Found, Log, Trouble, joined

PROOF = "imported"
FABRIC = "as logged"
NO_RANKS = "its sizes count what goes to each peer, and the log does not say how many ranks there are: give --ranks"
NO_TOTAL = "its sizes count all ranks' data, and the log does not say how many ranks there are: give --ranks"
ALL_RANKS = "its size is not that of every rank: {} B over {} ranks"
_FACTORS: Mapping[str, Callable[[int], float]] = {
    "allreduce": lambda n: 2 * (n - 1) / n, "reduce": lambda n: 1.0, "broadcast": lambda n: 1.0,
    "allgather": lambda n: n - 1.0, "gather": lambda n: n - 1.0, "reduce_scatter": lambda n: (n - 1) / n,
    "alltoall": lambda n: (n - 1) / n, "scatter": lambda n: (n - 1) / n,
}  # fmt: skip


@dataclass(frozen=True)
class Told:
    """What the user tells of logs that do not say it: ``hosts`` one a rank, ``ranks`` 0 where it is not told."""

    fabric: str = FABRIC
    ranks: int = 0
    hosts: tuple[str, ...] = ()
    mpi: str = ""
    emulated: bool = False


def records(
    file: str, logs: Iterable[Log], told: Told, launches: Counter[str]
) -> tuple[tuple[Record, ...], tuple[Trouble, ...]]:
    """The records of a file, and all that was not understood of it.

    ``launches`` counts the records of each case so far, and is carried on: the same case again is another launch.
    """
    made: list[Record] = []
    left: list[tuple[int, str]] = []
    for log in logs:
        for found in log.found:
            why, sized = _sized(replace(found, ranks=found.ranks or told.ranks))
            if why:
                left.append((found.line, why))
            else:
                made.append(_record(file, sized, told, launches))
        left += [(line, t.why) for t in log.troubles for line in range(t.line, max(t.line, t.last) + 1)]
    return tuple(made), joined(dict.fromkeys(left))


def _sized(found: Found) -> tuple[str, Found]:
    """The result with the bytes of one rank's send buffer, or why these are not known."""
    if found.size_of == "rank" or not found.nbytes:
        return "", found
    if not found.ranks:
        return NO_RANKS if found.size_of == "peer" else NO_TOTAL, found
    if found.size_of == "peer":
        return "", replace(found, nbytes=found.nbytes * found.ranks)
    if found.nbytes % found.ranks:
        return ALL_RANKS.format(found.nbytes, found.ranks), found
    return "", replace(found, nbytes=found.nbytes // found.ranks)


def _record(file: str, found: Found, told: Told, launches: Counter[str]) -> Record:
    """One result as a record; where nobody tells the number of ranks, results of other files are not its launches."""
    hosts = found.hosts or (told.hosts if len(told.hosts) == found.ranks else ())
    case = _case(file, found, told, launches)
    launches[case.id] += 1
    return Record(
        **case.identity(), status=found.status, reason=found.reason, mpi=told.mpi if found.backend == "mpi" else "",
        direction=found.direction, ranks=found.ranks, hosts=hosts,
        ranks_per_host=max((hosts.count(host) for host in hosts), default=0), launch=launches[case.id], proof=PROOF,
        emulated=told.emulated, metrics=_with_busbw(found), validation=found.validation,
        method={**found.method, "file": file, "line": found.line},
    )  # fmt: skip


def _case(file: str, found: Found, told: Told, launches: Counter[str]) -> Case:
    """What was measured; where nobody tells the number of ranks, each table is a case of its own."""
    case = Case(found.benchmark, told.fabric, recipe="", backend=found.backend, algorithm=LIBRARY, mode=found.mode,
                workload=found.workload, device=found.device, nbytes=found.nbytes, dtype=found.dtype,
                ranks=found.ranks)  # fmt: skip
    if found.ranks:
        return case
    for table in count(1):
        which = f"ranks not told, {file}" + (f", table {table}" if table > 1 else "")
        alone = replace(case, workload=", ".join(part for part in (found.workload, which) if part))
        if not launches[alone.id]:
            return alone
    raise AssertionError(file)


def _with_busbw(found: Found) -> Mapping[str, Metric]:
    """The metrics, with busbw of a collective's time where ranks and size are known and its suite prints none."""
    time, factor = found.metrics.get("time"), _FACTORS.get(found.benchmark)
    if time is None or factor is None or "busbw" in found.metrics or not found.ranks:
        return found.metrics
    why = "0 B carry no bandwidth" if not found.nbytes else "one rank moves nothing" if found.ranks == 1 else time.note
    known = bool(time.value and found.nbytes and found.ranks > 1)
    value = factor(found.ranks) * (found.nbytes or 0) / time.value if known and time.value else None
    busbw = Metric(value, "bytes/s", time.n, better="higher", kind="derived", note=why)
    return {**found.metrics, "busbw": busbw}


def summary(file: str, logs: Sequence[Log], made: Sequence[Record], left: Sequence[Trouble]) -> dict[str, Any]:
    """What ``run.json`` keeps of an imported file."""
    suites = list(dict.fromkeys(log.suite for log in logs if log.suite))
    return {"file": file, "suites": suites, "records": len(made),
            "not_understood": [{"line": t.line, "last": max(t.line, t.last), "why": t.why} for t in left]}  # fmt: skip
