"""``make proof``: how long fabrics take to be found, made, tried and proved, and whether every planted fault is told.

About a quarter of an hour, as root: all but the first part is on labs of its own.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tabulate import tabulate

from tests.figures import proof_faults, proof_start, proof_times, table
from tests.figures.table import Row

PARTS = ("discovery", "lab", "start", "probe", "routes", "faults")
Found = tuple[list[Row], list[Row]]


def parts(folder: Path, quick: bool) -> dict[str, Callable[[], Found]]:
    """What can be measured, by name; ``quick`` does a few of each, to see that it runs."""
    return {
        "discovery": lambda: proof_times.discovery(folder, 3 if quick else 20),
        "lab": lambda: proof_times.lab(2 if quick else 10),
        "start": lambda: proof_start.measure(3 if quick else 15),
        "probe": lambda: proof_times.probe(1 if quick else 5),
        "routes": lambda: proof_times.routes(1 if quick else 5),
        "faults": lambda: proof_faults.measure(folder, 1 if quick else 10),
    }


def main() -> int:
    """Measure, print, and write ``results/proof.json``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS, action="append", help="this part; may be given again")
    parser.add_argument("--quick", action="store_true", help="a few of each, to see that it runs")
    args = parser.parse_args()
    rows: dict[str, list[Row]] = {}
    figures: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, act in parts(Path(folder), args.quick).items():
            if name in (args.only or PARTS):
                rows[name], found = act()
                print(f"\n{name}\n\n" + tabulate(rows[name], headers="keys", floatfmt=".4g"), flush=True)
                figures += found
    table.show(figures)
    table.write("proof", [{"part": name, **row} for name, found in rows.items() for row in found], figures)
    return 0 if all(figure["ok"] for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
