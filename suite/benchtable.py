"""Rows of ``fabricbench bench`` as they come: one line a size, in columns that fit before the last is known."""

from __future__ import annotations

from microbench.record import Metric, Record
from reports.units import GBIT_PER_S, US, Unit, size
from reports.view import impossible

_RATES = ("bandwidth", "busbw")
_WIDTH = 11
_IMPOSSIBLE = "  > any memory: time or unit is wrong"


def rate_name(record: Record) -> str:
    """Which rate a benchmark has: ``bandwidth``, ``busbw``, or none."""
    return next((name for name in _RATES if name in record.metrics), "")


def title(record: Record) -> str:
    """What is measured, and how."""
    where = f"{record.ranks} {'rank' if record.ranks == 1 else 'ranks'} ({record.placement})"
    level = f"{record.mpi}, thread level {record.thread_level}, {record.dtype or 'no data'}"
    note = " OVERSUBSCRIBED" if record.oversubscribed else ""
    sizes = "" if record.nbytes is None else "; size: bytes of one rank's send buffer"
    return f"# {record.benchmark}: {where}; {level}{sizes}{note}"


def columns(record: Record, byte_rate: Unit) -> str:
    """The headings over a first row that has a result; a rate's says its direction and unit."""
    timed = "window us" if record.method.get("window") else "median us"
    heads = ["size", "n", timed, "95 % interval", "p99 us"]
    if rate := rate_name(record):
        heads += [" ".join(part for part in (rate, record.direction, byte_rate.name) if part), GBIT_PER_S.name]
    return "# " + _line(heads)[2:]


def row(record: Record, byte_rate: Unit) -> str:
    """One line of the table; a case without a result says its status and why."""
    if record.status != "ok":
        return f"{size(record.nbytes):>{_WIDTH}} {record.status}: {record.reason}"
    time = record.metrics["time"]
    cells = [
        size(record.nbytes),
        str(time.n),
        _text(time, US),
        _interval(time, US),
        _text(record.metrics.get("time_p99"), US),
    ]
    if rate := rate_name(record):
        cells += [_text(record.metrics[rate], unit) for unit in (byte_rate, GBIT_PER_S)]
    return _line(cells) + (_IMPOSSIBLE if impossible(record.metrics, record.hosts) else "")


def _line(cells: list[str]) -> str:
    widths = [_WIDTH, 7, _WIDTH, 20, _WIDTH, 19, 9]
    return " ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=False))


def _text(metric: Metric | None, unit: Unit) -> str:
    if metric is None:
        return "-"
    return "n/a" if metric.value is None else unit.text(metric.value)


def _interval(metric: Metric, unit: Unit) -> str:
    if metric.low is None or metric.high is None:
        return metric.note or "n/a"
    return f"[{unit.text(metric.low)}, {unit.text(metric.high)}]"
