"""Tables of summaries: one line per fabric under each size, or modes side by side."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tabulate import tabulate

from reports.summary import Summary
from reports.units import size
from reports.view import grouped

WIDTH = 100
Cell = Callable[[Summary], str]


@dataclass(frozen=True)
class Column:
    """A column of a table of summaries."""

    head: str
    cell: Cell
    align: Literal["left", "right"] = "right"


def prose(text: str, indent: str = "", first: str | None = None) -> str:
    """A paragraph filled to the report's width."""
    lead = indent if first is None else first
    return textwrap.fill(text, WIDTH, initial_indent=lead, subsequent_indent=indent,
                         break_long_words=False, break_on_hyphens=False)  # fmt: skip


def bullet(text: str) -> str:
    """A list item filled to the report's width."""
    return prose(text, "  ", "- ")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], aligns: Sequence[str]) -> str:
    """A plain table of strings; columns that hold nothing are left out. A heading may have several lines."""
    body = [list(row) for row in rows]
    kept = [i for i in range(len(heads)) if any(row[i] for row in body)]
    if not kept:
        return ""
    # Heading and rule are rows like the others: tabulate would widen each headed column by two.
    head = _head(heads)
    wide = [max(len(row[i]) for row in [*head, *body]) for i in kept]
    rule = ["-" * width for width in wide]
    above = [[row[i] for i in kept] for row in head]
    drawn = tabulate([*above, rule, *([row[i] for i in kept] for row in body)], tablefmt="plain",
                     disable_numparse=True, colalign=[aligns[i] for i in kept])  # fmt: skip
    return "\n".join(line.rstrip() for line in drawn.splitlines())


def _head(heads: Sequence[str]) -> list[list[str]]:
    """The headings as rows, ending together."""
    lines = [head.split("\n") for head in heads]
    deep = max(map(len, lines), default=1)
    return [list(row) for row in zip(*([""] * (deep - len(told)) + told for told in lines), strict=True)]


def pairs(rows: Iterable[tuple[str, str]]) -> str:
    """Names beside their text, which is filled to the report's width; empty ones are left out."""
    given = [(name, text) for name, text in rows if text]
    wide = max((len(name) for name, _ in given), default=0) + 2
    return "\n".join(prose(text, " " * wide, name.ljust(wide)) for name, text in given)


def by_size(
    summaries: Iterable[Summary], columns: Sequence[Column], of: Cell | None = None, apart: bool = False
) -> str:
    """Rows grouped by size with a line per fabric, in the order given within a size; each size named once.

    ``of`` names the group where it is not the size; ``apart`` leaves a line between groups.
    """
    label = of or (lambda s: size(s.nbytes))
    rows: list[list[str]] = []
    ranked = sorted(summaries, key=lambda s: -1 if s.nbytes is None else s.nbytes)
    for name, group in grouped(ranked, label).items():
        cells = [[column.cell(s) for column in columns] for s in group]
        rows += [[""] * (len(columns) + 1)] if apart and rows else []
        rows += [["" if name == "-" or i else name, *row] for i, row in enumerate(cells)]
    aligns = ["right", *(column.align for column in columns)]
    return table(["size", *(column.head for column in columns)], rows, aligns)


def side_by_side(columns: Sequence[tuple[str, Mapping[str, str]]], first: str = "", at_once: int = 3) -> list[str]:
    """Quantities down, columns across, so many at a time that the table fits the page."""
    tables = []
    for start in range(0, len(columns), at_once):
        part = columns[start : start + at_once]
        names = dict.fromkeys(name for _, cells in part for name in cells)
        rows = [[name, *(cells.get(name, "-") for _, cells in part)] for name in names]
        tables.append(table([first, *(head for head, _ in part)], rows, ["left", *["right"] * len(part)]))
    return tables


def fitted(columns: Sequence[tuple[str, Mapping[str, str]]], at_once: int = 4) -> list[str]:
    """The same with as many columns at a time as fit the page, at most ``at_once``."""
    for many in range(at_once, 1, -1):
        drawn = side_by_side(columns, at_once=many)
        if all(len(line) <= WIDTH for part in drawn for line in part.splitlines()):
            return drawn
    return side_by_side(columns, at_once=1)
