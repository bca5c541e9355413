"""Every planted fault, again and again: how often it is told."""

from __future__ import annotations

import os
from pathlib import Path

from tests.fabrics import planted
from tests.figures.table import Row, figure


def measure(folder: Path, repetitions: int) -> tuple[list[Row], list[Row]]:
    """A row per fault, with what was told instead the last time that it was not told."""
    where = folder / "faults"
    where.mkdir()
    rows: list[Row] = []
    with planted.stage(f"faults{os.getpid()}", where) as stage:
        for name, told in planted.FAULTS.items():
            instead = [_once(told, stage) for _ in range(repetitions)]
            missed = [text for text in instead if text]
            rows.append({"fault": name, "told": repetitions - len(missed), "of": repetitions,
                         "instead": missed[-1][:200] if missed else ""})  # fmt: skip
            print(f"faults: {rows[-1]}", flush=True)
    told_always = sum(row["told"] == row["of"] for row in rows)
    name = f"planted faults told in {repetitions} of {repetitions}"
    return rows, [figure(name, f"= {len(rows)}", told_always, len(rows), told_always == len(rows))]


def _once(told: object, stage: planted.Stage) -> str:
    try:
        return str(told(stage)) if callable(told) else "no fault"
    except AssertionError as error:
        return str(error) or "failed"
