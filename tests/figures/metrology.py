"""``make metrology``: do the intervals hold, do two runs of the same agree, is a slow-down found, is time saved,
and does a run survive its ranks?

Half an hour to an hour, as root: the last four run on a lab of their own.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tabulate import tabulate

from fabrics.lab import cluster
from fabrics.lab.config import LabConfig
from tests.figures import coverage, killed, pace, table, twins
from tests.figures.table import Row

PARTS = ("coverage", "twins", "pace", "killed")
Found = tuple[list[Row], list[Row]]


@contextmanager
def _lab() -> Iterator[cluster.Lab]:
    """A lab of two hosts for the time of the measurements."""
    name = cluster.own_name()
    try:
        yield cluster.up(LabConfig(name=name))
    finally:
        cluster.down(name)


def parts(folder: Path, lab: cluster.Lab, quick: bool) -> dict[str, Callable[[], Found]]:
    """What can be measured, by name; ``quick`` does a tenth, to see that it runs."""
    name = lab.config.name
    return {
        "coverage": lambda: coverage.measure(200 if quick else 2000),
        "twins": lambda: twins.measure(folder, lab, 2 if quick else 20),
        "pace": lambda: pace.measure(folder, name, ("shm",) if quick else ("shm", "eth2g5", "eth10g")),
        "killed": lambda: killed.measure(folder, name, 2 if quick else 20),
    }


def main() -> int:
    """Measure, print, and write ``results/metrology.json``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS, action="append", help="this part; may be given again")
    parser.add_argument("--quick", action="store_true", help="a tenth of it, to see that it runs")
    args = parser.parse_args()
    rows: dict[str, list[Row]] = {}
    figures: list[Row] = []
    with tempfile.TemporaryDirectory() as folder, _lab() as lab:
        for name, act in parts(Path(folder), lab, args.quick).items():
            if name in (args.only or PARTS):
                rows[name], found = act()
                print(f"\n{name}\n\n" + tabulate(rows[name], headers="keys", floatfmt=".4g"), flush=True)
                figures += found
    table.show(figures)
    table.write("metrology", [{"part": name, **row} for name, found in rows.items() for row in found], figures)
    return 0 if all(figure["ok"] for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
