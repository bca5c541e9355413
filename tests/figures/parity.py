"""``make parity``: is the native loop as fast as C, and does the suite keep to its times?

Native loop and C reference alternate in blocks in one process. A cell's ratio is the median over pairs of blocks
of (native median / reference median), with its exact 95 % interval.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from tabulate import tabulate

from microbench.stats import geometric_mean, quantile
from suite import launch
from tests.figures import table
from tests.figures.table import Row, figure

HERE = Path(__file__).parent
SMALL_BYTES = 65536


def compile_reference(mpiexec: str, folder: Path) -> Path:
    """Build the reference with the mpicc beside mpiexec."""
    library = folder / "libreference.so"
    mpicc = Path(mpiexec).with_name("mpicc")
    subprocess.run([mpicc, "-O3", "-shared", "-fPIC", "-o", library, HERE / "reference.c"], check=True, timeout=120)
    return library


def cells(launcher: launch.Launcher, library: Path, *more: str) -> list[Row]:
    """Run the worker on two ranks (``more``: pairs, sizes, names) and summarise its cells."""
    program = [sys.executable, "-m", "tests.figures.parity_worker", str(library), *more]
    command = launch.job_command(launcher, (launch.LOCAL,) * 2, program, {})
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, timeout=1800, env=launch.clean_environment()
    )
    return [summarise(json.loads(line)) for line in done.stdout.splitlines() if line.startswith("{")]


def summarise(cell: Row) -> Row:
    """One row of the table from the medians of its blocks."""
    native, reference = (np.array(cell[key]) * 1e-9 for key in ("native_ns", "reference_ns"))
    ratio = quantile(native / reference)
    return {
        "mpi": cell["mpi"],
        "benchmark": cell["benchmark"],
        "nbytes": cell["nbytes"],
        "reference_s": float(np.median(reference)),
        "native_s": float(np.median(native)),
        "ratio": ratio.value,
        "low": ratio.low,
        "high": ratio.high,
        "n": ratio.n,
    }


def loop_figures(rows: list[Row]) -> list[Row]:
    """The figures that the cells must meet."""
    small = [row for row in rows if row["nbytes"] <= SMALL_BYTES]
    large = [row for row in rows if row["nbytes"] > SMALL_BYTES]
    mean = geometric_mean([row["ratio"] for row in small])
    return [
        figure("geometric mean of ratios, 0 B-64 KiB", "<= 1.02", mean, len(small), mean <= 1.02),
        worst("largest lower end of an interval, 0 B-64 KiB", small, "low", 1.03),
        worst("largest median ratio, 0 B-64 KiB", small, "ratio", 1.06),
        worst("largest lower end of an interval, above 64 KiB", large, "low", 1.10),
    ]


def worst(name: str, rows: list[Row], key: str, limit: float) -> Row:
    """The largest value of a column against its limit."""
    row = max(rows, key=lambda r: float(r[key]))
    return figure(
        f"{name} ({row['benchmark']} {row['nbytes']} B)",
        f"<= {limit}",
        row[key],
        len(rows),
        row[key] <= limit,
    )


def timed(name: str, limit_s: float, *arguments: str) -> Row:
    """How long the command takes, as a whole process."""
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "suite.cli", *arguments],
        stdout=subprocess.DEVNULL,
        check=False,
        timeout=4 * limit_s + 60,
    )
    took = time.monotonic() - start
    return figure(
        f"{name}, s (exit {done.returncode})",
        f"<= {limit_s:g}",
        took,
        1,
        took <= limit_s and not done.returncode,
    )


def suite_figures(folder: Path, only: str) -> list[Row]:
    """Times of the tiers, and of a report made from their records."""
    quick, default = folder / "quick", folder / "default"
    rows = [
        timed("run --quick", 180, "run", "--quick", "-o", str(quick)),
        timed("report of it from records", 2, "report", str(quick)),
    ]
    if only != "quick":
        rows.append(timed("run, default tier", 720, "run", "-o", str(default)))
        rows.append(timed("report of it from records", 2, "report", str(default)))
    return rows


def show(rows: list[Row]) -> None:
    """Print the cells, where there are any."""
    if rows:
        cells = [
            (r["mpi"], r["benchmark"], r["nbytes"], f"{r['reference_s'] * 1e6:.3f}", f"{r['native_s'] * 1e6:.3f}",
             f"{r['ratio']:.3f}", f"[{r['low']:.3f}, {r['high']:.3f}]", r["n"]) for r in rows
        ]  # fmt: skip
        print(
            tabulate(
                cells,
                headers=("MPI", "benchmark", "bytes", "C us", "native us", "ratio", "95 % interval", "n"),
            )
        )


def main() -> int:
    """Measure, print, and write ``results/parity.json``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("all", "loop", "quick"), default="all")
    only = parser.parse_args().only
    launcher = launch.find_launcher()
    rows: list[Row] = []
    figures: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        if only != "quick":
            rows = cells(launcher, compile_reference(launcher.path, Path(folder)))
            figures = loop_figures(rows)
        if only != "loop":
            figures += suite_figures(Path(folder), only)
    show(rows)
    table.show(figures)
    backend = launch.backend(launch.library())
    table.write("parity" if backend == "mpich" else f"parity-{backend}", rows, figures)
    return 0 if all(f["ok"] for f in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
