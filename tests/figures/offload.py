"""``make offload``: what DPUs hide of a collective and save its host, where they lose, and what an idle one costs.

About a quarter of an hour, as root: all of it is on a lab of its own, whose DPUs are EMULATED.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from fabrics.lab import cluster
from fabrics.lab.config import parse_fabric
from microbench.record import Record
from microbench.stats import quantile
from reports.load import load
from reports.summary import by_launch
from reports.units import size
from tests import labs
from tests.figures import target
from tests.figures.runs import run
from tests.figures.table import Row, figure
from tests.figures.target import Found, Parts

PARTS = ("split", "node", "fast")
SPLIT, NODE, FAST = "eth1g", "eth200m", "eth10g"
FABRICS = tuple(map(parse_fabric, (f"{SPLIT}:1gbit", f"{NODE}:200mbit", f"{FAST}:10gbit")))
LAUNCHES = 6
QUANTITIES = ("overlap", "dilation", "net_gain")
IDLE = 0.02
_HEAD = """
launches = {launches}
budget_s = 2.5
min_iterations = 8
max_iterations = 12
"""
_SPLIT = """
[[offload_allreduce]]
sizes = "4K,4M"
compare = ["host", "probes16", "staged", "window"]
[[offload_allreduce]]
sizes = "4M"
fractions = [2]
compare = ["host", "probes16", "staged", "window"]
[[offload_allreduce]]
sizes = "32M"
chunk = "1M"
compare = ["host", "rma"]
[offload_alltoall]
sizes = "4M"
compare = ["host", "probes16", "window"]
[offload_broadcast]
sizes = "4M"
compare = ["host", "probes16", "window"]
[offload_allgather]
sizes = "4M"
compare = ["host", "probes16", "window"]
"""
_NODE = """
[offload_allreduce]
sizes = "4M"
placement = "node"
compare = ["host", "staged", "window"]
"""
_FAST = """
[offload_allreduce]
sizes = "32M"
compare = ["host", "probes16", "staged"]
"""


@dataclass(frozen=True)
class Measured:
    """Records of a run, and every metric's values by launch."""

    records: Sequence[Record]
    values: Mapping[tuple[str, str], tuple[float, ...]]

    def of(self, case: str, metric: str) -> tuple[float, ...]:
        """The values of a case, one a launch; the case by what its id has and, for the usual workload, has not."""
        words = case.split()
        found = [
            values for (id_, name), values in self.values.items()
            if name == metric and all(word in id_.split("/") for word in words if word != "2x")
            and ("compute 2x" in id_) == ("2x" in words)
        ]  # fmt: skip
        if len(found) != 1:
            raise RuntimeError(f"{case}, {metric}: {len(found)} cases have it: see the run's report")
        return found[0]

    def share(self, case: str, mode: str) -> tuple[float, ...]:
        """Exposed time by the mode's own pure time, one a launch."""
        both = zip(self.of(case, f"{mode}.exposed"), self.of(case, f"{mode}.pure"), strict=True)
        return tuple(exposed / pure for exposed, pure in both)

    def why(self, case: str, mode: str) -> str:
        """What holds a figure back: how the mode's time is made up, against the host's own."""
        parts = [f"{name} {1e3 * median(self.of(case, f'{mode}.{name}')):.2f} ms" for name in ("pure", "post", "wait")]
        host = 1e3 * median(self.of(case, "host.pure"))
        return f"{', '.join(parts)}, dilation {median(self.of(case, f'{mode}.dilation')):.3f}; host pure {host:.2f} ms"


def _measure(lab: cluster.Lab, folder: Path, plan: str, fabric: str, launches: int) -> Measured:
    records = load(run(folder, _HEAD.format(launches=launches) + plan, lab.config.name, fabric)).records
    wrong = [record for record in records if record.status != "ok"]
    if wrong:
        raise RuntimeError(f"{wrong[0].id}: {wrong[0].status}: {wrong[0].reason}")
    return Measured(records, {key: found.values for key, found in by_launch(records).items()})


def rows_of(measured: Measured) -> list[Row]:
    """Each case's modes: medians over launches, and the launches' range of the net gain."""
    cases = {(record.id, record.workload, record.nbytes, record.benchmark) for record in measured.records}
    rows: list[Row] = []
    for id_, workload, nbytes, benchmark in sorted(cases, key=lambda case: case[0]):
        names = [name for case, name in measured.values if case == id_ and name.endswith(".overlap")]
        for mode in (name.partition(".")[0] for name in names):
            values = {q: measured.values.get((id_, f"{mode}.{q}")) for q in (*QUANTITIES, "pure", "exposed")}
            gain = values["net_gain"] or ()
            rows.append({
                "operation": benchmark.partition("_")[2], "size": size(nbytes), "workload": workload, "mode": mode,
                **{q: median(found) if found else None for q, found in values.items()},
                "least gain": min(gain, default=None), "most gain": max(gain, default=None), "n": len(gain),
            })  # fmt: skip
    return rows


def split(lab: cluster.Lab, folder: Path, launches: int) -> Found:
    """One host on a core of its own, 1 Gbit/s."""
    m = _measure(lab, folder / "split", _SPLIT, SPLIT, launches)
    at = "offload_allreduce 4194304B"
    figures = [
        _least(m, at, "window.overlap", 0.90, "4 MiB allreduce, window: overlap"),
        _most(m, at, "window.dilation", 0.07, "4 MiB allreduce, window: dilation"),
        *_exposed(m, at, "window"),
        _least(m, at, "window.net_gain", 0.20, "4 MiB allreduce, window: net gain"),
        _least(m, f"{at} 2x", "window.net_gain", 0.10, "4 MiB allreduce, twice the compute, window: net gain"),
        _least(m, at, "staged.overlap", 0.75, "4 MiB allreduce, staged: overlap"),
        _least(m, at, "staged.net_gain", 0.10, "4 MiB allreduce, staged: net gain"),
        _most(m, "offload_allreduce 33554432B", "host.overlap", 0.25, "32 MiB allreduce, host without probes: overlap"),
        _most(m, "offload_allreduce 33554432B", "rma.overlap", 0.25, "32 MiB allreduce, RMA over TCP: overlap"),
        _loss(m, "offload_allreduce 4096B", "window", "4 KiB allreduce, window"),
        _gains(m, "offload_alltoall 4194304B", "window", "4 MiB all-to-all, window"),
        _idle(m),
    ]
    return rows_of(m), figures


def node(lab: cluster.Lab, folder: Path, launches: int) -> Found:
    """Both hosts compute, each with its DPU on its core, 200 Mbit/s."""
    m = _measure(lab, folder / "node", _NODE, NODE, launches)
    at = "offload_allreduce 4194304B"
    return rows_of(m), [
        _least(m, at, f"{mode}.overlap", 0.75, f"4 MiB allreduce, both hosts computing, {mode}: overlap")
        for mode in ("window", "staged")
    ]


def fast(lab: cluster.Lab, folder: Path, launches: int) -> Found:
    """A fabric on which staging costs more than it hides, 10 Gbit/s."""
    m = _measure(lab, folder / "fast", _FAST, FAST, launches)
    return rows_of(m), [_loss(m, "offload_allreduce 33554432B", "staged", "32 MiB allreduce on 10 Gbit/s, staged")]


def _least(m: Measured, case: str, metric: str, least: float, name: str) -> Row:
    found, mode = m.of(case, metric), metric.partition(".")[0]
    ok = median(found) >= least
    return figure(name, f">= {least:g}", median(found), len(found), ok, "" if ok else m.why(case, mode))


def _most(m: Measured, case: str, metric: str, most: float, name: str) -> Row:
    found, mode = m.of(case, metric), metric.partition(".")[0]
    ok = median(found) <= most
    return figure(name, f"<= {most:g}", median(found), len(found), ok, "" if ok else m.why(case, mode))


def _exposed(m: Measured, case: str, mode: str) -> list[Row]:
    shares, name = m.share(case, mode), f"4 MiB allreduce, {mode}: exposed by pure time"
    why, n = m.why(case, mode), len(shares)
    middle, worst = median(shares), max(shares)
    return [
        figure(f"{name} (aim)", "<= 0.1", middle, n, middle <= 0.10, "" if middle <= 0.10 else why),
        figure(f"{name}, worst launch", "<= 0.25", worst, n, worst <= 0.25, "" if worst <= 0.25 else why),
    ]


def _loss(m: Measured, case: str, mode: str, name: str) -> Row:
    """Where offload must lose: a gain there would mean that something else was measured."""
    gains = m.of(case, f"{mode}.net_gain")
    lost = median(gains) < 0
    return figure(
        f"{name}: net gain, a loss", "< 0", median(gains), len(gains), lost, "" if lost else m.why(case, mode)
    )


def _gains(m: Measured, case: str, mode: str, name: str) -> Row:
    gains = m.of(case, f"{mode}.net_gain")
    low = quantile(gains).low
    ok = low is not None and low > 0
    why = "" if ok else f"{'too few launches' if low is None else f'interval from {low:.3f}'}; {m.why(case, mode)}"
    return figure(f"{name}: net gain, its interval above 0", "> 0", median(gains), len(gains), ok, why)


def _idle(m: Measured) -> Row:
    """The dearest idle DPU rank of the median record."""
    shares = [max(record.method["idle_dpu_cpu_share"]) for record in m.records]
    middle = median(shares)
    return figure("an idle emulated DPU rank's share of a core", f"<= {IDLE:g}", middle, len(shares), middle <= IDLE)


def parts(folder: Path, quick: bool) -> Parts:
    """What can be measured, by name; ``quick`` does one launch of each, to see that it runs."""
    launches = 1 if quick else LAUNCHES

    def on_lab(name: str) -> Found:
        with labs.made("off", fabrics=FABRICS) as lab:
            return {"split": split, "node": node, "fast": fast}[name](lab, folder, launches)

    return {
        "split": lambda: on_lab("split"),
        "node": lambda: on_lab("node"),
        "fast": lambda: on_lab("fast"),
    }


if __name__ == "__main__":
    sys.exit(target.run("offload", __doc__, PARTS, parts))
