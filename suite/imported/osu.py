"""OSU micro-benchmarks, in C and in Python (OMB-Py), and mpi4py's demonstrations that print the same tables.

A time is the mean over iterations, of a collective also over ranks; with ``-f`` the fastest and slowest rank's means
stand beside it. Sizes of alltoall and scatter are what goes to each peer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from microbench.record import Better, Metric
from suite.imported.model import (
    COLLECTIVES,
    GB,
    MB,
    PER_PEER,
    US,
    Found,
    Line,
    Log,
    Malformed,
    SizeOf,
    dtype,
    imported,
    number,
    overlapped,
    rate,
    time,
    whole,
)
from suite.imported.tables import Reader

NAME = "OSU"
_STEP_S = 0.01e-6  # the least step in which times are printed
_TITLE = re.compile(
    r"#\s*(?P<suite>OSU|OMB-Py)?\s*MPI(?P<kind>[-_]\w+)?\s+(?P<name>.+?)\s+Test(?:\s+v(?P<version>\S+))?\s*"
)
_DATATYPE = re.compile(r"#\s*Datatype:\s*(\S+)\s*")
_PAIRS = re.compile(r"#\s*\[\s*pairs:\s*(\d+)\s*\]\s*\[\s*window size:\s*(\d+)\s*\]\s*")
_BUFFERS = re.compile(r"#\s*Send Buffer on (\w+).* Receive Buffer on (\w+).*")
_HEADING = re.compile(r"#\s*(?:Size|(?:Avg )?Latency|Overall)\b.*[(\[/]")
_FORMULA = re.compile(r"#\s*Overall\s*=")
_UNIT = re.compile(r"(?P<name>.*?)\s*[\[(](?P<unit>us|ms|s|B|MB/s|GB/s|%)[\])]")
_INIT = re.compile(r"nprocs:\s*(\d+),\s*min:\s*(\S+)\s*ms,\s*max:\s*(\S+)\s*ms,\s*avg:\s*(\S+)\s*ms\s*")
_SCALES = {"us": US, "ms": 1e-3, "s": 1.0, "MB/s": MB, "GB/s": GB}
_PAIR_TESTS = {"latency": ("latency", "ping-pong"), "bandwidth": ("bandwidth", "uni"),
               "bi-directional bandwidth": ("bibw", "bi"), "bibw": ("bibw", "bi"),
               "multiple bandwidth / message rate": ("message_rate", "uni")}  # fmt: skip
_TIMES = {"avg latency": "time", "latency": "time", "min latency": "time_min", "max latency": "time_max",
          "overall": "overall", "compute": "compute", "coll. init": "host.post", "mpi_test": "host.test",
          "mpi_wait": "host.wait", "pure comm.": "pure", "min comm.": "host.pure_min",
          "max comm.": "host.pure_max"}  # fmt: skip
_TAIL = re.compile(r"(p\d+) tail (lat|bw)")


@dataclass(frozen=True)
class Column:
    """A column of a table: our name of it, and by what its numbers are multiplied."""

    name: str
    scale: float = 1.0


@dataclass(frozen=True)
class Test:
    """What the title of a table and the lines below it say."""

    suite: str
    result: Found
    nonblocking: bool = False
    columns: tuple[Column, ...] = ()


def starts(line: Line) -> bool:
    """Whether a line is the title of such a table."""
    found = _TITLE.fullmatch(line.text)
    return found is not None and (bool(found["suite"]) or found["name"] != "PingPong")


def read(section: Sequence[Line], last: int) -> Log:
    """The results of a section's tables."""
    reader, test = Reader(last), None
    suites: list[str] = []
    for line in section:
        text = line.text.strip()
        if starts(line):
            test = _test(line)
            suites.append(test.suite)
            reader.table(line.number)
        elif test is None or not text:
            if text and not text.startswith("#"):
                reader.leave(line)
        elif text.startswith("#"):
            test = _header(test, line)
        elif init := _INIT.fullmatch(text):
            reader.row(line, _startup(test, init), lambda found: found.ranks)
        elif test.columns and text[0].isdigit():
            reader.row(line, _row(test), lambda found: found.nbytes)
        else:
            reader.leave(line)
    reader.end()
    return Log(suites[0] if suites else NAME, tuple(reader.found), reader.troubles)


def _test(line: Line) -> Test:
    found = _TITLE.fullmatch(line.text)
    if found is None:
        raise AssertionError(line)
    suite = {"OSU": NAME, "OMB-Py": "OMB-Py"}.get(found["suite"] or "", "mpi4py demo")
    name, kind = found["name"].lower(), (found["kind"] or "").strip("-_").lower()
    device = kind if kind in ("cuda", "rocm", "openacc") else ""
    one_sided = kind if not device else ""
    name, nonblocking = re.subn(r"^non-?blocking ", "", name)
    method = {"suite": " ".join(part for part in (suite, found["version"]) if part), "statistic": "mean"}
    common = Found(line.number, "", device=device or "cpu", mode=suite, method=method)
    if not one_sided and name in _PAIR_TESTS:
        benchmark, direction = _PAIR_TESTS[name]
        ranks = 0 if benchmark == "message_rate" else 2
        return Test(str(method["suite"]), replace(common, benchmark=benchmark, direction=direction, ranks=ranks))
    plain = re.sub(r" (latency|bandwidth)$| personalized exchange", "", re.sub(r" latency$", "", name)).strip()
    operation = "" if one_sided else COLLECTIVES.get(plain, "")
    if not operation:
        slug = re.sub(r"[^a-z0-9]+", "_", f"{one_sided} {name}".strip())
        return Test(str(method["suite"]), replace(common, benchmark=f"osu_{slug}"), bool(nonblocking))
    of: SizeOf = "peer" if operation in PER_PEER else "rank"
    return Test(str(method["suite"]), replace(common, benchmark=operation, size_of=of), bool(nonblocking))


def _header(test: Test, line: Line) -> Test:
    """What a comment below the title adds: the type, the pairs, or the headings of the columns."""
    if found := _DATATYPE.fullmatch(line.text):
        return replace(test, result=replace(test.result, dtype=dtype(found[1])))
    if found := _BUFFERS.fullmatch(line.text):
        buffers = f"{found[1]} to {found[2]}".lower()
        device = test.result.device if buffers == "host to host" or test.result.device != "cpu" else "device"
        told = {**test.result.method, "buffers": buffers}
        return replace(test, result=replace(test.result, device=device, method=told))
    if found := _PAIRS.fullmatch(line.text):
        told = {**test.result.method, "pairs": int(found[1]), "window": int(found[2])}
        return replace(test, result=replace(test.result, ranks=2 * int(found[1]), method=told))
    if _FORMULA.match(line.text) or not _HEADING.match(line.text):
        return test
    heads = re.split(r"\s{2,}", line.text.strip().lstrip("#").strip())
    return replace(test, columns=tuple(map(_column, heads)))


def _column(head: str) -> Column:
    found = _UNIT.fullmatch(head)
    name, unit = (found["name"].lower(), found["unit"]) if found else (head.lower(), "")
    if head in ("MB/s", "GB/s"):
        return Column("bandwidth", _SCALES[head])
    if tail := _TAIL.fullmatch(name):
        return Column(f"{'time' if tail[2] == 'lat' else 'bandwidth'}_{tail[1]}", _SCALES.get(unit, 1.0))
    if name in _TIMES:
        return Column(_TIMES[name], _SCALES.get(unit, US))
    return Column(name, _SCALES.get(unit, 1.0))


def _row(test: Test) -> Callable[[Line], Sequence[Found]]:
    def read_row(line: Line) -> Sequence[Found]:
        tokens = line.text.split()
        if len(tokens) != len(test.columns):
            raise Malformed(f"{len(tokens)} columns where its table has {len(test.columns)}")
        cells = dict(zip(test.columns, tokens, strict=True))
        names = {column.name: token for column, token in cells.items()}
        nbytes = whole(names["size"]) if "size" in names else None
        n = whole(names["iterations"]) if "iterations" in names else 0
        metrics = {c.name: _metric(c, token, n, nbytes) for c, token in cells.items()
                   if c.name not in ("size", "iterations", "validation")}  # fmt: skip
        result = replace(test.result, line=line.number, nbytes=nbytes, **_checked(names.get("validation")))
        return [_named(replace(result, metrics=metrics), test)]

    return read_row


def _metric(column: Column, token: str, n: int, nbytes: int | None) -> Metric:
    value = number(token)
    if column.name.startswith("bandwidth"):
        return rate(value, column.scale, n, payload=nbytes)
    if column.name == "messages/s":
        return rate(value, 1.0, n, "messages/s")
    if column.name == "overlap":
        return imported(value, "1", 0.01, n, "none")
    if column.scale not in (US, 1e-3, 1.0) or (column.name not in _TIMES.values() and "time" not in column.name):
        raise Malformed(f"a column of this table is not known: {column.name!r}")
    better: Better = "none" if column.name in ("compute", "time_min", "host.pure_min") else "lower"
    return replace(time(value, n, column.scale), better=better)


def _checked(said: str | None) -> dict[str, Any]:
    """What the validation of a row came to."""
    if said is None:
        return {}
    if said.lower() == "pass":
        return {"validation": {"by": NAME, "result": "pass"}}
    return {"status": "invalid", "reason": f"its own validation says {said!r}"}


def _named(result: Found, test: Test) -> Found:
    """The result under the names of our own metrics."""
    metrics = dict(result.metrics)
    if "messages/s" in metrics:
        metrics["message_rate"] = metrics.pop("messages/s")
    if {"overall", "compute", "pure"} <= metrics.keys():
        printed = metrics.pop("overlap", None)
        known = overlapped(metrics.pop("overall"), metrics.pop("compute"), metrics.pop("pure"),
                           _percent(printed), _STEP_S)  # fmt: skip
        return replace(result, benchmark=f"overlap_{result.benchmark}", metrics=known | metrics)
    if test.nonblocking:
        result = replace(result, mode=f"{result.mode} nonblocking")
    return replace(result, metrics=metrics)


def _percent(metric: Metric | None) -> float | None:
    return None if metric is None or metric.value is None else 100 * metric.value


def _startup(test: Test, found: re.Match[str]) -> Callable[[Line], Sequence[Found]]:
    """A line of osu_init, which has no table."""

    def read_row(line: Line) -> Sequence[Found]:
        least, most, mean = (time(number(token), 0, 1e-3) for token in found.groups()[1:])
        metrics = {"time": mean, "time_min": replace(least, better="none"), "time_max": most}
        return [replace(test.result, line=line.number, ranks=int(found[1]), metrics=metrics)]

    return read_row
