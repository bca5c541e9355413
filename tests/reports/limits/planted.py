"""Planted runs and limits: views and judgements without a disk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from microbench.record import Metric
from reports.comparison.sides import Side
from reports.limits.judge import judge
from reports.limits.model import Criterion, Judged, Limits, Ruling, Selector
from reports.load import RunData
from reports.view import View, view
from tests.reports.folder import MIB, Folder

MB = 1e6


def seen(f: Folder) -> View:
    return view(RunData(f.description(), tuple(f.records)))


def rate(value: float | None, low: float | None = None, high: float | None = None, note: str = "") -> Metric:
    """In MB/s."""
    scaled = [None if x is None else x * MB for x in (value, low, high)]
    return Metric(scaled[0], "bytes/s", 100, scaled[1], scaled[2], "higher", note=note)


def stream(
    f: Folder, *values: float, half: float = 0.01, fabric: str = "roce0", nbytes: int = MIB, **more: Any
) -> None:
    """One launch of a stream per value, in MB/s, each with an interval of +-``half`` of it."""
    benchmark = more.pop("benchmark", "bandwidth")
    for launch, value in enumerate(values, 1):
        f.add(benchmark, fabric, nbytes, launch=launch, dtype="int8", direction="uni", hosts=("n0", "n1"),
              metrics={"bandwidth": rate(value, value * (1 - half), value * (1 + half))}, **more)  # fmt: skip


def fabric(name: str, rate_bits_per_s: float | None = None, kind: str = "roce", **more: Any) -> dict[str, Any]:
    return {"name": name, "kind": kind, "hosts": ["n0", "n1"], "devices": {"n0": [name], "n1": [name]},
            "rate_bits_per_s": rate_bits_per_s, "emulated": False, "lab": "", "note": "", "unusable": "",
            **more}  # fmt: skip


def criterion(metric: str = "bandwidth", unit: str = "MB/s", name: str = "c", names: Mapping[str, Any] | None = None,
              **more: Any) -> Criterion:  # fmt: skip
    """On the bandwidth benchmark unless ``names`` says otherwise; bounds in base units."""
    selector = Selector(names or {"benchmark": ("bandwidth",)}, more.pop("sizes", ()), more.pop("ranks", ()))
    return Criterion(name, metric, selector, unit="" if isinstance(more.get("reference"), str) else unit, **more)


def ruled(f: Folder, c: Criterion, baseline: Side | None = None) -> Ruling:
    (found,) = judge(seen(f), Limits("planted", (c,)), baseline).rulings
    return found


def only(f: Folder, c: Criterion, baseline: Side | None = None) -> Judged:
    """The verdict on the only case."""
    (found,) = ruled(f, c, baseline).cases
    return found
