"""The one grammar of message sizes.

``8``, ``64K``, ``1MiB`` and ``2g`` are sizes (K = 1024, whatever follows it: ``k``, ``K``, ``KB``, ``KiB``);
``8:4M`` doubles from 8 to 4 MiB; commas join. Everything else is an error that names the token.
"""

from __future__ import annotations

import re

from fabrics.errors import UserError

_UNITS = {"": 0, "k": 10, "m": 20, "g": 30}
_SIZE = re.compile(r"([0-9]+)(?:([kmg])(?:i?b)?|b)?", re.IGNORECASE | re.ASCII)
_LARGEST = 2**50
_MOST_DIGITS = 16  # of 2^50; int() refuses thousands of them
ALLOWED = "such as 8, 64K, 1MiB, a range by doubling such as 8:4M, or a list 1,3,1000"


def parse_size(token: str) -> int:
    """Bytes of one size token; UserError names it when it is malformed or beyond 1 PiB."""
    match = _SIZE.fullmatch(token)
    if match is None:
        raise UserError(f"malformed size {shown(token)}: allowed are sizes {ALLOWED}")
    digits = match[1].lstrip("0") or "0"
    if len(digits) > _MOST_DIGITS or (nbytes := int(digits) << _UNITS[(match[2] or "").lower()]) > _LARGEST:
        raise UserError(f"size {shown(token)} is beyond 1 PiB")
    return nbytes


def shown(token: str) -> str:
    """What was given, in quotes and not too long."""
    return repr(token if len(token) <= 40 else f"{token[:37]}...")


def parse_sizes(text: str) -> tuple[int, ...]:
    """Bytes of a list of sizes and ranges, in the order given, without repeats."""
    sizes: list[int] = []
    for token in text.split(","):
        sizes.extend(_range(token) if ":" in token else [parse_size(token.strip())])
    return tuple(dict.fromkeys(sizes))


def _range(token: str) -> list[int]:
    first, _, last = token.strip().partition(":")
    low, high = parse_size(first), parse_size(last)
    if low == 0:
        raise UserError(f"range {token!r} doubles, and 0 doubled stays 0: write {_from_zero(high, last)}")
    if high < low:
        raise UserError(f"range {token!r} is empty: {last} is less than {first}")
    sizes = [low]
    while sizes[-1] * 2 <= high:
        sizes.append(sizes[-1] * 2)
    return sizes


def _from_zero(high: int, last: str) -> str:
    """What a range from 0 may have been meant as, for the smallest types and for those of up to 8 bytes."""
    if high < 2:
        return "0" if high == 0 else "0,1"
    wider = f"0,8:{last}" if high > 8 else "0,8" if high == 8 else ""
    return f"0,1:{last}" + (f", or {wider} where elements have several bytes" if wider else "")
