"""``make offload``: how much of a collective hides behind a host's compute when DPUs do it, what that gains over the
best that hosts do themselves, and where it loses?

About ten minutes, as root: every part is a run on a lab of its own. Several cores would let the DPUs keep up better;
two are enough.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from fabrics.lab.config import LabFabric
from microbench.sizes import parse_sizes
from reports.load import load
from reports.render import render
from tests import labs
from tests.figures import offload_rows, target
from tests.figures.offload_rows import Case, at_least, at_most, find
from tests.figures.runs import run
from tests.figures.table import Row, shown
from tests.figures.target import Found, Parts

PARTS = ("split", "contrast", "node", "losses", "thread")
LAUNCHES = 6  # so that every value has an interval over launches
SLOW, USUAL, FAST = LabFabric("eth200m", 200e6), LabFabric("eth1g", 1e9), LabFabric("eth10g", 10e9)
ALLREDUCE = "offload_allreduce"
# Whatever a host can do itself: a gain is over the best of these.
_EVERY = ["host", "probes4", "probes16", "probes64", "gloo", "staged", "window"]
_SPLIT = f"""
budget_s = 1
min_iterations = 8
max_iterations = 12
[[{ALLREDUCE}]]
sizes = "4M"
fractions = [1, 2]
budget_s = 2
compare = {_EVERY}
[[{ALLREDUCE}]]
sizes = "4K"
max_iterations = 200
compare = {_EVERY}
[offload_alltoall]
sizes = "4M"
compare = {_EVERY}
[offload_broadcast]
sizes = "4M"
compare = {_EVERY}
[offload_allgather]
sizes = "4M"
compare = {_EVERY}
"""
_CONTRAST = f"""
budget_s = 2
min_iterations = 4
max_iterations = 4
[{ALLREDUCE}]
sizes = "32M"
compare = ["host", "rma"]
chunk = "1M"
"""
_NODE = f"""
budget_s = 2
min_iterations = 6
max_iterations = 6
[{ALLREDUCE}]
sizes = "4M"
placement = "node"
compare = ["host", "probes16", "probes64", "staged", "window"]
"""
_LOSSES = f"""
budget_s = 2
min_iterations = 8
max_iterations = 8
[{ALLREDUCE}]
sizes = "32M"
compare = ["host", "probes16", "probes64", "staged"]
"""
# In a run of its own, as MPI then starts for threads, which no other mode needs.
_THREAD = f"""
budget_s = 1
min_iterations = 8
max_iterations = 8
[{ALLREDUCE}]
sizes = "4M"
compare = ["host", "probes16", "thread", "window"]
"""


def _measured(folder: Path, plan: str, fabric: LabFabric, launches: int) -> list[Case]:
    """The cases of a plan on a lab of two hosts and two DPUs that lasts as long."""
    with labs.made("run", fabrics=(fabric,)) as lab:
        run(folder, f"launches = {launches}\n{plan}", lab.config.name, fabric.name)
    return offload_rows.cases(load(folder).records)


def _bytes(text: str) -> int:
    (found,) = parse_sizes(text)
    return found


def split(folder: Path, launches: int) -> Found:
    """Host 0 alone on a core, over 1 Gbit/s: allreduce with compute of once and twice its time, and other cases."""
    known = _measured(folder, _SPLIT, USUAL, launches)
    large = _bytes("4M")
    once, twice = (find(known, ALLREDUCE, large, workload) for workload in ("", "compute 2x"))
    return offload_rows.rows(known), [
        at_least(once, "window", "overlap", 0.90),
        at_most(once, "window", "dilation", 0.07),
        *offload_rows.exposed(once, "window", 0.10, 0.25),
        at_least(once, "window", "net_gain", 0.20),
        at_least(twice, "window", "net_gain", 0.10),
        at_least(once, "staged", "overlap", 0.75),
        at_least(once, "staged", "net_gain", 0.10),
        *(offload_rows.gain_over(case, mode) for case, mode in ((once, "window"), (twice, "window"), (once, "staged"))),
        offload_rows.idle(once, 0.02),
        offload_rows.signed(find(known, "offload_alltoall", large), 1),
        *(_shown(find(known, f"offload_{operation}", large)) for operation in ("broadcast", "allgather")),
        offload_rows.signed(find(known, ALLREDUCE, _bytes("4K")), -1),
        offload_rows.losses(known, _told(folder)),
    ]


def _shown(case: Case) -> Row:
    return offload_rows.gain_shown(case, case.best)


def _told(folder: Path) -> int:
    """How many modes the run's own report says lose."""
    findings: list[dict[str, Any]] = json.loads(render(folder, "json"))["findings"]
    return sum(int(found["values"].get("loses", 0)) for found in findings if found["chapter"] == 5)


def contrast(folder: Path, launches: int) -> Found:
    """What nobody makes progress: the host without probes, and RMA over TCP, whose target has to take part."""
    known = _measured(folder, _CONTRAST, USUAL, launches)
    (case,) = known
    return offload_rows.rows(known), [at_most(case, mode, "overlap", 0.25) for mode in ("host", "rma")]


def node(folder: Path, launches: int) -> Found:
    """Each host on a core with its DPU, both computing, over 200 Mbit/s."""
    known = _measured(folder, _NODE, SLOW, launches)
    (case,) = known
    best = case.best or "window"
    return offload_rows.rows(known), [at_least(case, best, "overlap", 0.75), offload_rows.gain_shown(case, best)]


def losses(folder: Path, launches: int) -> Found:
    """10 Gbit/s, which staging cannot keep up with while both DPUs and a host share a core."""
    known = _measured(folder, _LOSSES, FAST, launches)
    (case,) = known
    return offload_rows.rows(known), [offload_rows.signed(case, -1), offload_rows.losses(known, _told(folder))]


def thread(folder: Path, launches: int) -> Found:
    """A thread that makes MPI progress shares the core of the compute."""
    known = _measured(folder, _THREAD, USUAL, launches)
    (case,) = known
    found = [shown(f"{case.name}: thread {name}", case.summary.value(f"thread.{name}"), case.summary.launches)
             for name in ("overlap", "dilation")]  # fmt: skip
    return offload_rows.rows(known), found


def parts(folder: Path, quick: bool) -> Parts:
    """What can be measured, by name; ``quick`` does one launch of each, to see that it runs."""
    launches = 1 if quick else LAUNCHES
    return {
        "split": lambda: split(folder / "split", launches),
        "contrast": lambda: contrast(folder / "contrast", launches),
        "node": lambda: node(folder / "node", launches),
        "losses": lambda: losses(folder / "losses", launches),
        "thread": lambda: thread(folder / "thread", launches),
    }


if __name__ == "__main__":
    sys.exit(target.run("offload", __doc__, PARTS, parts))
