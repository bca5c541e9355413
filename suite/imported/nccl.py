"""nccl-tests and rccl-tests, as text and as JSON.

A time is the mean over iterations, and unless asked otherwise over ranks. Sizes of all_gather and gather count all
ranks' data. Older versions do not print which operation they ran: it is told where type of reduction, root and the
ratio of the two bandwidths leave one alone, else it must be named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from microbench.record import Metric
from reports.load import mapping, mappings
from suite.imported.cutjson import Document
from suite.imported.model import (
    COLLECTIVES,
    GB,
    Found,
    Line,
    Log,
    Malformed,
    SizeOf,
    Trouble,
    dtype,
    number,
    rate,
    time,
    whole,
)
from suite.imported.tables import CUT, Reader

NCCL, RCCL = "nccl-tests", "rccl-tests"
IN_PLACE = "in-place"
UNNAMED = "the log does not say which operation it is of: name it with --benchmark, such as all_gather"
_BEGIN = re.compile(r"#\s*(?:(?P<suite>[nr]ccl-tests) version\s+(?P<version>\S+)|nThread\s+\d+).*")
_PROGRAM = re.compile(r"#\s*Collective test starting:\s*(\S+?)(?:_perf)?\s*")
_ITERATIONS = re.compile(r"#.*\biters:\s*\d+\s+iters:\s*(\d+)\b.*")
_DEVICE = re.compile(r"#\s*Rank\s+(\d+)\s+.*?\bon\s+(\S+)\s+device\s+\d+\s+\[[^]]*\]\s*(.*?)\s*")
_END = re.compile(r"#\s*Avg bus bandwidth\s*:.*")
_CHATTER = re.compile(r"\S*\s*(?:\[\d+\]\s+)?NCCL (INFO|TRACE)\b.*")
_BASE = ("size", "count", "type", "redop", "root")
_CELLS = ("time", "algbw", "busbw", "wrong")
_BLANK = re.compile(r"\S\s{30,}\S")  # an empty half of a row: results in place alone
_AMD = re.compile(r"\b(AMD|gfx\d|MI\d{2,3}|Radeon|Instinct)", re.IGNORECASE)


@dataclass(frozen=True)
class Run:
    """What stands above a table."""

    suite: str = NCCL
    version: str = ""
    operation: str = ""
    hosts: tuple[str, ...] = ()
    device: str = ""
    iterations: int = 0
    base: int = len(_BASE)
    columns: int = 0

    @property
    def name(self) -> str:
        """The suite; AMD's devices are rccl-tests', whatever the log says."""
        return RCCL if _AMD.search(self.device) else self.suite


def starts(line: Line) -> bool:
    """Whether a line begins such output."""
    return _BEGIN.fullmatch(line.text) is not None


def read(section: Sequence[Line], last: int, operation: str = "") -> Log:
    """The results of a section's tables; ``operation`` is what to take where the log does not say."""
    reader, run, ended = Reader(last), Run(operation=operation), True
    for line in section:
        text = line.text.strip()
        if text.startswith("#"):
            before = run
            run = _header(run, line)
            if run.columns != before.columns and run.columns:
                reader.table(line.number)
            if starts(line) and ended:
                run, ended = _header(Run(operation=operation), line), False
            ended |= _END.fullmatch(text) is not None
        elif text[:1].isdigit() and run.columns and not _CHATTER.fullmatch(text):
            reader.row(line, _row(run), _key)
        elif text and not _CHATTER.fullmatch(text):
            reader.leave(line)
    reader.end()
    if not ended:
        reader.left.append((section[-1].number, f"the suite's last lines are not there: {CUT.rpartition(': ')[2]}"))
    return Log(f"{run.name} {run.version}".strip(), tuple(reader.found), reader.troubles)


def _key(found: Found) -> tuple[Any, ...]:
    return found.nbytes, found.dtype, found.method["redop"], found.method.get("root"), found.mode


def _header(run: Run, line: Line) -> Run:
    text = line.text.strip()
    if (found := _BEGIN.fullmatch(text)) and found["suite"]:
        return replace(run, suite=found["suite"], version=found["version"])
    if found := _PROGRAM.fullmatch(text):
        return replace(run, operation=found[1])
    if found := _ITERATIONS.fullmatch(text):
        return replace(run, iterations=int(found[1]))
    if found := _DEVICE.fullmatch(text):
        return replace(run, hosts=(*run.hosts, found[2]), device=found[3])
    heads = text.lstrip("#").split()
    if heads[:2] == ["size", "count"]:
        base = heads.index("time") if "time" in heads else len(_BASE)
        return replace(run, base=base, columns=len(heads))
    return run


def _row(run: Run) -> Callable[[Line], Sequence[Found]]:
    def read_row(line: Line) -> Sequence[Found]:
        tokens = line.text.split()
        told = dict(zip(_BASE, tokens[: run.base], strict=False))
        rest = tokens[run.base :]
        groups = len(rest) // len(_CELLS)
        if groups not in (1, 2) or not len(rest) - 2 <= groups * len(_CELLS) <= len(rest):
            raise Malformed(f"{len(tokens)} columns where its table has {run.columns}")
        only_in_place = groups == 1 and _BLANK.search(line.text) is not None
        halves = [rest[i * len(_CELLS) : (i + 1) * len(_CELLS)] for i in range(groups)]
        return [_result(run, line.number, told, dict(zip(_CELLS, half, strict=True)), bool(i) or only_in_place)
                for i, half in enumerate(halves)]  # fmt: skip

    return read_row


def _result(run: Run, line: int, told: Mapping[str, str], cells: Mapping[str, str], in_place: bool) -> Found:
    """One half of a row: out of place, or in place."""
    size, n = whole(told["size"]), run.iterations
    took = time(number(cells["time"]), n)
    alone, busbw = (rate(number(cells[name]), GB, n, payload=size) for name in ("algbw", "busbw"))
    operation = run.operation.lower() or _told_by(told, alone, busbw, len(run.hosts))
    if not operation:
        raise Malformed(UNNAMED)
    known = COLLECTIVES.get(operation)
    of: SizeOf = "all" if known in ("allgather", "gather") else "rank"
    method = {"suite": f"{run.name} {run.version}".strip(), "statistic": "mean", "redop": told["redop"]}
    method |= {"root": told["root"]} if "root" in told else {}
    method |= {"device_name": run.device} if run.device else {}
    found = Found(
        line, known or f"nccl_{operation}", {"time": took, "algbw": alone, "busbw": busbw}, size, of, len(run.hosts),
        run.hosts, dtype(told["type"]), mode=f"{run.name} {IN_PLACE}" if in_place else run.name,
        workload=", ".join(_other(told)), backend=run.name.partition("-")[0],
        device="rocm" if run.name == RCCL else "cuda", method=method,
    )  # fmt: skip
    wrong = None if cells["wrong"].upper() == "N/A" else number(cells["wrong"])
    if wrong is None:
        return found
    if wrong:
        return replace(found, status="invalid", reason=f"its own check found {wrong:g} wrong elements")
    return replace(found, validation={"by": run.name, "result": "pass"})


def _other(told: Mapping[str, str]) -> list[str]:
    """The reduction and the root, where they are not the usual ones."""
    redop, root = told["redop"], told.get("root", "-1")
    return [*([redop] if redop not in ("sum", "none") else []), *([f"root {root}"] if root not in ("-1", "0") else [])]


def _told_by(told: Mapping[str, str], alone: Metric, busbw: Metric, ranks: int) -> str:
    """The operation, where what is printed leaves one alone; else nothing."""
    reduces, rooted = told["redop"] != "none", told.get("root", "-1") != "-1"
    if reduces and rooted:
        return "reduce"
    if not reduces or rooted or ranks < 3 or not alone.value or not busbw.value or alone.value < GB:
        return ""
    ratio = busbw.value / alone.value
    factors = {"all_reduce": 2 * (ranks - 1) / ranks, "reduce_scatter": (ranks - 1) / ranks}
    return min(factors, key=lambda name: abs(factors[name] - ratio))


def is_json(data: Any) -> bool:
    """Whether a JSON document is of these suites."""
    if isinstance(data, dict):
        return {"nccl_version", "results"} & data.keys() >= {"nccl_version"} or _is_rccl(data)
    return isinstance(data, list) and bool(data) and all(map(_is_rccl, data))


def _is_rccl(data: Any) -> bool:
    return isinstance(data, dict) and {"busBw", "inPlace", "size"} <= data.keys()


def read_json(document: Document, operation: str = "") -> Log:
    """The results of one document: nccl-tests' ``-J``, or rccl-tests' rows."""
    data, line = document.data, document.line
    if not isinstance(data, dict) or _is_rccl(data):
        return _read_rccl(data if isinstance(data, list) else [data], line, operation)
    run = _described(data, operation)
    found: list[Found] = []
    troubles: list[Trouble] = []
    rows = data.get("results")
    for row in rows if isinstance(rows, list) else []:
        try:
            found += _json_row(run, line, row)
        except (Malformed, KeyError, AttributeError, TypeError) as error:
            troubles.append(Trouble(line, _why("a result", error)))
    if not isinstance(rows, list):
        troubles.append(Trouble(line, "no results in it"))
    return Log(run.name, tuple(found), tuple(dict.fromkeys(troubles)))


def _described(data: Mapping[str, Any], operation: str) -> Run:
    """What the document says of the run."""
    config = mapping(data.get("config"))
    iterations = config.get("iterations")
    devices = mappings(data.get("devices") or config.get("devices"))
    arguments = data.get("args")
    program = str(arguments[0]).rpartition("/")[2] if isinstance(arguments, list) and arguments else ""
    named = program.removesuffix("_perf") if program.endswith("_perf") else operation
    return Run(
        operation=named, hosts=tuple(str(d.get("hostname", "")) for d in devices),
        device=str(devices[0].get("device_info", "")) if devices else "",
        iterations=iterations if isinstance(iterations, int) else 0,
    )  # fmt: skip


def _json_row(run: Run, line: int, row: Mapping[str, Any]) -> list[Found]:
    told = {name: str(row[name]).strip() for name in _BASE if name in row}
    found = []
    for half, in_place in (("out_of_place", False), ("in_place", True)):
        cells = row.get(half)
        if isinstance(cells, dict):
            wrong = "N/A" if cells.get("nwrong") is None else str(cells["nwrong"])
            texts = {"time": str(cells.get("time", cells.get("cpu_time"))), "algbw": str(cells["alg_bw"]),
                     "busbw": str(cells["bus_bw"]), "wrong": wrong}  # fmt: skip
            found.append(_result(run, line, told, texts, in_place))
    if not found:
        raise Malformed("a result without numbers")
    return found


def _read_rccl(rows: Sequence[Any], line: int, operation: str) -> Log:
    found: list[Found] = []
    troubles: list[Trouble] = []
    for row in rows:
        try:
            told = {"size": str(row["size"]), "type": str(row.get("type", "")), "redop": str(row.get("redop", "none"))}
            cells = {"time": str(row["time"]), "algbw": str(row["algBw"]), "busbw": str(row["busBw"]),
                     "wrong": str(row.get("wrong", "N/A"))}  # fmt: skip
            name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(row.get("name") or operation)).removesuffix("_perf").lower()
            ranks = row.get("ranks") if isinstance(row.get("ranks"), int) else 0
            result = _result(Run(RCCL, operation=name), line, told, cells, str(row["inPlace"]) in ("1", "True"))
            found.append(replace(result, ranks=ranks or 0))
        except (Malformed, KeyError, AttributeError, TypeError) as error:
            troubles.append(Trouble(line, _why("a result", error)))
    return Log(RCCL, tuple(found), tuple(dict.fromkeys(troubles)))


def _why(what: str, error: Exception) -> str:
    return f"{what}: {error}" if isinstance(error, Malformed) else f"{what} is not complete ({error})"
