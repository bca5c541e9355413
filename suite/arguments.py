"""Argument types of the command line: what argparse's own would let pass."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

LONGEST_S = 86400.0


def count(text: str) -> int:
    """A whole number from 1 on."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def seconds(text: str) -> float:
    """A time above 0, at most a day."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= LONGEST_S:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0, up to a day")
    return value


def folder(text: str) -> Path:
    """A path that is not empty, as an unset variable of a shell would be."""
    if not text.strip():
        raise argparse.ArgumentTypeError("the folder's name is empty")
    return Path(text)
