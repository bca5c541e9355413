"""Rows of ``fabricbench bench`` as they come: one line a size, in columns that fit before the last is known.

What a row has no room for, and what holds for several of them, follows the last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from microbench.pacing import TOO_SLOW
from microbench.record import Metric, Record
from microbench.registry import LIBRARY, MPI
from reports import checked
from reports.modes import OVERLAP_LEGEND
from reports.units import GBIT_PER_S, PERCENT, US, Unit, size, unit_for
from reports.view import impossible

_RATES = {"message_rate": "bandwidth", "bandwidth": "bandwidth", "busbw": "busbw"}  # and what of it is in bytes/s
_WIDTH = 10
_WIDTHS = (_WIDTH, 6, 10, 18, 21, 19, 9)
_COUNTS = "n="  # how a note begins that says how many samples there are, and how many it takes
_DEPENDENT = "(as "
_IMPOSSIBLE = "  > any memory: time or unit is wrong"


def rate_name(record: Record) -> str:
    """Which rate a benchmark has: ``message_rate``, ``bandwidth``, ``busbw``, or none."""
    return next((name for name in _RATES if name in record.metrics), "")


def title(record: Record) -> str:
    """What is measured, and where."""
    where = f"{record.ranks} {'rank' if record.ranks == 1 else 'ranks'} ({record.placement})"
    kind = record.dtype or ("" if record.workload and record.nbytes is None else "no data")
    level = ", ".join(filter(None, (record.mpi, f"thread level {record.thread_level}", kind)))
    note = " OVERSUBSCRIBED" if record.oversubscribed else ""
    sizes = "" if record.nbytes is None else "; size: bytes of one rank's send buffer"
    how = [record.algorithm, record.mode, record.backend]
    ways = [way for way in how if way not in ("", LIBRARY, MPI)]
    return f"# {', '.join([record.benchmark, *ways])}: {where}; {level}{sizes}{note}"


def method(record: Record) -> str:
    """How it is measured, of a record that has a result, and what its intervals hold for."""
    alone = "; one rank alone: nothing crosses a link" if record.ranks == 1 else ""
    why = f" ({record.method['sync_reason']})" if record.method.get("sync_reason") else ""
    start = f"sync: {record.method['sync']}{why}; " if record.method.get("sync") else ""
    return f"# {start}interval: 95 % within this launch, others may differ by more{alone}"


def columns(record: Record, byte_rate: Unit) -> str:
    """The headings over a first row that has a result; a rate's says its direction and unit."""
    timed = "window us" if record.method.get("window") else "median us"
    heads = ["size", "n", timed, "95 % interval", "p99 us"]
    if rate := rate_name(record):
        unit = unit_for(record.metrics[rate].unit, byte_rate).name
        heads += [" ".join(part for part in (rate, record.direction, unit) if part), GBIT_PER_S.name]
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
        measured, carried = record.metrics[rate], record.metrics[_RATES[rate]]
        cells += [_text(measured, unit_for(measured.unit, byte_rate)), _text(carried, GBIT_PER_S)]
    return _line(cells) + (_IMPOSSIBLE if impossible(record.metrics, record.hosts) else "")


def notes(records: Sequence[Record]) -> list[str]:
    """What is to be read beside the rows: each reason once, with the sizes that it holds for."""
    told = [record for record in records if record.status == "ok"]
    return [*(f"# {line}" for line in (*_began(told), *_each_once(told), *_legend(told))), *data(told)]


def _line(cells: list[str]) -> str:
    return " ".join(f"{cell:>{width}}" for cell, width in zip(cells, _WIDTHS, strict=False))


def _text(metric: Metric | None, unit: Unit) -> str:
    if metric is None:
        return "-"
    if metric.value is None:
        return metric.note if metric.note.startswith(_COUNTS) else "n/a"
    return unit.text(metric.value)


def _interval(metric: Metric, unit: Unit) -> str:
    if metric.low is None or metric.high is None:
        return metric.note or "n/a"
    return unit.inside(metric.low, metric.high)


def _began(told: Sequence[Record]) -> Iterator[str]:
    """How many iterations began in time, where ranks start at a time that they agreed on."""
    shares = [(float(record.method.get("valid_fraction", 1.0)), record) for record in told if not _kept_late(record)]
    least, record = min(shares, key=lambda entry: entry[0], default=(1.0, None))
    if record is None or PERCENT.text(least) == PERCENT.text(1.0):
        return
    most = max(share for share, _ in shares)
    same = PERCENT.text(least) == PERCENT.text(most)
    where = "" if same else f" ({size(record.nbytes)}) to {PERCENT.text(most)}"
    yield f"{PERCENT.text(least)}{where} % of iterations began in time on every rank; n leaves out the others"


def _kept_late(record: Record) -> bool:
    """Whether all iterations count because most began late; a warning of its own says so."""
    return record.method.get("valid_fraction", 1.0) < 1 and record.metrics["time"].n == record.method.get("iterations")


def data(records: Sequence[Record]) -> list[str]:
    """What follows the last row of any table: what overlap is, and that data came back right, where there is some."""
    said = checked.told(records)
    overlaps = any(name.endswith(".overlap") for record in records for name in record.metrics)
    return [*([f"# overlap: {OVERLAP_LEGEND}"] if overlaps else []), *([f"# checked: {said}"] if said else [])]


def _reasons(record: Record) -> Iterator[tuple[int, str]]:
    """What a record says beside its numbers: why one is missing, and what was not as it should be; by kind."""
    named = {"p99": record.metrics.get("time_p99"), rate_name(record): record.metrics.get(rate_name(record))}
    for kind, (name, metric) in enumerate(named.items()):
        if metric is not None and metric.value is None and not metric.note.startswith(_COUNTS):
            yield kind, f"{name} n/a ({metric.note})"
    if "time_p99" not in record.metrics and (messages := record.method.get("window")):
        yield 0, f"no p99: a sample is a window of {messages} messages, whose tail is not that of one"
    if record.method.get("stop_reason") == TOO_SLOW:
        yield len(named), TOO_SLOW
    yield from ((len(named) + 1, warning) for warning in record.method.get("warnings", ()))


def _each_once(told: Sequence[Record]) -> Iterator[str]:
    places: dict[tuple[int, str], list[int]] = {}
    for place, record in enumerate(told):
        for entry in _reasons(record):
            places.setdefault(entry, []).append(place)
    for (_, reason), found in sorted(places.items(), key=lambda found: found[0][0]):
        where = _sizes(found, told)
        yield f"{where}: {reason}" if where else reason


def _sizes(places: Sequence[int], told: Sequence[Record]) -> str:
    """The sizes of some rows, neighbours joined: ``8 B to 1 KiB, 1 MiB``; nothing where there are no sizes."""
    if told[0].nbytes is None:
        return ""
    if 1 < len(places) == len(told):
        return "all sizes"
    spans: list[list[int]] = []
    for place in places:
        if spans and spans[-1][-1] == place - 1:
            spans[-1].append(place)
        else:
            spans.append([place])
    return ", ".join(" to ".join(size(told[end].nbytes) for end in dict.fromkeys((s[0], s[-1]))) for s in spans)


def _legend(told: Sequence[Record]) -> Iterator[str]:
    """What counts of samples mean, where they stand in the place of a number."""
    metrics = [record.metrics.get(name) for record in told for name in ("time", "time_p99")]
    shown = [m.note for m in metrics if m is not None and m.low is None and m.note.startswith(_COUNTS)]
    if shown:
        yield "n=A < C: it takes C samples, and there are A" + (
            "; (as B): they depend on their neighbours, and tell no more than B would"
            if any(_DEPENDENT in note for note in shown)
            else ""
        )
