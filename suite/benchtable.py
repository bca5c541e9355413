"""Rows of ``fabricbench bench`` as they come: one line a size, in columns that fit before the last is known."""

from __future__ import annotations

from microbench.record import Metric, Record
from reports.units import GBIT_PER_S, MB_PER_S, US, Unit, size

_RATES = ("bandwidth", "busbw")
_WIDTH = 11


def rate_name(record: Record) -> str:
    """Which rate a benchmark has: ``bandwidth``, ``busbw``, or none."""
    return next((name for name in _RATES if name in record.metrics), "")


def header(record: Record) -> str:
    """What is measured, how, and the columns."""
    where = f"{record.ranks} {'rank' if record.ranks == 1 else 'ranks'} ({record.placement})"
    level = f"{record.mpi}, thread level {record.thread_level}, {record.dtype or 'no data'}"
    note = " OVERSUBSCRIBED" if record.oversubscribed else ""
    timed = "window us" if record.method.get("window") else "median us"
    columns = ["size", "n", timed, "95 % interval", "p99 us"]
    rate = rate_name(record)
    columns += [f"{rate} MB/s", "Gbit/s"] if rate else []
    return f"# {record.benchmark}: {where}; {level}{note}\n# " + _line(columns)[2:]


def row(record: Record) -> str:
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
        cells += [_text(record.metrics[rate], unit) for unit in (MB_PER_S, GBIT_PER_S)]
    return _line(cells)


def _line(cells: list[str]) -> str:
    widths = [_WIDTH, 7, _WIDTH, 20, _WIDTH, 16, 9]
    return " ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=False))


def _text(metric: Metric | None, unit: Unit) -> str:
    if metric is None:
        return "-"
    return "n/a" if metric.value is None else unit.text(metric.value)


def _interval(metric: Metric, unit: Unit) -> str:
    if metric.low is None or metric.high is None:
        return metric.note or "n/a"
    return f"[{unit.text(metric.low)}, {unit.text(metric.high)}]"
