"""The second part of chapter 4: the algorithms of an operation side by side, a table per fabric, layout and dtype."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from reports import cells, tables
from reports.buckets import note
from reports.marks import above_declared, marks
from reports.ratios import HOW, Ratio
from reports.standing import Standing, of_comparisons, ranking, standings
from reports.summary import Summary
from reports.tables import Cell, Column
from reports.units import PERCENT, US, count, size, times
from reports.variants import (
    Contest,
    against_library,
    form,
    label,
    library_at,
    measured,
)
from reports.view import Finding, View, alone

NAMES = ("time", "time_p99", "busbw")
ALGORITHM = (
    "library: the MPI library's own choice; others without a backend's name: schedules of this suite, in messages of "
    "that library"
)
MARK = (
    "* the fastest at its size: its interval (range, of few launches) lies apart from every other's. = they "
    "cannot be told apart from the fastest, which is among them"
)
NOT_RANKED = "; - not ranked, as its time says too little of the call: "
FORM = "; nonblocking and in-place calls contend among themselves, as they do other work"
ONCE = ". Within one launch, that leaves out that the next launch may differ by more"


def blocks(v: View, groups: Sequence[list[Summary]]) -> list[str]:
    """The legend, and a table per comparison; nothing where there is none."""
    return [_legend(v, groups), *(_table(v, rows) for rows in groups)] if groups else []


def _legend(v: View, groups: Sequence[list[Summary]]) -> str:
    shown = [s for rows in groups for s in rows]
    forms = FORM if any(form(s) for s in shown) else ""
    once = ONCE if 1 in cells.launch_counts((s, "time") for s in shown) else ""
    why = dict.fromkeys(found.unranked for found in of_comparisons(v, groups).values() if found.unranked)
    left_out = NOT_RANKED + ", ".join(why) if why else ""
    lines = [("algorithm", ALGORITHM), ("* and =", MARK + forms + left_out + once),
             ("of stream %", _streams(v, groups)),
             ("vs library", f"how many times faster than the library's own at that size; interval: {HOW}")]  # fmt: skip
    return "Algorithms side by side, time of the slowest rank\n\n" + tables.pairs(lines)


def _streams(v: View, groups: Sequence[list[Summary]]) -> str:
    """The measured one-way rates that busbw is set against; empty where no table has a busbw."""
    fabrics = dict.fromkeys(rows[0].fabric for rows in groups if any("busbw" in s.metrics for s in rows))
    told = []
    for fabric in fabrics:
        found = v.stream(fabric)
        if found is None:
            told.append(f"{fabric} none measured")
            continue
        burst = ", above the declared rate, so a burst" if above_declared(v, found) else ""
        rate = cells.value("bandwidth", v.byte_rate)(found)
        told.append(f"{fabric} {rate} {v.byte_rate.name} at {size(found.nbytes)}{burst}")
    how = "busbw over the highest one-way bandwidth measured on the fabric (uni, chapter 3)"
    return f"{how}: {'; '.join(told)}" if told else ""


def _table(v: View, rows: Sequence[Summary]) -> str:
    shared = _shared_marks(v, rows)
    found, rated = standings(v, rows), any("busbw" in s.metrics for s in rows)
    columns = [
        Column("", lambda s: found[s.id].mark, "left"), Column("algorithm", label, "left"),
        *cells.interval_columns(rows, "time", US, "time"), Column("launches\ndiffer %", cells.apart("time")),
        Column("p99 us\n(upper)", cells.upper("time_p99", US)),
        Column(f"busbw\n{v.byte_rate.name}", cells.value("busbw", v.byte_rate) if rated else lambda _: ""),
        Column("of\nstream %", _of_stream(found) if rated else lambda _: ""),
        Column("n", cells.samples("time")), Column("vs library", _against(found), "left"),
        Column("notes", lambda s: ", ".join(m for m in _marks(v, s) if m not in shared), "left"),
    ]  # fmt: skip
    counts = cells.launch_counts((s, "time") for s in rows)
    basis = f". Intervals: {cells.based(counts)}" if len(counts) > 1 else ""
    told = f"{_title(rows[0])}{''.join(f', {mark}' for mark in shared)}{basis}"
    drawn = tables.by_size(rows, columns, apart=True)
    buckets = note(s.nbytes for s in rows)
    notes = [*cells.absences(rows, NAMES, label), *([tables.prose(buckets)] if buckets else [])]
    return "\n\n".join([tables.prose(told), drawn, *notes])


def _title(s: Summary) -> str:
    """What all lines of a table share."""
    layout = f"{count(s.ranks, 'rank')} on {count(len(set(s.hosts)), 'host')}" if s.hosts else count(s.ranks, "rank")
    parts = (f"{s.recipe} recipe" if s.recipe else "", s.dtype, s.workload, measured(s), s.direction,
             "" if s.device == "cpu" else s.device, s.mpi)  # fmt: skip
    head = f"{s.benchmark.replace('_', ' ').capitalize()} on {s.fabric}, by algorithm: {layout}"
    return ", ".join([head, *(part for part in parts if part)])


def _marks(v: View, s: Summary) -> list[str]:
    return [mark for mark in marks(v, s).split(", ") if mark]


def _shared_marks(v: View, rows: Sequence[Summary]) -> list[str]:
    """The marks that every line has: they are told once, in the title."""
    return [mark for mark in _marks(v, rows[0]) if all(mark in _marks(v, s) for s in rows)]


def _of_stream(found: Mapping[str, Standing]) -> Cell:
    """The busbw as a part of the one-way rate that was measured on the fabric."""

    def cell(s: Summary) -> str:
        share = found[s.id].of_stream
        return "-" if share is None else PERCENT.text(share)

    return cell


def _against(found: Mapping[str, Standing]) -> Cell:
    def cell(s: Summary) -> str:
        ratio = found[s.id].vs_library
        return "-" if ratio is None else times(ratio.value) if ratio.low is None else ratio.text

    return cell


def findings(v: View, groups: Sequence[list[Summary]]) -> Iterator[Finding]:
    """For each fabric and layout, at which sizes which algorithm is the fastest, where that can be told.

    A network between ranks of one host tells nothing of the network. Within a host, In short tells of allreduce alone.
    """
    for rows in groups:
        inside = v.inside_a_host(rows[0].fabric)
        if not alone(rows[0]) and (inside or len(set(rows[0].hosts)) != 1):
            for called, held in groupby(ranking(v, rows), lambda c: c.form):
                told = list(held)
                if any(c.winner for c in told):
                    found = _finding(v, rows, called, told)
                    yield replace(found, short=not inside or (rows[0].benchmark == "allreduce" and not called))


def _finding(v: View, rows: Sequence[Summary], called: str, told: Sequence[Contest]) -> Finding:
    s = rows[0]
    library = library_at(() if called else rows)
    names = list(dict.fromkeys(label(c.winner) for c in told if c.winner))
    undecided = [size(c.nbytes) for c in told if c.winner is None]
    apart = f"; not told apart at {', '.join(undecided)}" if undecided else ""
    layout = f", {s.ranks_per_host} a host" if s.ranks_per_host > 1 else ""
    where = f"{s.fabric}{' (EMULATED)' if s.fabric in v.emulated else ''}, {count(s.ranks, 'rank')}{layout}"
    which = ", ".join(part for part in (where, s.dtype, s.workload, measured(s), called, _which_mpi(v, s)) if part)
    fastest = ", ".join(f"{name}{_sizes(name, told)}{_gain(name, told, library)}" for name in names)
    counts = cells.launch_counts((x, "time") for x in rows)
    text = f"{s.benchmark} on {which}: fastest {fastest}{apart} ({cells.based(counts)})."
    same = {"benchmark": s.benchmark, "fabric": s.fabric, "ranks": s.ranks, "ranks_per_host": s.ranks_per_host,
            "dtype": s.dtype, "mpi": s.mpi, "mode": called}  # fmt: skip
    return Finding(4, text, same | {"fastest": [_told(c, library) for c in told]})


def _which_mpi(v: View, s: Summary) -> str:
    """The MPI library, where the run has several."""
    return s.mpi if len({x.mpi for x in v.published}) > 1 else ""


def _sizes(name: str, told: Sequence[Contest]) -> str:
    """Where an algorithm wins: `` to 4 KiB``, `` from 64 KiB``, `` at 8 B and 1 MiB``, `` at all 6 sizes``."""
    wins = [c.winner is not None and label(c.winner) == name for c in told]
    if all(wins):
        only = told[0].nbytes
        return f" at all {len(told)} sizes" if len(told) > 1 else "" if only is None else f" at {size(only)}"
    spans = []
    for won, run in groupby(range(len(told)), key=wins.__getitem__):
        if won:
            places = list(run)
            spans.append(_span(told, places[0], places[-1]))
    return f" {' and '.join(spans)}"


def _span(told: Sequence[Contest], first: int, last: int) -> str:
    start, end = size(told[first].nbytes), size(told[last].nbytes)
    if first == last:
        return f"at {start}"
    return f"to {end}" if first == 0 else f"from {start}" if last == len(told) - 1 else f"at {start} to {end}"


def _gain(name: str, told: Sequence[Contest], library: dict[int | None, Summary]) -> str:
    """Where it gains most over the library's own, and how much; empty where it gains nothing that can be told."""
    winners = [c.winner for c in told if c.winner is not None and label(c.winner) == name]
    found = [(r, s) for s in winners if library.get(s.nbytes) is not s and (r := against_library(s, library))]
    if not found:
        return ""
    ratio, s = max(found, key=lambda f: f[0].value)
    if len(winners) == 1:
        return f" ({ratio.text} the library)"
    return f" (up to {ratio.text} the library, at {size(s.nbytes)})"


def _told(c: Contest, library: dict[int | None, Summary]) -> Mapping[str, Any]:
    """One size as numbers: the fastest, what it cannot be told apart from, and its ratio to the library's own."""
    s, gain = c.fastest, against_library(c.fastest, library)
    return {"nbytes": c.nbytes, "algorithm": s.algorithm, "backend": s.backend, "told_apart": not c.tied,
            "time": s.value("time"), "ends": s.ends("time"), "equals": [label(x) for x in c.tied],
            "vs_library": None if gain is None or library.get(s.nbytes) is s else _ratio(gain)}  # fmt: skip


def _ratio(ratio: Ratio) -> Mapping[str, Any]:
    return {"value": ratio.value, "low": ratio.low, "high": ratio.high, "basis": ratio.basis}
