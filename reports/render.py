"""A report from stored records, any time later, without MPI."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from reports.export import to_csv, to_json
from reports.load import load
from reports.text import to_text
from reports.units import BYTE_RATES
from reports.view import View, view

FORMATS: Mapping[str, Callable[[View], str]] = MappingProxyType({"text": to_text, "json": to_json, "csv": to_csv})


def render(directory: Path, format: str = "text", units: str = "decimal") -> str:
    """The report on the run in ``directory``; ``units``, a key of BYTE_RATES, is for what text prints of rates.

    Raises ValueError for an unknown format, and NotARun where the folder holds no run.
    """
    if format not in FORMATS:
        raise ValueError(f"unknown format {format!r}: one of {', '.join(FORMATS)}")
    return FORMATS[format](view(load(directory), BYTE_RATES[units]))
