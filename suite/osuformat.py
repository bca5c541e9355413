"""``fabricbench bench --format osu``: our own measurements in the columns of OSU's tests, for tools that read those.

The statistics are OSU's too: of a collective the mean over iterations and ranks of local durations, of a window of
messages its bytes over its mean time, where our own tables have medians of the slowest rank. Sizes of alltoall and
scatter are what goes to each peer. Iterations in which a rank began late are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fabrics.errors import UserError
from microbench.record import Record
from microbench.registry import LIBRARY, MPI, Benchmark
from reports.samples import Samples, counted, headline

_COLUMN, _FIRST = 18, 10
_PAIRS = {"latency": "Latency", "bandwidth": "Bandwidth", "bibw": "Bi-Directional Bandwidth",
          "message_rate": "Multiple Bandwidth / Message Rate"}  # fmt: skip
_COLLECTIVES = {
    "allreduce": "Allreduce", "reduce": "Reduce", "broadcast": "Broadcast", "allgather": "Allgather",
    "reduce_scatter": "Reduce_scatter", "alltoall": "All-to-All Personalized Exchange", "gather": "Gather",
    "scatter": "Scatter", "barrier": "Barrier",
}  # fmt: skip
_PER_PEER = ("alltoall", "scatter")
_TYPES = {"int8": "MPI_CHAR", "int32": "MPI_INT", "float32": "MPI_FLOAT", "float64": "MPI_DOUBLE"}
_OVERLAP = "overlap_"
_HEADS = {"latency": ("Avg Latency(us)",), "bandwidth": ("Bandwidth (MB/s)",), "bibw": ("Bandwidth (MB/s)",),
          "message_rate": ("MB/s", "Messages/s")}  # fmt: skip
_BESIDE = ("Overall(us)", "Compute(us)", "Pure Comm.(us)", "Overlap(%)")


@dataclass(frozen=True)
class Table:
    """One benchmark's table: what OSU calls the test, and its columns after the size."""

    benchmark: str
    test: str
    heads: tuple[str, ...]
    sized: bool


def table(benchmark: Benchmark, mode: str | None) -> Table:
    """The table of a benchmark; UserError where OSU has no such test."""
    name = benchmark.name
    operation = name.removeprefix(_OVERLAP)
    if name.startswith(_OVERLAP) and operation in _COLLECTIVES:
        return Table(name, f"Non-blocking {_COLLECTIVES[operation]} Latency", _BESIDE, benchmark.sized)
    if mode and "nonblocking" in mode:
        raise UserError(f"OSU measures a non-blocking {name} beside compute: give overlap_{name} for --format osu")
    if name in _PAIRS:
        return Table(name, _PAIRS[name], _HEADS[name], True)
    if name in _COLLECTIVES:
        return Table(name, f"{_COLLECTIVES[name]} Latency", _HEADS["latency"], benchmark.sized)
    raise UserError(f"OSU has no test like {name}: leave out --format osu")


def title(t: Table, record: Record, version: str) -> list[str]:
    """The lines above the rows; what OSU cannot say of the way it was called is in the first."""
    ways = [way for way in (record.algorithm, record.mode, record.backend) if way not in ("", LIBRARY, MPI)]
    how = f" ({', '.join(ways)})" if ways else ""
    lines = ["", f"# OSU MPI {t.test} Test{how}: OSU's columns and statistics, measured by fabricbench {version}"]
    if t.benchmark == "message_rate":
        lines.append(f"# [ pairs: {record.ranks // 2} ] [ window size: {record.method.get('window', '?')} ]")
    if record.dtype:
        lines.append(f"# Datatype: {_TYPES.get(record.dtype, record.dtype)}.")
    return [*lines, _heading(t)]


def _heading(t: Table) -> str:
    first, *others = t.heads
    lead = f"# {'Size':<{_FIRST - 2}}{first:>{_COLUMN}}" if t.sized else f"# {first}"
    return lead + "".join(f"{head:>{_COLUMN}}" for head in others)


def row(t: Table, record: Record, samples: Samples) -> str:
    """A row; a case without a result, or of a size that OSU has not, is a comment that says why."""
    nbytes, ranks = record.nbytes, record.ranks
    if record.status != "ok":
        return f"# {'' if nbytes is None else nbytes} {record.status}: {record.reason}".replace("#  ", "# ")
    if t.benchmark.removeprefix(_OVERLAP) in _PER_PEER and nbytes is not None:
        if nbytes % ranks:
            return f"# {nbytes} B over {ranks} ranks is no size that every peer gets"
        nbytes //= ranks
    values = _beside(record) if t.heads == _BESIDE else _values(t, record, samples)
    first, *others = (f"{value:.2f}" for value in values)
    lead = f"{nbytes:<{_FIRST}}{first:>{_COLUMN}}" if t.sized else f"{first:>{len(t.heads[0]) + 2}}"
    return lead + "".join(f"{text:>{_COLUMN}}" for text in others)


def _values(t: Table, record: Record, samples: Samples) -> Sequence[float]:
    """In us, MB/s and messages/s, from every counted sample of every rank."""
    if t.benchmark in _COLLECTIVES:
        return [float(counted(record, samples).mean()) * 1e6]
    if t.benchmark == "latency":
        return [float(headline(record, samples).mean()) * 1e6]
    window_s = float(headline(record, samples).mean())
    messages = float(record.method["window"]) * float(record.method.get("pairs") or 1)
    ways = 2 if t.benchmark == "bibw" else 1
    bandwidth = ways * messages * (record.nbytes or 0) / window_s / 1e6
    return [bandwidth, messages / window_s] if t.benchmark == "message_rate" else [bandwidth]


def _beside(record: Record) -> Sequence[float]:
    """Medians of the host's own mode; overlap by OSU's formula, which is clipped at 0."""
    overall, compute, pure = (record.metrics[name].value or 0.0 for name in ("host.overall", "compute", "host.pure"))
    overlap = max(0.0, 100 - 100 * (overall - compute) / pure) if pure else 0.0
    return [overall * 1e6, compute * 1e6, pure * 1e6, overlap]
