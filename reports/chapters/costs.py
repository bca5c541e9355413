"""The end of chapter 4: which formula explains an allreduce, what the library seems to do, and where calls cross."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from math import isinf

from reports import tables
from reports.chapters import simulated
from reports.models import measured
from reports.models.allreduce import REGIONS, Cells, Explained, crossovers, explain, likeness
from reports.models.cost import ALGORITHMS
from reports.models.fabric import reduction
from reports.units import PERCENT, US, Unit, count, size
from reports.variants import LIBRARY
from reports.view import View

HELP = (
    "a: a message's latency, b: s/byte, by the formula of each algorithm, fitted in each region of sizes. Held out: "
    "relative errors of the times at one rank count as predicted from the others, by which the formula is chosen; "
    "sure: share of bootstrap draws that choose the same. What is off by more than 10 % anywhere does not fit and is "
    "not used."
)
ALIKE = 0.10  # of the time: the library does what our schedule does, where it takes as long to within this
FEWEST_ALIKE = 2  # cells: a single one may agree by chance
HEADS = ("call: formula", "sizes", "ranks", "held out, %\nmedian, worst", "a us", "1/b MB/s", "sure %")
ALIGNS = (*["left"] * 3, *["right"] * 4)
Fits = tuple[str, tuple[Explained, ...]]


def blocks(v: View) -> list[str]:
    """Per fabric what its allreduces are explained by; nothing where none was measured."""
    found = [block for name in v.fabrics if (block := _block(v, name))]
    explained = [f"Fits: allreduce by algorithm\n\n{tables.prose(HELP)}", *found] if found else []
    return [*explained, *simulated.blocks(v)]


def _block(v: View, fabric: str) -> str:
    calls = {name: measured.cells(v, rows) for name, rows in measured.calls(v, fabric).items()}
    wanted = {name: cells for name, cells in calls.items() if name == LIBRARY or name in ALGORITHMS}
    if not wanted:
        return ""
    told = reduction(v, fabric)
    reduced = told.value if told else None
    fits: list[Fits] = [(name, explain(cells, reduced, () if name == LIBRARY else (name,)))
                        for name, cells in wanted.items()]  # fmt: skip
    rows = [row for name, parts in fits for row in _rows(name, parts)]
    library = dict(fits).get(LIBRARY, ())
    notes = [*_misfits(fits), *_explained(library), *_alike(wanted), *_crossings(fits, wanted)]
    if not (rows or notes):
        return ""
    mark = " EMULATED" if fabric in v.emulated else ""
    apart = "" if told is None else f"; reducing a byte takes {Unit('', 1e9).text(told.value)} ns"
    drawn = [tables.table(HEADS, rows, ALIGNS)] if rows else []
    noted = ["\n".join(map(tables.bullet, notes))] if notes else []
    return "\n\n".join([tables.prose(f"Allreduce on {fabric}{mark}, float32{apart}"), *drawn, *noted])


def _rows(name: str, parts: Sequence[Explained]) -> Iterator[list[str]]:
    for part in parts:
        if part.fits:
            held = f"{PERCENT.text(part.typical)}, {PERCENT.text(part.worst)}"
            a, b = _either(part, 0), _either(part, 1)
            call = name if name == part.algorithm else f"{name}: {part.algorithm}"
            yield [call, _region(part.low, part.high), ",".join(map(str, part.ranks)), held,
                   US.text(a) if a else "-", Unit("MB/s", 1e-6).text(1 / b) if b else "-",
                   "" if part.second is None else f"{100 * part.confidence:.0f}"]  # fmt: skip


def _misfits(fits: Sequence[Fits]) -> Iterator[str]:
    for name, parts in fits:
        for part in parts:
            if not part.fits:
                off = f"{100 * part.worst:.0f} %" if part.worst < 10 else "more than 10 times"
                yield (f"{name}, {_region(part.low, part.high)}: no formula fits; the best, {part.algorithm}, is off "
                       f"by {off} at a rank count left out.")  # fmt: skip


def _either(part: Explained, k: int) -> float:
    """A coefficient across hosts, or where all ranks are on one host that within it."""
    return part.coefficients[k] or part.coefficients[k + 3]


def _explained(parts: Sequence[Explained]) -> Iterator[str]:
    """What the library's own call seems to do by the formulas, and how sure that is."""
    for part in parts:
        if part.fits:
            other = f"; {part.second[0]} is off by {PERCENT.text(part.second[1])} %" if part.second else ""
            yield (f"{_region(part.low, part.high)}: the library seems to use {part.algorithm}: "
                   f"{100 * part.confidence:.0f} % of draws choose it, off by {PERCENT.text(part.typical)} % at ranks "
                   f"left out{other}.")  # fmt: skip


def _alike(calls: Mapping[str, Cells]) -> Iterator[str]:
    """Which of our schedules take as long as the library's own call, in each region of sizes."""
    for low, high in pairwise(REGIONS if LIBRARY in calls else ()):
        mine = calls[LIBRARY].within(low, high)
        found: list[tuple[float, str, int]] = []
        for name in (name for name in calls if name != LIBRARY):
            library, ours = measured.both(mine, calls[name].within(low, high))
            found += [(apart, name, n) for _, apart, n in likeness(library, {name: ours}) if n >= FEWEST_ALIKE]
        near = sorted(f for f in found if f[0] <= ALIKE)
        if near:
            which = ", ".join(f"{name} ({PERCENT.text(apart)} % apart)" for apart, name, _ in near)
            how = "cannot be told from" if len(near) > 1 else "takes as long as"
            yield f"{_region(low, high)}: the library {how} {which}, in {count(near[0][2], 'cell')}."


def _region(low: float, high: float) -> str:
    """``to 4 KiB``, ``4 KiB to 256 KiB``, ``above 256 KiB``."""
    if not low:
        return f"to {size(int(high))}"
    return f"above {size(int(low))}" if isinf(high) else f"{size(int(low))} to {size(int(high))}"


def _crossings(fits: Sequence[Fits], calls: Mapping[str, Cells]) -> Iterator[str]:
    """Where our schedules cross, at each layout that was measured, by the formulas that fit."""
    own = [(name, parts) for name, parts in fits if name != LIBRARY and any(part.fits for part in parts)]
    if len(own) < 2:
        return
    layouts = dict.fromkeys(layout for name, _ in own for layout in calls[name].layouts)
    largest = max(float(p.nbytes[-1]) for name, _ in own for p in calls[name].points)
    for ranks, per_host in sorted(layouts):
        found = [(at, name) for at, name in crossovers(own, ranks, per_host, 8, largest)]
        told = [f"{name} from {_about(at)}" for at, name in _changes(found)]
        yield f"{count(ranks, 'rank')}, by formula the fastest: {', '.join(told)}."


def _changes(found: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """The first of each run of equal names."""
    return [next(group) for _, group in groupby(found, key=lambda f: f[1])]


def _about(nbytes: float) -> str:
    """A size that is computed, to two digits: ``12 KiB``."""
    for name, unit in (("MiB", 2.0**20), ("KiB", 2.0**10)):
        if nbytes >= unit:
            return f"{nbytes / unit:.2g} {name}" if nbytes < 100 * unit else f"{nbytes / unit:.0f} {name}"
    return f"{nbytes:.0f} B"
