"""Tables of text logs: a heading, then a row a line. What no table may hold is found here for all formats."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from suite.imported.model import Found, Line, Malformed, Trouble, cut_row, joined, shown

TWICE = "a size comes twice in one table: outputs are interleaved, and whose row is whose is not known"
EMPTY = "a table without rows: cut off, or its rows are elsewhere"
CUT = "the line has no end: cut off"
UNKNOWN = "not understood"


@dataclass
class Reader:
    """Collects what the lines of one section give; ``last`` is the number of the file's last line if it has no end."""

    last: int = 0
    found: list[Found] = field(default_factory=list)
    left: list[tuple[int, str]] = field(default_factory=list)
    _rows: list[tuple[Line, Found]] = field(default_factory=list)
    _seen: set[Hashable] = field(default_factory=set)
    _twice: bool = False
    _heading: int = 0

    def table(self, heading: int) -> None:
        """Begin a table whose heading or title is in that line, and end the one before."""
        self.end()
        self._heading = heading

    def row(self, line: Line, read: Callable[[Line], Sequence[Found]], key: Callable[[Found], Hashable]) -> None:
        """A row, which ``read`` makes results of, or which is left over; ``key`` must differ in all rows of a table."""
        if line.number == self.last and cut_row([row for row, _ in self._rows], line):
            self.leave(line, CUT)
            return
        try:
            results = read(line)
        except Malformed as error:
            self.leave(line, str(error))
            return
        for result in results:
            self._twice |= key(result) in self._seen
            self._seen.add(key(result))
            self._rows.append((line, result))

    def leave(self, line: Line, why: str = "") -> None:
        """A line that is not understood."""
        self.left.append((line.number, why or f"{UNKNOWN}: {shown(line.text.strip())}"))

    def end(self) -> None:
        """End the table: keep its rows, unless they cannot all be its own."""
        if self._twice:
            self.left += [(row.number, TWICE) for row, _ in self._rows]
        else:
            self.found += [result for _, result in self._rows]
        if self._heading and not self._rows and not any(line > self._heading for line, _ in self.left):
            self.left.append((self._heading, EMPTY))
        self._rows, self._seen, self._twice, self._heading = [], set(), False, 0

    @property
    def troubles(self) -> tuple[Trouble, ...]:
        """What was left over, in the order of lines."""
        return joined(dict.fromkeys(self.left))
