"""mpi4py.bench pingpong: the mean of half the round trip, and the samples' deviation."""

from __future__ import annotations

import re
from collections.abc import Sequence

from suite.imported.model import MB, Found, Line, Log, imported, number, rate, time, whole
from suite.imported.tables import Reader

NAME = "mpi4py.bench"
_TITLE = re.compile(r"#\s*MPI PingPong Test\s*")
_ROW = re.compile(
    r"\s*(?P<size>\d+)\s+(?P<rate>\S+)(?:\s*\|\s*(?P<mean>\S+)\s*(?:±|\+/-|\S{1,3})\s*(?P<spread>\S+)\s+(?P<n>\d+))?\s*"
)


def starts(line: Line) -> bool:
    """Whether a line begins such output."""
    return _TITLE.fullmatch(line.text) is not None


def read(section: Sequence[Line], last: int) -> Log:
    """The results of a section's tables."""
    reader = Reader(last)
    for line in section:
        if starts(line):
            reader.table(line.number)
        elif _ROW.fullmatch(line.text):
            reader.row(line, _row, lambda found: found.nbytes)
        elif line.text.strip() and not line.text.startswith("#"):
            reader.leave(line)
    reader.end()
    return Log(NAME, tuple(reader.found), reader.troubles)


def _row(line: Line) -> Sequence[Found]:
    """With ``--no-stats`` the bandwidth alone is printed, and the time follows from it."""
    found = _ROW.fullmatch(line.text)
    if found is None:
        raise AssertionError(line)
    nbytes, n = whole(found["size"]), int(found["n"] or 0)
    printed = number(found["rate"])
    metrics = {"bandwidth": rate(printed, MB, n, payload=nbytes)}
    if found["mean"]:
        spread = imported(number(found["spread"]), "s", 1.0, n, "none")
        metrics = {"time": time(number(found["mean"]), n, 1.0), "time_deviation": spread} | metrics
    else:
        took = nbytes / (printed * MB) if printed else None
        metrics = {"time": time(took, n, 1.0)} | metrics
    method = {"suite": NAME, "statistic": "mean"}
    return [Found(line.number, "latency", metrics, nbytes, ranks=2, direction="ping-pong", mode=NAME, method=method)]
