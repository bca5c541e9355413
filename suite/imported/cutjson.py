"""JSON documents of a file, one after another, the last of which may be cut off: what is whole of it is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from suite.imported.model import Trouble

CUT = "the JSON is cut off here: what came before is kept"
WRONG = "no JSON from here on: what came before is kept"
_TRIES = 8
_CLOSES = {"{": "}", "[": "]"}


@dataclass(frozen=True)
class Document:
    """One document and the line that it begins in."""

    line: int
    data: Any


def documents(text: str) -> tuple[tuple[Document, ...], tuple[Trouble, ...]]:
    """The documents of ``text``, commas between them allowed; what comes after a fault is left over."""
    decoder = json.JSONDecoder(parse_constant=lambda _: None)
    found: list[Document] = []
    at = 0
    while (at := _skip(text, at)) < len(text):
        line = _line(text, at)
        if text[at] not in _CLOSES:  # a bare word or number is no suite's document
            return tuple(found), (Trouble(line, "no JSON object or list begins here", _line(text, len(text))),)
        try:
            data, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            fault = error.pos if isinstance(error, json.JSONDecodeError) else at
            whole = _mended(text[at:fault], decoder)
            troubles = (Trouble(_line(text, fault), CUT if fault >= len(text.rstrip()) else WRONG),)
            return (*found, *([Document(line, whole)] if whole else [])), troubles
        found.append(Document(line, data))
    return tuple(found), ()


def _skip(text: str, at: int) -> int:
    while at < len(text) and (text[at].isspace() or text[at] == ","):
        at += 1
    return at


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, min(at, len(text.rstrip()))) + 1


def _mended(text: str, decoder: json.JSONDecoder) -> Any:
    """The document up to its last whole member, closed there; None where there is none."""
    for end, closing in reversed(list(_ends(text))[-_TRIES:]):
        try:
            return decoder.raw_decode(text[:end] + closing)[0]
        except (ValueError, RecursionError):
            continue
    return None


def _ends(text: str) -> Iterator[tuple[int, str]]:
    """After each closed object or list: the position, and what closes all that is still open.

    Only there, since a number that ends with the text may have had more digits.
    """
    stack: list[str] = []
    quoted = escaped = False
    for place, letter in enumerate(text):
        if quoted:
            quoted = escaped or letter != '"'
            escaped = letter == "\\" and not escaped
        elif letter == '"':
            quoted = True
        elif letter in _CLOSES:
            stack.append(_CLOSES[letter])
        elif stack and letter == stack[-1]:
            stack.pop()
            yield place + 1, "".join(reversed(stack))
