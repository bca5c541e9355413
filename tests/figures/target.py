"""What the targets of several parts do: measure those asked for, print each, and write all."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tabulate import tabulate

from tests.figures import table
from tests.figures.table import Row

Found = tuple[list[Row], list[Row]]
Parts = Mapping[str, Callable[[], Found]]


def run(name: str, doc: str | None, names: Sequence[str], parts: Callable[[Path, bool], Parts]) -> int:
    """Measure the parts, print, and write ``results/NAME.json``; 0 if every figure that is judged is met.

    ``parts`` are made for a folder that lasts as long, and for doing a few of each to see that they run.
    """
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--only", choices=names, action="append", help="this part; may be given again")
    parser.add_argument("--quick", action="store_true", help="a few of each, to see that it runs")
    args = parser.parse_args()
    rows: dict[str, list[Row]] = {}
    figures: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for part, act in parts(Path(folder), args.quick).items():
            if part in (args.only or names):
                rows[part], found = act()
                print(f"\n{part}\n\n" + tabulate(rows[part], headers="keys", floatfmt=".4g"), flush=True)
                figures += found
    table.show(figures)
    table.write(name, [{"part": part, **row} for part, found in rows.items() for row in found], figures)
    return 0 if all(figure["ok"] is not False for figure in figures) else 1
