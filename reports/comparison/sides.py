"""One side of a comparison: the cases of a run, or of a baseline of several, with the numbers of each launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from microbench.record import Better, Metric, Record
from microbench.stats import block_medians
from reports.chapters.missing import unrecorded
from reports.samples import series
from reports.summary import WRONG, Summary
from reports.view import View

FEWEST_RUNS = 3  # of a baseline, to judge by: of two nobody knows which is the lucky one
_FIELDS = ("benchmark", "fabric", "recipe", "backend", "mpi", "thread_level", "algorithm", "mode", "workload", "device",
           "direction", "nbytes", "dtype", "ranks", "ranks_per_host", "hosts", "proof", "emulated",
           "oversubscribed")  # fmt: skip
_ABOUT = ("hostname", "kernel", "cpu", "mpi")
_RATES = ("bytes/s", "messages/s")


@dataclass(frozen=True)
class Launch:
    """A metric in one launch: its value, and where samples are on disk what a bootstrap may draw in their place."""

    value: float
    blocks: tuple[float, ...] = ()

    @property
    def drawn(self) -> tuple[float, ...]:
        """The blocks, or the value alone."""
        return self.blocks or (self.value,)


@dataclass(frozen=True)
class Series:
    """A metric of a case: the launches of each run, in base units."""

    unit: str
    better: Better
    runs: tuple[tuple[Launch, ...], ...]

    @property
    def launches(self) -> tuple[Launch, ...]:
        """Those of all runs."""
        return tuple(launch for run in self.runs for launch in run)

    @property
    def values(self) -> list[float]:
        """One value a launch."""
        return [launch.value for launch in self.launches]

    @property
    def medians(self) -> list[float]:
        """The median over launches of each run."""
        return [float(np.median([launch.value for launch in run])) for run in self.runs]

    @property
    def value(self) -> float:
        """The median over the runs of each run's median, which no single lucky run moves far."""
        return float(np.median(self.medians))

    @property
    def noise(self) -> float | None:
        """By what part the runs' medians lie apart, A against A: highest / lowest - 1; None of one run."""
        low, high = min(self.medians), max(self.medians)
        return high / low - 1 if len(self.runs) > 1 and low > 0 else None


@dataclass(frozen=True)
class SideCase:
    """A case: what it is (a record's fields that tell, ``pages`` and ``sync`` of its method), and its metrics."""

    id: str
    fields: Mapping[str, Any]
    metrics: Mapping[str, Series]


@dataclass(frozen=True)
class Side:
    """A run or a baseline. ``runs`` tells of each run where and when it was; ``wrong`` why a case has no number."""

    name: str
    runs: tuple[Mapping[str, Any], ...]
    cases: Mapping[str, SideCase]
    wrong: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()


def of_run(v: View, name: str, directory: Path | None = None) -> Side:
    """A run as a side; with its ``directory`` the samples within launches are read, too."""
    cases = {s.id: _case(v, s, directory) for s in v.published}
    wrong = {s.id: f"{s.status}: {s.reason}" if s.status != "ok" else "its bytes left the fabric (disproved)"
             for s in v.summaries if not s.published}  # fmt: skip
    partly = {s.id: why for s in v.published if (why := _lost(v, s))}
    known = {s.id for s in v.summaries}
    never = {p.case: "planned, but there is no record of it" for p in unrecorded(v) if p.case not in known}
    return Side(name, (about(v),), cases, wrong | partly | never, v.data.notices)


def _lost(v: View, s: Summary) -> str:
    """What went wrong in a launch of a case that others measured."""
    bad = [r for r in v.records if r.id == s.id and r.status in WRONG] if s.launches < s.attempted else []
    return f"launch {bad[0].launch} {bad[0].status}: {bad[0].reason}" if bad else ""


def about(v: View) -> dict[str, Any]:
    """Where and when a run was made."""
    run, system = v.data.run, v.data.environment
    told = {"id": run.get("id"), "started": run.get("started"), "fabricbench": run.get("fabricbench")}
    return {**told, **{name: system.get(name) for name in _ABOUT}}


def _case(v: View, s: Summary, directory: Path | None) -> SideCase:
    records = v.launches(s)
    fields = {name: getattr(s, name) for name in _FIELDS}
    fields |= {"hosts": list(s.hosts), "pages": str(s.method.get("pages", "")), "sync": str(s.method.get("sync", ""))}
    found: dict[str, Series] = {}
    shapes = [_shape(directory, r) for r in records] if directory is not None else [None] * len(records)
    for name in (name for name in s.metrics if s.value(name) is not None):
        there = [(r.metrics[name], shape) for r, shape in zip(records, shapes, strict=True) if name in r.metrics]
        launches = tuple(_launch(name, m, m.value, shape) for m, shape in there if m.value is not None)
        if launches:
            first = there[0][0]
            found[name] = Series(first.unit, first.better, (launches,))
    return SideCase(s.id, fields, found)


def _shape(directory: Path | None, record: Record) -> Sequence[float] | None:
    """Block medians of the headline's samples, over their median: what all times and rates of a record follow."""
    times = None if directory is None else series(directory, record)
    middle = 0.0 if times is None else float(np.median(times))
    return None if times is None or middle <= 0 else [float(x) for x in block_medians(times) / middle]


def _launch(name: str, metric: Metric, value: float, shape: Sequence[float] | None) -> Launch:
    """A launch's value; the headline's and its rates' with what their samples look like around it."""
    if shape is None or (name != "time" and metric.unit not in _RATES):
        return Launch(value)
    around = [value * x for x in shape] if name == "time" else [value / x for x in shape if x > 0]
    return Launch(value, tuple(around))
