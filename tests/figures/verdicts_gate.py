"""A gate of 5 % on a stream, against a baseline of three runs: how often it fails a link as it was, and a slower one.

Each run is a command of its own, as CI would start it, of one launch; what is in doubt is measured again by the run.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from fabrics.lab.cluster import Lab
from fabrics.lab.config import LabFabric
from fabrics.lab.shaping import shape
from reports.load import load
from reports.summary import summarise
from tests import labs
from tests.figures import runs
from tests.figures.table import Row, figure, shown

MARGIN, SLOWER, MOST_FALSE = 0.05, 0.10, 1
USUAL = LabFabric("eth1g", 1e9)
PLAN = 'launches = 1\nbudget_s = 0.3\nmin_iterations = 10\n[bandwidth]\nsizes = "1M"\n'
LIMITS = f"""judge = ["emulated"]
[[criterion]]
metric = "bandwidth"
benchmark = "bandwidth"
reference = "baseline"
lower = {1 - MARGIN:g}
"""
_RUNS_OF_BASELINE = 3


@dataclass(frozen=True)
class Gated:
    """A run that was judged: planted to be slow or not, its exit code, and what share of the declared rate it got."""

    slow: bool
    code: int
    share: float | None
    launches: int
    took_s: float
    told: str = ""


def measure(folder: Path, healthy: int, slow: int) -> tuple[list[Row], list[Row]]:
    """So many runs on a link as it was, and on one that is 10 % slower, in turns."""
    folder.mkdir(parents=True)
    (folder / "limits.toml").write_text(LIMITS)
    with labs.made("gate", fabrics=(USUAL,)) as lab:
        limits = _limits(folder, lab)
        found: list[Gated] = []
        for number in range(healthy):
            found.append(_once(folder / f"healthy{number}", lab, limits, False))
            if number * slow // healthy < (number + 1) * slow // healthy:
                found.append(_slower(folder / f"slow{number}", lab, limits))
            print(f"gate: {found[-1]}", flush=True)
    return rows(found), figures(found)


def _limits(folder: Path, lab: Lab) -> list[str]:
    """The options by which runs are judged, once the baseline is made."""
    made = [runs.run(folder / f"base{n}", PLAN, lab.config.name, USUAL.name) for n in range(_RUNS_OF_BASELINE)]
    path = folder / "baseline.json"
    command = [sys.executable, "-m", "suite.cli", "baseline", *map(str, made), "-o", str(path)]
    subprocess.run(command, check=True, timeout=runs.LIMIT_S)
    return ["--limits", str(folder / "limits.toml"), "--baseline", str(path)]


def _slower(folder: Path, lab: Lab, limits: Sequence[str]) -> Gated:
    rate = USUAL.rate_bits_per_s or 0.0
    shape(lab, USUAL.name, rate * (1 - SLOWER), lab.hosts[-1])
    try:
        return _once(folder, lab, limits, True)
    finally:
        shape(lab, USUAL.name, rate, lab.hosts[-1])


def _once(folder: Path, lab: Lab, limits: Sequence[str], slow: bool) -> Gated:
    command = runs.command(folder, PLAN, lab.config.name, USUAL.name, *limits)
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=runs.LIMIT_S)
    took_s = time.monotonic() - began
    told = (done.stderr.splitlines() or [""])[-1]
    if not (folder / "records.jsonl").exists():
        return Gated(slow, done.returncode, None, 0, took_s, told)
    (case,) = summarise(load(folder).records)
    value = case.value("bandwidth")
    share = None if value is None else value * 8 / (USUAL.rate_bits_per_s or 1.0)
    return Gated(slow, done.returncode, share, case.launches, took_s, told if done.returncode not in (0, 1, 3) else "")


def rows(found: Sequence[Gated]) -> list[Row]:
    """A row per kind of link: how its runs ended. Pure."""
    told = []
    for slow in (False, True):
        here = [run for run in found if run.slow == slow]
        shares = [run.share for run in here if run.share is not None]
        codes = [run.code for run in here]
        told.append({
            "link": f"{SLOWER:.0%} slower" if slow else "as it was", "runs": len(here), "pass": codes.count(0),
            "fail": codes.count(1), "inconclusive": codes.count(3),
            "else": len(codes) - sum(map(codes.count, (0, 1, 3))),
            "of the rate": median(shares) if shares else None, "least": min(shares, default=None),
            "most": max(shares, default=None), "launches": median([run.launches for run in here]) if here else None,
            "s a run": median([run.took_s for run in here]) if here else None,
        })  # fmt: skip
    return told


def figures(found: Sequence[Gated]) -> list[Row]:
    """What is judged: failures of a link as it was, and of one that is slower. Pure."""
    healthy, slow = ([run for run in found if run.slow == kind] for kind in (False, True))
    false, caught = (sum(run.code == 1 for run in kind) for kind in (healthy, slow))
    lost = [run for run in found if run.code not in (0, 1, 3)]
    why = f"{len(lost)} runs did not end well: {lost[0].told}" if lost else ""
    name = f"gate of {MARGIN:.0%} on a stream"
    return [
        figure(f"{name}: false failures", f"<= {MOST_FALSE} of {len(healthy)}", false, len(healthy),
               bool(healthy) and false <= MOST_FALSE and not lost, why),
        figure(f"{name}: {SLOWER:.0%} slower fails", f"= {len(slow)} of {len(slow)}", caught, len(slow),
               bool(slow) and caught == len(slow), why),
        shown(f"{name}: passes as it was", sum(run.code == 0 for run in healthy), len(healthy)),
    ]  # fmt: skip
