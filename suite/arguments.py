"""Argument types of the command line: what argparse's own would let pass."""

from __future__ import annotations

import argparse
import math
import re
from pathlib import Path

from microbench.sizes import shown
from reports.units import BYTE_RATES

LONGEST_S = 86400.0
MOST = 2**31 - 1
"""Of anything that is counted: what an int of C holds."""
_LARGEST = 2**63 - 1
_MOST_DIGITS = 19  # of that; int() refuses thousands of them
_LONGEST_H = 99999


def count(text: str) -> int:
    """A whole number from 1 to :data:`MOST`."""
    return _number(text, 1, MOST)


def whole(text: str) -> int:
    """A whole number from 0 to what 63 bits hold."""
    return _number(text, 0, _LARGEST)


def _number(text: str, least: int, most: int) -> int:
    digits = text.lstrip("0") or "0"
    if not text.isascii() or not text.isdigit() or (len(digits) <= _MOST_DIGITS and int(digits) < least):
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a whole number from {least} on")
    if len(digits) > _MOST_DIGITS or int(digits) > most:
        raise argparse.ArgumentTypeError(f"{shown(text)} is too large: at most {most}")
    return int(digits)


def seconds(text: str) -> float:
    """A time above 0, at most a day."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if value > LONGEST_S:
        raise argparse.ArgumentTypeError(f"{text!r} is too long: at most {LONGEST_S:g} s, a day")
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0, up to a day")
    return value


def duration(text: str) -> float:
    """A time in s from ``90s``, ``30m``, ``2h`` or ``1h30m``; a number without a unit could mean any of them."""
    found = re.fullmatch(r"(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?", text)
    hours, minutes, whole_s = (float(part or 0) for part in found.groups()) if found else (0.0, 0.0, 0.0)
    value = 3600 * hours + 60 * minutes + whole_s
    if not value:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 90s, 30m, 2h or 1h30m (whole numbers)")
    if value > 3600 * _LONGEST_H:
        raise argparse.ArgumentTypeError(f"{text!r} is too long: at most {_LONGEST_H}h")
    return value


def share(text: str) -> float:
    """A part of 1: from 0 to below 1."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a part from 0 to below 1, such as 0.01")
    return value


def add_units(parser: argparse.ArgumentParser) -> None:
    """Add ``--units``, in which text prints rates; what programs read stays in base units."""
    parser.add_argument(
        "--units", choices=list(BYTE_RATES), default="decimal",
        help="rates in MB/s = 1e6 B/s or MiB/s = 2^20 B/s (default decimal); JSON and CSV stay in B/s",
    )  # fmt: skip


def folder(text: str) -> Path:
    """A path that is not empty, as an unset variable of a shell would be."""
    if not text.strip():
        raise argparse.ArgumentTypeError("the folder's name is empty")
    return Path(text)
