"""Cells and columns: what a table says of one summary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

from reports.buckets import note
from reports.marks import marks
from reports.ratios import speed
from reports.summary import LAUNCHES_FOR_INTERVAL, Summary, basis
from reports.tables import Cell, Column, prose
from reports.units import PERCENT, Unit, size, times
from reports.view import View, grouped, setup_text

APART = "launches differ %"
UNTOLD = "n not told"  # by what was imported
_SHORT = 16  # the longest reason that a cell has room for


def fabric(s: Summary) -> str:
    """The fabric's name."""
    return s.fabric


def value(name: str, unit: Unit) -> Cell:
    """The metric's value in ``unit``, or why there is none."""

    def cell(s: Summary) -> str:
        metric = s.metrics.get(name)
        if metric is None:
            return "-"
        return _brief(metric.note) if metric.value is None else unit.text(metric.value)

    return cell


def interval(name: str, unit: Unit, mixed: bool = False) -> Cell:
    """The metric's interval or range, or why there is none; ``mixed`` marks each with its basis."""

    def cell(s: Summary) -> str:
        ends, metric = s.ends(name), s.metrics.get(name)
        if metric is None or metric.value is None:
            return ""
        if ends is None:
            return _brief(metric.note)
        return unit.inside(*ends, like=metric.value) + (f" {mark(s.spread[name].launches)}" if mixed else "")

    return cell


def upper(name: str, unit: Unit) -> Cell:
    """The metric's value and the upper end of its interval, ``240.1 (262.1)``, or why there is none."""

    def cell(s: Summary) -> str:
        ends, text = s.ends(name), value(name, unit)(s)
        metric = s.metrics.get(name)
        if ends is None or metric is None or metric.value is None:
            return text
        return f"{text} ({unit.text(ends[1], like=metric.value)})"

    return cell


def together(name: str, unit: Unit, mixed: bool = False) -> Cell:
    """Value and interval in one cell: ``36.10 [35.90, 36.40]``, or ``36.10 (n=4 < 6)`` where there is none."""
    number, inside = value(name, unit), interval(name, unit, mixed)

    def cell(s: Summary) -> str:
        ends = inside(s)
        return " ".join(part for part in (number(s), ends if s.ends(name) or not ends else f"({ends})") if part)

    return cell


def with_unit(s: Summary, name: str, unit: Unit) -> str:
    """A number in a sentence: ``36.10 [35.90, 36.40] ms``, ``36.10 ms``, or why there is none, which has no unit."""
    if s.value(name) is None:
        return value(name, unit)(s)
    return f"{(together if s.ends(name) else value)(name, unit)(s)} {unit.name}"


def told(s: Summary, name: str, unit: Unit) -> str:
    """A number as a sentence tells it: ``36.10 [35.90, 36.40] ms (n 30)``."""
    without = "" if s.ends(name) or s.value(name) is None else ", no interval"
    n = samples(name)(s)
    return f"{with_unit(s, name, unit)} ({n if n == UNTOLD else f'n {n}'}{without})"


def samples(name: str) -> Cell:
    """Samples behind the value: ``1000``, or ``3 x 1000`` for three launches (``~`` marks a mean)."""

    def cell(s: Summary) -> str:
        metric, spread = s.metrics.get(name), s.spread.get(name)
        if metric is None:
            return "-"
        if not metric.n and s.imported:
            return UNTOLD
        if spread is None or spread.launches < 2:
            return str(metric.n)
        each, rest = divmod(metric.n, spread.launches)
        return f"{spread.launches} x {'~' if rest else ''}{each}"

    return cell


def apart(name: str) -> Cell:
    """How far the launches lie apart, highest - lowest, in percent of the value; empty where there is only one."""

    def cell(s: Summary) -> str:
        found = s.spread.get(name)
        return "" if found is None or found.launches < 2 or found.relative is None else PERCENT.text(found.relative)

    return cell


def spread(name: str) -> Column:
    """The column of how far the launches lie apart."""
    return Column(APART, apart(name))


def against(v: View, group: Sequence[Summary], name: str) -> Column:
    """How many times faster each line is than the reference fabric at the same size."""
    base = {s.nbytes: s for s in group if s.fabric == v.reference}

    def cell(s: Summary) -> str:
        found = base.get(s.nbytes)
        ratio = speed(s, found, name) if found is not None else None
        return times(ratio.value) if ratio else "-"

    alone = len({s.fabric for s in group}) < 2 or not base
    return Column(f"vs {v.reference}", (lambda _: "") if alone else cell)


def notes(v: View) -> Column:
    """The marks that must be read beside the numbers."""
    return Column("notes", lambda s: marks(v, s), "left")


def interval_columns(group: Sequence[Summary], name: str, unit: Unit, head: str = "") -> list[Column]:
    """Value and interval; the heading names the basis where all lines share it."""
    counts = launch_counts((s, name) for s in group)
    mixed = len(counts) > 1
    bare = counts == [1] and all(s.imported for s in group)
    heading = "interval" if mixed or bare else _heading(counts[0] if counts else 1)
    return [Column(f"{head} {unit.name}".lstrip(), value(name, unit)), Column(heading, interval(name, unit, mixed))]


def launch_counts(numbers: Iterable[tuple[Summary, str]]) -> list[int]:
    """How many launches are behind each of these numbers (a summary, a metric's name): each count once, ascending."""
    return sorted({s.spread[name].launches for s, name in numbers if name in s.spread})


def based(counts: Sequence[int]) -> str:
    """What intervals of so many launches rest on: ``within one launch``, or what each of several marks means."""
    if len(counts) == 1:
        return basis(counts[0])
    return "; ".join(f"{mark(n)}: {basis(n)}" for n in counts)


def titled(title: str, group: Sequence[Summary], names: Sequence[str], drawn: str, intervals: str | None = None) -> str:
    """A table of the metrics ``names`` under its title and setup, with the legends that it needs.

    ``intervals`` says what they rest on; by default that is said where the lines differ in it, since elsewhere the
    heading of the column says it.
    """
    counts = launch_counts((s, name) for s in group for name in names[:1])
    marked = intervals if intervals is not None else based(counts) if len(counts) > 1 else ""
    heading = prose(f"{title}: {setup_text(group[0])}" + (f". Intervals: {marked}" if marked else ""))
    buckets = note(s.nbytes for s in group)
    return "\n\n".join([heading, drawn, *absences(group, names), *([prose(buckets)] if buckets else [])])


def absences(group: Iterable[Summary], names: Iterable[str], line: Cell = fabric) -> list[str]:
    """Why cells say ``n/a``, where the reason is too long for a cell, and in which lines.

    ``line`` names a line of the table beside its size.
    """
    rows, found = list(group), dict[str, list[Summary]]()
    for s, name in product(rows, names):
        said = s.metrics[name].note if name in s.metrics and not s.ends(name) else ""
        if len(said) > _SHORT:
            same = found.setdefault(said.removeprefix("n/a: ").removeprefix("n/a "), [])
            same += [s] if s not in same else []
    told = [f"{reason} ({_lines(same, rows, line)})" for reason, same in found.items()]
    return [prose("n/a: " + "; ".join(told))] if told else []


def _lines(same: Sequence[Summary], rows: Sequence[Summary], line: Cell) -> str:
    """Which lines of a table: ``all``, ``0 B``, ``8 B shm, tcp-lo; 64 KiB``, ``shm``."""
    if len(same) == len(rows) > 1:
        return "all"
    everything, parts = grouped(rows, lambda s: s.nbytes), []
    for nbytes, some in grouped(sorted(same, key=lambda s: s.nbytes or 0), lambda s: s.nbytes).items():
        names = ", ".join(map(line, some))
        whole = len(some) == len(everything[nbytes]) and nbytes is not None
        parts.append(size(nbytes) if whole else names if nbytes is None else f"{size(nbytes)} {names}")
    return "; ".join(parts)


def _brief(note: str) -> str:
    return "-" if not note else note if len(note) <= _SHORT else "n/a"


def mark(launches: int) -> str:
    """The mark behind an interval whose table holds several kinds: ``w``, ``r3``, ``L6``."""
    return "w" if launches <= 1 else f"{'r' if launches < LAUNCHES_FOR_INTERVAL else 'L'}{launches}"


def _heading(launches: int) -> str:
    if launches <= 1:
        return "95 %, 1 launch"
    return f"{'range' if launches < LAUNCHES_FOR_INTERVAL else '95 %'}, {launches} launches"
