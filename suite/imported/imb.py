"""Intel MPI Benchmarks: MPI-1, NBC and P2P.

Times are means over repetitions; where the fastest, slowest and average rank are told, ``time`` is that of the slowest
one, as in our own collectives. Mbytes are 1e6 bytes since 2018, and were 2^20 before: rows that tell both time and rate
show which. Sizes of Alltoall and Scatter are what goes to each peer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from microbench.record import Metric
from suite.imported.model import (
    COLLECTIVES,
    MB,
    MIB,
    PER_PEER,
    Found,
    Line,
    Log,
    Malformed,
    SizeOf,
    dtype,
    number,
    overlapped,
    rate,
    time,
    whole,
)
from suite.imported.tables import CUT, Reader

NAME = "IMB"
_STEP_S = 0.01e-6  # the least step in which times are printed
_DECIMAL_SINCE = 2018
_ROUNDED = 0.02  # two printed numbers agree that closely, or one of them has too few digits to tell
_SUITE = re.compile(
    r"#\s*Intel\s*\(R\) MPI Benchmarks?(?: Suite)?\s*V?(?P<version>[\w. ]+?),\s*(?:IMB-)?(?P<part>[\w-]+) part\s*"
)
_TITLE = re.compile(r"#\s*Benchmarking\s+(\S+)\s*")
_RANKS = re.compile(r"#\s*#processes\s*=\s*(\d+).*")
_GROUPS = re.compile(r"#\s*\(?\s*(\d+) groups of (\d+) processes.*")
_TYPES = re.compile(r"#\s*MPI_Datatype( for reductions)?\s*:\s*(\S+)\s*")
_HEADING = re.compile(r"#(bytes|repetitions)\b.*")
_STOPPED = re.compile(r"(\d+)\s+(time-out|out-of-mem|int-overflow)\.;?\s*(.*)")
_END = "# All processes entering MPI_Finalize"
_REDUCING = ("allreduce", "reduce", "reduce_scatter")
_TIMES = {"t[usec]": "time", "t_min[usec]": "time_min", "t_max[usec]": "time", "t_avg[usec]": "time_mean",
          "t_ovrl[usec]": "overall", "t_pure[usec]": "pure", "t_cpu[usec]": "compute"}  # fmt: skip
_PAIR_TESTS = {"pingpong": ("latency", "ping-pong"), "uniband": ("message_rate", "uni")}
_FACTORS = {"pingpong": 1, "pingping": 1, "sendrecv": 2, "exchange": 4}  # bytes of a rank's rate, in sizes
_WHY = {
    "time-out": ("timeout", "the suite's own limit of time per sample was over"),
    "out-of-mem": ("skipped", "the suite could not allocate its buffers"),
    "int-overflow": ("skipped", "the suite's counts would not have fitted into an int"),
}


@dataclass(frozen=True)
class Suite:
    """What stands above the tables of one run."""

    version: str = ""
    part: str = "MPI1"
    types: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """``IMB-NBC``: results of one name's different parts are measured in different ways."""
        return f"{NAME}-{self.part}"


@dataclass(frozen=True)
class Table:
    """A table's title, its ranks, and its columns."""

    title: str
    ranks: int = 0
    groups: int = 1
    columns: tuple[str, ...] = ()


def starts(line: Line) -> bool:
    """Whether a line begins such output, or a table of it."""
    return bool(_SUITE.fullmatch(line.text) or _TITLE.fullmatch(line.text))


def read(section: Sequence[Line], last: int) -> Log:
    """The results of a section's tables; without the suite's last line it was cut off."""
    reader, suite, table, ended = Reader(last), Suite(), None, False
    for line in section:
        text = line.text.strip()
        if found := _SUITE.fullmatch(line.text):
            suite, table, ended = (
                Suite(found["version"], _part(found["part"])),
                None,
                False,
            )
        elif found := _TITLE.fullmatch(line.text):
            table = Table(found[1])
            reader.table(line.number)
        elif table is not None and _HEADING.fullmatch(text):
            table = replace(table, columns=tuple(text.lower().split()))
        elif text.startswith("#"):
            suite, table = _header(suite, table, line)
            ended |= text == _END
        elif table is not None and table.columns and text[:1].isdigit():
            reader.row(line, _row(suite, table), lambda found: found.nbytes)
        elif text:
            reader.leave(line)
    reader.end()
    if not ended and section:
        reader.left.append((section[-1].number, f"the suite's last line is not there: {CUT.rpartition(': ')[2]}"))
    return Log(f"{suite.name} {suite.version}".strip(), tuple(reader.found), reader.troubles)


def _part(name: str) -> str:
    """``MPI1``, ``NBC``, ``P2P`` of ``MPI-1``, ``MPI-NBC``, ``P2P``."""
    return "MPI1" if name == "MPI-1" else name.removeprefix("MPI-")


def _header(suite: Suite, table: Table | None, line: Line) -> tuple[Suite, Table | None]:
    if found := _TYPES.fullmatch(line.text):
        return replace(suite, types={**suite.types, found[1] or "": dtype(found[2])}), table
    if table is not None and (found := _GROUPS.fullmatch(line.text)):
        return suite, replace(table, ranks=int(found[2]), groups=int(found[1]))
    if table is not None and (found := _RANKS.fullmatch(line.text)):
        return suite, replace(table, ranks=int(found[1]))
    return suite, table


def _result(suite: Suite, table: Table, line: int) -> Found:
    """What a table's title says of all its rows."""
    title = table.title.lower()
    pure = title.removesuffix("_pure")
    operation, nonblocking = COLLECTIVES.get(pure, ""), False
    if not operation and pure.startswith("i"):
        operation, nonblocking = COLLECTIVES.get(pure[1:], ""), True
    benchmark, direction = (operation, "") if operation else _PAIR_TESTS.get(title, (f"imb_{title}", ""))
    kind = suite.types.get(" for reductions" if operation in _REDUCING else "", "")
    of: SizeOf = "peer" if operation in PER_PEER else "rank"
    method = {"suite": f"{suite.name} {suite.version}".strip(), "statistic": "mean"}
    return Found(
        line, benchmark, size_of=of, ranks=table.ranks, dtype="" if operation == "barrier" else kind,
        direction=direction, mode=suite.name + (" nonblocking" if nonblocking else ""), method=method,
        workload=f"{table.groups} groups at once" if table.groups > 1 else "",
    )  # fmt: skip


def _row(suite: Suite, table: Table) -> Callable[[Line], Sequence[Found]]:
    def read_row(line: Line) -> Sequence[Found]:
        result = _result(suite, table, line.number)
        if stopped := _STOPPED.fullmatch(line.text.strip()):
            status, why = _WHY[stopped[2]]
            return [replace(result, nbytes=whole(stopped[1]), status=status, reason=why)]  # type: ignore[arg-type]
        tokens = line.text.split()
        if len(tokens) != len(table.columns):
            raise Malformed(f"{len(tokens)} columns where its table has {len(table.columns)}")
        cells = dict(zip(table.columns, tokens, strict=True))
        nbytes = whole(cells.pop("#bytes")) if "#bytes" in cells else None
        return [_measured(replace(result, nbytes=nbytes), table, cells)]

    return read_row


def _measured(result: Found, table: Table, cells: dict[str, str]) -> Found:
    n = whole(cells.pop("#repetitions", "0"))
    wrong = number(cells.pop("defects", "0"))
    metrics = {_TIMES[name]: time(number(cells.pop(name)), n) for name in list(cells) if name in _TIMES}
    overlap = number(cells.pop("overlap[%]", "nan"))
    if "mbytes/sec" in cells:
        printed = number(cells.pop("mbytes/sec"))
        version = str(result.method["suite"]).rpartition(" ")[2]
        scale = megabyte(table.title.lower(), result.nbytes, metrics.get("time"), printed, version)
        metrics["bandwidth"] = rate(printed, scale, n, payload=result.nbytes)
    if "msg/sec" in cells:
        metrics["message_rate"] = rate(number(cells.pop("msg/sec")), 1.0, n, "messages/s")
    if cells:
        raise Malformed(f"a column of this table is not known: {next(iter(cells))!r}")
    if "time_min" in metrics:
        metrics["time_min"] = replace(metrics["time_min"], better="none")
    if wrong:
        result = replace(result, status="invalid", reason=f"its own check found {wrong:g} defects")
    if {"overall", "pure", "compute"} <= metrics.keys():
        known = overlapped(metrics.pop("overall"), metrics.pop("compute"), metrics.pop("pure"), overlap, _STEP_S)
        mode = result.mode.removesuffix(" nonblocking")
        return replace(result, benchmark=f"overlap_{result.benchmark}", mode=mode, metrics=known | metrics)
    return replace(result, metrics=metrics)


def megabyte(title: str, nbytes: int | None, took: Metric | None, printed: float | None, version: str) -> float:
    """What a printed megabyte is: 1e6 bytes or 2^20, by the row's own size and time, else by the suite's version."""
    factor = _FACTORS.get(title)
    if factor and nbytes and printed and took is not None and took.value:
        for unit in (MB, MIB):
            if abs(printed * unit * took.value / (factor * nbytes) - 1) < _ROUNDED:
                return unit
    year = re.match(r"\d+", version)
    return MIB if year is not None and int(year[0]) < _DECIMAL_SINCE else MB
