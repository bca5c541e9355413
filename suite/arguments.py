"""Argument types of the command line: what argparse's own would let pass."""

from __future__ import annotations

import argparse
import math
from pathlib import Path


def count(text: str) -> int:
    """A whole number from 1 on."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def seconds(text: str) -> float:
    """A finite time above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value


def folder(text: str) -> Path:
    """A path that is not empty, as an unset variable of a shell would be."""
    if not text.strip():
        raise argparse.ArgumentTypeError("the folder's name is empty")
    return Path(text)
