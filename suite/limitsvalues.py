"""The values of a limits file's keys: how each is read, and what it takes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, get_args

from fabrics.errors import UserError
from fabrics.model import Kind
from microbench.sizes import parse_size
from reports.limits.model import JUDGE, NOT, REFERENCES, Range
from reports.limits.quantities import PERCENTILES, UNITS

Reader = Callable[[Any], Any]
SELECTED = ("benchmark", "fabric", "kind", "backend", "algorithm", "mode", "recipe", "dtype", "device", "direction",
            "workload")  # fmt: skip
"""What cases are selected by name, each with patterns such as ``eth*``."""


def _text(value: Any) -> str:
    """One line that is not empty."""
    if not isinstance(value, str) or not value.isprintable() or not value.strip():
        raise ValueError(value)
    return value


def _texts(value: Any) -> tuple[str, ...]:
    """One text, or a list of some; an empty one means a field that is empty, as the usual mode is."""
    found = value if isinstance(value, list) else [value]
    if not found or not all(isinstance(one, str) for one in found):
        raise ValueError(value)
    return tuple(found)


def _kinds(value: Any) -> tuple[str, ...]:
    """Kinds of fabrics: a pattern that fits none of them cannot be meant."""
    found = _texts(value)
    for pattern in found:
        if not any(fnmatchcase(kind, pattern.removeprefix(NOT)) for kind in get_args(Kind)):
            raise UserError(f"no fabric is of kind {pattern.removeprefix(NOT)!r}: one of {', '.join(get_args(Kind))}")
    return found


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(value)
    return float(value)


def _share(value: Any) -> float:
    if not 0 <= (found := _number(value)) < 1:
        raise ValueError(value)
    return found


def _reference(value: Any) -> float | str:
    if isinstance(value, str):
        if value not in REFERENCES:
            raise ValueError(value)
        return value
    if (found := _number(value)) <= 0:
        raise ValueError(value)
    return found


def _one_of(allowed: Mapping[Any, Any] | tuple[Any, ...]) -> Reader:
    def read(value: Any) -> Any:
        if isinstance(value, bool | float | list | dict) or value not in allowed:
            raise ValueError(value)
        return value

    return read


def _judge(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(one in JUDGE for one in value):
        raise ValueError(value)
    return tuple(value)


def _sizes(value: Any) -> tuple[Range, ...]:
    return _ranges([token for text in _texts(value) for token in text.split(",")], parse_size)


def _ranks(value: Any) -> tuple[Range, ...]:
    found = value if isinstance(value, list) else [value]
    if not found or not all(isinstance(one, int | str) and not isinstance(one, bool) for one in found):
        raise ValueError(value)
    return _ranges([str(one) for one in found], _rank)


def _rank(text: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) < 1:
        raise UserError(f"{text!r} is no number of ranks")
    return int(text)


def _ranges(tokens: list[str], of: Callable[[str], int]) -> tuple[Range, ...]:
    """``8``, ``1M:4M``, ``1M:`` and ``:4M``, ends included."""
    found = []
    for written in (token.strip() for token in tokens):
        first, colon, last = written.partition(":")
        if not first and not last and colon:
            raise UserError("':' is everything: leave the key out")
        low = of(first) if first else 0
        high = (of(last) if last else None) if colon else low
        if high is not None and high < low:
            raise UserError(f"range {written!r} is empty: {last} is less than {first}")
        found.append(Range(low, high))
    return tuple(found)


_PATTERNS = 'a pattern or a list of them, such as "eth*", "!tcp-lo" or ["ring", "library"]'
READERS: Mapping[str, tuple[Reader, str]] = MappingProxyType({
    "name": (_text, "a text"),
    "metric": (_text, 'a metric such as "time"'),
    "percentile": (_one_of(PERCENTILES), f"one of {', '.join(map(str, PERCENTILES))}"),
    **{key: (_texts, _PATTERNS) for key in SELECTED},
    "kind": (_kinds, _PATTERNS),
    "sizes": (_sizes, 'sizes or ranges of them such as "8", "1M:" or ["64K", "1M:4M"]'),
    "ranks": (_ranks, 'numbers or ranges of them such as 2, "4:" or [2, "4:8"]'),
    "reference": (_reference, f"a number above 0, or one of {', '.join(REFERENCES)}"),
    "lower": (_number, "a number"),
    "upper": (_number, "a number"),
    "unit": (_one_of(UNITS), f"one of {', '.join(UNITS)}"),
    "warn": (_share, "a part of the limit from 0 to below 1, such as 0.05"),
    "judge": (_judge, f"a list of {', '.join(JUDGE)}"),
    "baseline": (_text, "the path of a baseline"),
})  # fmt: skip
