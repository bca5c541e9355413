"""The table of formats, and what a file holds: by its content, or by a name that the user gives."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from suite.imported import imb, iperf, mpi4pybench, nccl, osu, perftest
from suite.imported.cutjson import Document, documents
from suite.imported.model import Line, Log, Trouble, joined, lines, shown
from suite.imported.tables import UNKNOWN

TextReader = Callable[[Sequence[Line], int, str], Log]
JsonReader = Callable[[Document, str], Log]


@dataclass(frozen=True)
class Format:
    """One suite's output: as text with lines that begin it, as JSON, or both. ``what`` is for people."""

    name: str
    what: str
    starts: Callable[[Line], bool] | None = None
    read: TextReader | None = None
    is_json: Callable[[Any], bool] | None = None
    read_json: JsonReader | None = None


FORMATS: Mapping[str, Format] = {f.name: f for f in (
    Format("osu", "OSU micro-benchmarks in C and Python", osu.starts, lambda s, last, _: osu.read(s, last)),
    Format("imb", "Intel MPI Benchmarks: MPI-1, NBC, P2P", imb.starts, lambda s, last, _: imb.read(s, last)),
    Format("nccl", "nccl-tests and rccl-tests, text and JSON", nccl.starts, nccl.read, nccl.is_json, nccl.read_json),
    Format("mpi4py", "mpi4py.bench pingpong", mpi4pybench.starts, lambda s, last, _: mpi4pybench.read(s, last)),
    Format("perftest", "perftest (ib_write_bw, ...), text and JSON", perftest.starts,
           lambda s, last, _: perftest.read(s, last), perftest.is_json, lambda d, _: perftest.read_json(d)),
    Format("iperf3", "iperf3 --json", None, None, iperf.is_json, lambda d, _: iperf.read_json(d)),
)}  # fmt: skip


def read(text: str, name: str = "", operation: str = "") -> tuple[Log, ...]:
    """What a file holds, section by section; never raises for its content.

    ``name`` is a format to take it for, empty to recognise it. ``operation`` is what was run where a log does not say.
    """
    if not text.strip():
        return (Log("", (), (Trouble(1, "the file is empty"),)),)
    packed = _json(text, name, operation) if text.lstrip()[0] in "{[" else ()
    if any(log.suite for log in packed):
        return packed
    plain = _text(text, name, operation)  # what mpirun --tag-output puts before each line begins like a list
    return plain if any(log.suite for log in plain) or not packed else packed


def _json(text: str, name: str, operation: str) -> tuple[Log, ...]:
    found, troubles = documents(text)
    logs = []
    for document in found:
        known = [f for f in FORMATS.values() if name in ("", f.name) and f.is_json and f.is_json(document.data)]
        if known and known[0].read_json:
            logs.append(known[0].read_json(document, operation))
        else:
            logs.append(Log("", (), (Trouble(document.line, "JSON of no suite that is known here"),)))
    return (*logs, *((Log("", (), troubles),) if troubles else ()))


def _text(text: str, name: str, operation: str) -> tuple[Log, ...]:
    whole = lines(text)
    last = 0 if text.endswith("\n") else whole[-1].number
    logs = []
    for known, section in _sections(whole, name):
        if known is None:
            if left := [(line.number, _why(line)) for line in section if _worth_naming(line)]:
                logs.append(Log("", (), joined(left)))
        elif known.read is None:
            logs.append(Log("", (), (Trouble(1, f"not the JSON of {known.name}", len(section)),)))
        else:
            logs.append(known.read(section, last, operation))
    return tuple(logs)


def _sections(whole: Sequence[Line], name: str) -> list[tuple[Format | None, list[Line]]]:
    """Runs of lines by the suite that began last; those before any suite have none."""
    if name:
        return [(FORMATS[name], list(whole))]
    sections: list[tuple[Format | None, list[Line]]] = [(None, [])]
    for line in whole:
        begun = next((f for f in FORMATS.values() if f.starts is not None and f.starts(line)), None)
        if begun is not None and begun is not sections[-1][0]:
            sections.append((begun, []))
        sections[-1][1].append(line)
    return sections


def _worth_naming(line: Line) -> bool:
    return re.fullmatch(r"[\s#*=-]*", line.text) is None


def _why(line: Line) -> str:
    return f"{UNKNOWN}: {shown(line.text.strip())}"
