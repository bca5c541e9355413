"""A report from stored records, any time later, without MPI."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from reports.comparison.sides import Side
from reports.export import to_csv, to_json
from reports.limits.judge import judge
from reports.limits.junit import to_junit
from reports.limits.model import Judgement, Limits
from reports.load import load
from reports.text import to_text
from reports.units import BYTE_RATES
from reports.view import View, view

FORMATS: Mapping[str, Callable[[View], str]] = MappingProxyType({"text": to_text, "json": to_json, "csv": to_csv})
JUDGED: Mapping[str, Callable[[View, Judgement], str]] = MappingProxyType({"junit": to_junit})
"""The formats that tell nothing but verdicts, so that they take limits."""


def render(
    directory: Path,
    format: str = "text",
    units: str = "decimal",
    limits: Limits | None = None,
    baseline: Side | None = None,
) -> str:
    """The report on the run in ``directory``; ``units``, a key of BYTE_RATES, is for what text prints of rates.

    With ``limits``, chapter 8 has their verdicts, and JSON a key ``verdicts``.
    Raises ValueError for a format that is unknown or takes limits, and NotARun where the folder holds no run.
    """
    allowed = (*FORMATS, *(JUDGED if limits else ()))
    if format not in allowed:
        raise ValueError(f"unknown format {format!r}: one of {', '.join(allowed)}")
    v = view(load(directory), BYTE_RATES[units])
    if limits is None:
        return FORMATS[format](v)
    judgement = judge(v, limits, baseline)
    judged = JUDGED.get(format)
    return judged(v, judgement) if judged else FORMATS[format](replace(v, judgement=judgement))
