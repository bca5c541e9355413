"""What is understood of another suite's output: results with the line that each stands in, and what is left over."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from microbench.record import Better, Metric, Status

NO_INTERVAL = "imported: no samples, so no interval"
TOO_SMALL = "printed as 0: below what its suite prints"
US, MB, GB = 1e-6, 1e6, 1e9
MIB = float(2**20)
SizeOf = Literal["rank", "peer", "all"]

_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")
_NONE = re.compile(r"[+-]?(nan|inf(inity)?)", re.IGNORECASE)
_TAG = re.compile(r"\[\d+,\d+\]<std(?:out|err)>: ?")  # what Open MPI's mpirun --tag-output puts before each line
_DTYPES = {
    "char": "int8", "byte": "int8", "int8": "int8", "float": "float32", "double": "float64", "half": "float16",
    "int": "int32", "int32": "int32",
}  # fmt: skip
COLLECTIVES = {
    "allreduce": "allreduce", "all_reduce": "allreduce", "allgather": "allgather", "all_gather": "allgather",
    "bcast": "broadcast", "broadcast": "broadcast", "alltoall": "alltoall", "all-to-all": "alltoall",
    "reduce": "reduce", "reduce_scatter": "reduce_scatter", "reducescatter": "reduce_scatter", "gather": "gather",
    "scatter": "scatter", "barrier": "barrier",
}  # fmt: skip
PER_PEER = ("alltoall", "scatter")  # whose size the MPI suites count for each peer


@dataclass(frozen=True)
class Line:
    """A line of a log: its number, from 1 on, and its text without its end."""

    number: int
    text: str


@dataclass(frozen=True)
class Found:
    """One result. ``ranks`` is 0, and ``hosts`` (one a rank) empty, where the log does not tell.

    ``size_of`` says what ``nbytes`` counts: one rank's send buffer, what it sends to each peer, or all ranks' data.
    ``mode`` has further words on how the operation was called or the test is called; the suite's name comes first.
    """

    line: int
    benchmark: str
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    nbytes: int | None = None
    size_of: SizeOf = "rank"
    ranks: int = 0
    hosts: tuple[str, ...] = ()
    dtype: str = ""
    direction: str = ""
    mode: str = ""
    workload: str = ""
    backend: str = "mpi"
    device: str = "cpu"
    method: Mapping[str, Any] = field(default_factory=dict)
    validation: Mapping[str, Any] = field(default_factory=dict)
    status: Status = "ok"
    reason: str = ""


@dataclass(frozen=True)
class Trouble:
    """What was not understood: from ``line`` on to ``last`` (0: that line alone), and why."""

    line: int
    why: str
    last: int = 0

    @property
    def where(self) -> str:
        """``line 7``, ``lines 7-12``."""
        return f"lines {self.line}-{self.last}" if self.last > self.line else f"line {self.line}"


@dataclass(frozen=True)
class Log:
    """What a section of a file gave: the suite with its version, its results, and what was not understood of it."""

    suite: str
    found: tuple[Found, ...] = ()
    troubles: tuple[Trouble, ...] = ()


class Malformed(Exception):
    """A line that has the place of a row, and is none; the text says why."""


def lines(text: str) -> list[Line]:
    """The lines of a file, without what a launcher puts before each of them."""
    return [Line(i, _TAG.sub("", line.rstrip("\r"), count=1)) for i, line in enumerate(text.split("\n"), 1)]


def number(token: str) -> float | None:
    """A printed number; None for NaN and infinities. Malformed for anything else."""
    if _NUMBER.fullmatch(token):
        value = float(token)
        return value if abs(value) < float("inf") else None
    if _NONE.fullmatch(token):
        return None
    raise Malformed(f"{shown(token)} is no number")


def whole(token: str) -> int:
    """A printed whole number from 0 on. Malformed for anything else."""
    if not (token.isascii() and token.isdigit() and len(token) <= 18):
        raise Malformed(f"{shown(token)} is no size or count")
    return int(token)


def shown(text: str) -> str:
    """What a message quotes of a line."""
    return ascii(text if len(text) <= 60 else f"{text[:57]}...")


def imported(value: float | None, unit: str, scale: float = 1.0, n: int = 0, better: Better = "lower") -> Metric:
    """A metric as it was printed, in base units; ``n`` is 0 where the log does not tell how many samples it is of."""
    note = NO_INTERVAL if value is not None else "n/a: printed as no number"
    return Metric(None if value is None else value * scale, unit, n, better=better, kind="imported", note=note)


def time(value: float | None, n: int = 0, scale: float = US) -> Metric:
    """A printed time; 0 says no more than that it is below what was printed."""
    return _positive(value, "s", scale, n, "lower")


def rate(value: float | None, scale: float, n: int = 0, unit: str = "bytes/s", payload: int | None = None) -> Metric:
    """A printed rate; none of 0 bytes."""
    if payload == 0:
        return Metric(None, unit, n, better="higher", kind="imported", note="0 B carry no bandwidth")
    return _positive(value, unit, scale, n, "higher")


def _positive(value: float | None, unit: str, scale: float, n: int, better: Better) -> Metric:
    if value == 0:
        return Metric(None, unit, n, better=better, kind="imported", note=f"n/a: {TOO_SMALL}")
    return imported(value, unit, scale, n, better)


def dtype(name: str) -> str:
    """A type by our name, as far as it has one; ``MPI_FLOAT`` and ``float`` are ``float32``."""
    plain = name.strip().rstrip(".").lower().removeprefix("mpi_")
    return _DTYPES.get(plain, plain)


def overlapped(
    overall_s: Metric, compute_s: Metric, pure_s: Metric, printed: float | None, step_s: float
) -> dict[str, Metric]:
    """Metrics of a collective beside compute, named as ours are; overlap by our definition, signed and not clipped.

    The suites clip theirs at 0: it is kept as ``overlap_printed``. Where the collective alone takes less than ten of
    the steps in which times are printed, no overlap is told.
    """
    n = overall_s.n
    found = {"compute": compute_s, "host.pure": pure_s, "host.overall": overall_s}
    to, tc, tp = (m.value for m in (overall_s, compute_s, pure_s))
    note = "from the means that were imported: no samples, so no interval"
    if to is None or tc is None or tp is None or min(tp, tc) < 10 * step_s:
        why = "n/a: the collective or the compute alone is too short for what was printed"
        overlap = Metric(None, "1", n, better="higher", kind="derived", note=why)
        exposed = Metric(None, "s", n, kind="derived", note=why)
    else:
        overlap = Metric((tp + tc - to) / min(tp, tc), "1", n, better="higher", kind="derived", note=note)
        exposed = Metric(to - tc, "s", n, kind="derived", note=note)
    found |= {"host.overlap": overlap, "host.exposed": exposed}
    return found | {"overlap_printed": imported(printed, "1", 0.01, n, "none")}


def joined(left: Iterable[tuple[int, str]]) -> tuple[Trouble, ...]:
    """Numbered complaints in the order of lines, neighbours with the same words in one."""
    found: list[Trouble] = []
    for line, why in sorted(left):
        if found and found[-1].why == why and line == max(found[-1].line, found[-1].last) + 1:
            found[-1] = Trouble(found[-1].line, why, line)
        else:
            found.append(Trouble(line, why))
    return tuple(found)


def cut_row(rows: Sequence[Line], last: Line) -> bool:
    """Whether the last line of a file, which has no end, may be cut: rows are printed to one width."""
    before = [row for row in rows if row.number < last.number]
    return not before or len(before[-1].text.rstrip()) != len(last.text.rstrip())
