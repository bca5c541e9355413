"""The figures of the flow: the solver beside a plain C loop of its scheme, and two hosts beside one."""

from __future__ import annotations

import ctypes
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from fabrics.lab.config import LabFabric
from microbench.record import Record
from microbench.stats import quantile
from reports import cells
from reports.chapters.cfd import Loss
from reports.load import load
from reports.summary import Summary, summarise
from reports.units import MS, PERCENT, PLAIN, Unit
from tests import labs
from tests.figures.runs import run
from tests.figures.table import Row, figure, shown
from tests.figures.target import Found
from training.cfd.blocks import Cells, block
from training.cfd.solver import Solver

HERE = Path(__file__).parent
LIMIT = 2.0
AGREED = 1e-12  # relative: the two add in another order
USUAL: Cells = (64, 64, 64)  # the benchmark's own; in a smaller plane numpy's calls cost more than what they do
GRIDS: tuple[Cells, ...] = (USUAL, (96, 96, 32), (48, 48, 48), (32, 32, 32))
JUDGED = "-O3"  # as the project builds its own C
FLAGS = (JUDGED, "-O3 -march=native")
SLOW, FAST = LabFabric("eth1g", 1e9), LabFabric("eth10g", 10e9)
_PLAN = """
[cfd]
budget_s = 10
min_iterations = 6
max_iterations = 8
flows = [{ grid = "64x64x64" }]
"""


class Plain:
    """The C loop with the solver's flow in it."""

    def __init__(self, library: Path, like: Solver) -> None:
        self._like, self._library = like, ctypes.CDLL(str(library))
        self.state, *rest = (like.state.copy() for _ in range(4))
        self._room, self._sums = [*rest[:2], like.state[0].copy(), rest[2]], np.zeros(5)

    def step(self) -> None:
        """One step."""
        arrays = [ctypes.c_void_p(a.ctypes.data) for a in (self.state, *self._room)]
        numbers = [ctypes.c_int64(n) for n in self._like.block.cells]
        scale = ctypes.c_double(self._like.dt / self._like.h)
        self._library.euler_steps(*arrays, *numbers, scale, ctypes.c_int64(1), ctypes.c_void_p(self._sums.ctypes.data))

    @property
    def own(self) -> np.ndarray:
        """The cells without ghosts."""
        return self.state[:, 2:-2, 2:-2, 2:-2]


def compiled(folder: Path, flags: str) -> Path:
    """The loop by the system's own compiler."""
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / f"euler{flags.replace(' ', '')}.so"
    command = ["cc", *flags.split(), "-std=c11", "-shared", "-fPIC", "-o", library, HERE / "euler.c", "-lm"]
    subprocess.run(command, check=True, timeout=120)
    return library


def loop(folder: Path, blocks: int) -> Found:
    """Both in turns in one process, on one core, after they have been seen to compute the same."""
    rows, figures = [], []
    for flags in FLAGS:
        library = compiled(folder, flags)
        for grid in GRIDS:
            row = _beside(library, grid, blocks)
            rows.append({"grid": "x".join(map(str, grid)), "cc": flags, **row})
            name = f"one rank, {rows[-1]['grid']}: time of a step over that of a C loop (cc {flags})"
            rates = f"{row['solver Mcells/s']:.2f} against {row['C Mcells/s']:.2f} Mcells/s"
            why = f"[{row['low']:.2f}, {row['high']:.2f}]; {rates}"
            if (flags, grid) == (JUDGED, USUAL):
                figures.append(figure(name, f"<= {LIMIT:g}", row["ratio"], blocks, row["ratio"] <= LIMIT, why))
            else:
                figures.append(shown(name, row["ratio"], blocks, why))
    return rows, figures


def _beside(library: Path, grid: Cells, blocks: int) -> Row:
    solver = Solver(grid, block(grid, (1, 1), 0), 0.6)
    plain = Plain(library, solver)
    for _ in range(2):
        solver.step()
        plain.step()
    off = float(np.abs(solver.own - plain.own).max() / np.abs(solver.own).max())
    if not off <= AGREED:
        raise RuntimeError(f"the solver and the C loop differ by {off:.2g} on {grid}")
    pairs = np.array([(_timed(solver.step), _timed(plain.step)) for _ in range(blocks)])
    ratio = quantile(pairs[:, 0] / pairs[:, 1])
    each = [float(np.prod(grid)) / float(t) * 1e-6 for t in np.median(pairs, axis=0)]
    return {"solver Mcells/s": each[0], "C Mcells/s": each[1], "ratio": ratio.value,
            "low": ratio.low or np.nan, "high": ratio.high or np.nan, "agree": off}  # fmt: skip


def _timed(step: Callable[[], object]) -> float:
    """Processor seconds of a step, the better of two: what a busy machine adds is neither's."""
    found = []
    for _ in range(2):
        start = time.process_time()
        step()
        found.append(time.process_time() - start)
    return min(found)


def hosts(folder: Path, launches: int) -> Found:
    """Two hosts against one, over 1 and over 10 Gbit/s: communication by mode, and what scaling is lost to."""
    rows: list[Row] = []
    figures: list[Row] = []
    with labs.made("cfd", fabrics=(SLOW, FAST), dpus=False) as lab:
        for fabric in (SLOW, FAST):
            where = run(folder / fabric.name, f"launches = {launches}\n{_PLAN}", lab.config.name, fabric.name)
            s = measured(load(where).records)
            rows += _rows(s)
            figures += _figures(s)
    return rows, figures


def measured(records: Sequence[Record]) -> Summary:
    """The one flow of a run; RuntimeError where it has no numbers."""
    (s,) = summarise(records)
    if not s.published:
        raise RuntimeError(f"{s.id}: {s.status}: {s.reason}")
    return s


def _modes(s: Summary) -> list[str]:
    return [mode for mode in ("blocking", "overlapped", "probes") if f"{mode}.step" in s.metrics]


def _rows(s: Summary) -> Iterator[Row]:
    for mode in _modes(s):
        told = {"step ms": (f"{mode}.step", MS), "exposed ms": (f"{mode}.exposed", MS),
                "exposed %": (f"{mode}.exposed_fraction", PERCENT), "speedup": (f"{mode}.speedup", PLAIN)}  # fmt: skip
        yield {"fabric": s.fabric, "mode": mode, "launches": s.launches, "proof": s.proof,
               **{name: cells.together(metric, unit)(s) for name, (metric, unit) in told.items()}}  # fmt: skip


def _figures(s: Summary) -> Iterator[Row]:
    for mode in _modes(s):
        yield _shown(s, f"{mode}.exposed_fraction", f"{mode}: communication's share of a step", PERCENT)
    blocking, overlapped = (s.value(f"{mode}.exposed") for mode in ("blocking", "overlapped"))
    if blocking and overlapped is not None:
        yield shown(
            f"{s.fabric}: of blocking's communication, hidden by overlapping", 1 - overlapped / blocking, s.launches
        )
    mode = min(_modes(s), key=lambda mode: s.value(f"{mode}.step") or np.inf)
    yield {**_shown(s, f"{mode}.speedup", f"{mode}: two hosts against one", PLAIN), "why": _causes(s, mode)}


def _shown(s: Summary, metric: str, what: str, unit: Unit) -> Row:
    return shown(f"{s.fabric}: {what}", s.value(metric), s.launches, f"{cells.together(metric, unit)(s)} {unit.name}")


def _causes(s: Summary, mode: str) -> str:
    """The interval, and what a step takes beyond half of one host's."""
    loss = Loss.of(s, mode)
    told = (
        ", ".join(f"{MS.text(lost)} ms to {cause}" for cause, lost in loss.causes.items()) if loss else "not measured"
    )
    return f"{cells.together(f'{mode}.speedup', PLAIN)(s)}; beyond half of one host's step: {told}"
