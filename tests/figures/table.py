"""What every figures' target prints and writes: rows of {figure, target, got, n, ok}."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tabulate import tabulate

RESULTS = Path("results")
Row = dict[str, Any]


def figure(name: str, target: str, got: float | None, n: int, ok: bool, why: str = "") -> Row:
    """One row of the figures' table; ``why`` says what holds a figure back that is missed."""
    return {**shown(name, got, n, why), "target": target, "ok": bool(ok)}


def shown(name: str, got: float | None, n: int, why: str = "") -> Row:
    """A row without a target: measured and printed, not judged."""
    value = None if got is None else round(float(got), 4)
    return {"figure": name, "target": "", "got": value, "n": n, "ok": None, "why": why}


def show(figures: Sequence[Row]) -> None:
    """Print the table, a missed figure as missed."""
    verdicts = {True: "met", False: "MISSED", None: "shown"}
    rows = [(f["figure"], f["target"], f["got"], f["n"], verdicts[f["ok"]], f["why"]) for f in figures]
    print("\n" + tabulate(rows, headers=("figure", "target", "got", "n", "", "")), flush=True)


def write(name: str, rows: Sequence[Row], figures: Sequence[Row]) -> None:
    """Write ``results/NAME.json``."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps({"rows": rows, "figures": figures}, indent=1) + "\n")
