"""On which line of a TOML file something stands, which tomllib does not tell."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Lines:
    """A TOML text that holds an array of tables; ``starts`` are the lines (from 1) on which its tables begin."""

    lines: tuple[str, ...]
    starts: tuple[int, ...]

    @classmethod
    def read(cls, text: str, array: str) -> Lines:
        """``text`` is valid TOML, and ``[[array]]`` its tables; none of them where they are written another way."""
        lines = tuple(text.split("\n"))
        header = re.compile(rf"\s*\[\[\s*{re.escape(array)}\s*\]\]")
        starts = tuple(number for number, line in enumerate(lines, 1) if header.match(line))
        tables = tomllib.loads(text).get(array, [])
        return cls(lines, starts if isinstance(tables, list) and len(starts) == len(tables) else ())

    def of(self, number: int, key: str | None) -> int:
        """The line of a table's key, or of the table where ``key`` is None or not found."""
        if not self.starts:
            return 1
        start = self.starts[number]
        end = self.starts[number + 1] - 1 if number + 1 < len(self.starts) else len(self.lines)
        inside = self.lines[start:end]
        return start if key is None else start + (_first(inside, lambda data: key in data) or 0)

    def top(self, key: str) -> int:
        """The line of a key outside the tables; 1 where it is not found."""
        return _first(self.lines, lambda data: key in data) or 1


def _first(lines: Sequence[str], holds: Callable[[Mapping[str, Any]], bool]) -> int | None:
    """The line from which on the text, read up to a line's end, holds something: the first of a value of several."""
    whole = 0  # how many lines make a text without it
    for number in range(1, len(lines) + 1):
        try:
            data = tomllib.loads("\n".join(lines[:number]))
        except tomllib.TOMLDecodeError:
            continue
        if holds(data):
            return whole + 1
        whole = number
    return None
