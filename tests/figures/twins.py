"""Two runs of the same are not called different, and a planted slow-down of 5 % is found.

Runs at full rate and runs at a rate 5 % lower take turns on a lab of their own, six launches each.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from fabrics.lab import cluster
from microbench.stats import COLLECTIVE_MARGIN, POINT_TO_POINT_MARGIN, Decision, decide
from reports.load import load
from reports.summary import Launches, by_launch
from tests.figures.runs import run
from tests.figures.table import RESULTS, Row, figure

FABRIC, RATE_BITS_PER_S, SLOWER = "eth2g5", 2.5e9, 0.95
MOST_FALSE, FEWEST_FOUND = 0.02, 19
PLAN = """
launches = 6
budget_s = 0.35
[latency]
sizes = "8,64K"
[bandwidth]
sizes = "512K,1M"
[allreduce]
sizes = "8,64K,1M"
"""
HEADLINES = {"latency": "time", "bandwidth": "bandwidth", "allreduce": "time"}
Key = tuple[str, str]


def launches(folder: Path) -> dict[Key, Launches]:
    """The values of every case's headline, by case and name: what follows from it is no metric of its own."""
    found = by_launch(load(folder).records)
    return {key: values for key, values in found.items() if key[1] == HEADLINES[key[0].partition("/")[0]]}


def judge(old: dict[Key, Launches], new: dict[Key, Launches]) -> dict[Key, Decision]:
    """A decision per metric that both runs have."""
    return {key: decide(new[key].values, old[key].values, old[key].better, margin(key[0])) for key in old if key in new}


def margin(case: str) -> float:
    """What matters in practice, by the case's benchmark."""
    return POINT_TO_POINT_MARGIN if case.startswith(("latency", "bandwidth", "bibw")) else COLLECTIVE_MARGIN


def measure(folder: Path, lab: cluster.Lab, pairs: int) -> tuple[list[Row], list[Row]]:
    """``pairs`` of slow runs, each after a run at full rate, and one more of those at the end."""
    full, slow = [], []
    for number in range(pairs + 1):
        full.append(launches(_at(lab, RATE_BITS_PER_S, folder / f"full-{number}")))
        if number < pairs:
            slow.append(launches(_at(lab, RATE_BITS_PER_S * SLOWER, folder / f"slow-{number}")))
        _keep(full, slow)
        print(f"twins: {number} of {pairs} pairs", file=sys.stderr, flush=True)
    same = [judge(old, new) for old, new in pairwise(full)]
    planted = [judge(old, new) for old, new in zip(full, slow, strict=False)]
    return _rows(same, planted), [_false_alarms(same), _found(planted)]


def _keep(full: Sequence[dict[Key, Launches]], slow: Sequence[dict[Key, Launches]]) -> None:
    """All values beside the results, so that another rule can be tried on them."""
    found = {name: [{" ".join(key): list(values.values) for key, values in one.items()} for one in runs]
             for name, runs in (("full", full), ("slow", slow))}  # fmt: skip
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "twins.json").write_text(json.dumps(found))


def _at(lab: cluster.Lab, rate: float, folder: Path) -> Path:
    cluster.shape(lab, FABRIC, rate)
    return run(folder, PLAN, lab.config.name, FABRIC)


def _rows(same: Sequence[dict[Key, Decision]], planted: Sequence[dict[Key, Decision]]) -> list[Row]:
    rows = []
    for key in same[0]:
        row: Row = {"case": key[0], "metric": key[1]}
        for name, decisions in (("same", same), ("slowed", planted)):
            counts = Counter(d[key].verdict for d in decisions if key in d)
            row[name] = ", ".join(f"{n} {verdict}" for verdict, n in counts.most_common())
        rows.append(row)
    return rows


def _false_alarms(same: Sequence[dict[Key, Decision]]) -> Row:
    verdicts = [decision.verdict for decisions in same for decision in decisions.values()]
    wrong = sum(verdict in ("regressed", "improved") for verdict in verdicts)
    share = wrong / len(verdicts)
    name = f"two runs of the same: metrics called different ({wrong})"
    return figure(name, f"<= {MOST_FALSE}", share, len(verdicts), share <= MOST_FALSE)


def _found(planted: Sequence[dict[Key, Decision]]) -> Row:
    """A run is found slow where every one of its streams regressed."""
    streams = [[d.verdict for (case, name), d in run.items() if name == "bandwidth" and case.startswith("bandwidth")]
               for run in planted]  # fmt: skip
    found = sum(bool(run) and all(verdict == "regressed" for verdict in run) for run in streams)
    needed = FEWEST_FOUND * len(planted) / 20
    return figure(
        "streams slowed by 5 %: runs in which all regressed", f">= {needed:g}", found, len(planted), found >= needed
    )
