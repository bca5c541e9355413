"""``make endtoend``: does the slower fabric change training time, for which models, and with which primitive?

About twenty minutes, as root: every part is a run on a lab of its own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fabrics.lab.config import LabFabric
from reports.load import load
from reports.render import render
from tests import labs
from tests.figures import endtoend_rows, target
from tests.figures.endtoend_rows import COSTS, Trained, find
from tests.figures.runs import run
from tests.figures.target import Found, Parts

PARTS = ("fabrics", "split")
LAUNCHES = 6  # so that every value has an interval over launches
SLOW, USUAL, FAST = LabFabric("eth1g", 1e9), LabFabric("eth2g5", 2.5e9), LabFabric("eth10g", 10e9)
RESNET50, RESNET20, VGG16 = "resnet50", "resnet20", "vgg16"
# One run for the first study's question: exchanges take turns within a case, and jobs are shuffled. A launch gives one
# value, so it has few rounds.
_FABRICS = """
precision = 0
[bandwidth]
sizes = "1M"
budget_s = 0.3
[[allreduce]]
sizes = "26255360"
budget_s = 0.3
[[allreduce]]
fabrics = ["eth2g5", "eth10g"]
sizes = "26255360"
backends = ["gloo"]
budget_s = 0.3
[[train]]
min_iterations = 2
max_iterations = 5
budget_s = 5
models = [{ model = "resnet50", batch = 16, image_px = 64, exchanges = ["gloo", "mpi"] }]
[[train]]
fabrics = ["eth2g5", "eth10g"]
min_iterations = 2
max_iterations = 5
budget_s = 5
models = [{ model = "resnet20", batch = 128 }]
[[train]]
fabrics = ["eth2g5", "eth10g"]
min_iterations = 2
max_iterations = 2
budget_s = 5
models = [{ model = "vgg16", batch = 4, image_px = 32 }]
"""
_SPLIT = """
precision = 0
[train]
min_iterations = 2
max_iterations = 6
budget_s = 8
models = [{ model = "resnet50", batch = 16, image_px = 64, exchanges = ["gloo", "mpi", "dpu"], peer = "replayed" }]
"""


def _measured(folder: Path, plan: str, fabrics: Sequence[LabFabric], launches: int) -> list[Trained]:
    """The cases of a plan on a lab that lasts as long."""
    with labs.made("run", fabrics=tuple(fabrics)) as lab:
        run(folder, f"launches = {launches}\n{plan}", lab.config.name, [fabric.name for fabric in fabrics])
    return endtoend_rows.cases(load(folder).records)


def _findings(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(render(folder, "json"))["findings"]
    return found


def fabrics(folder: Path, launches: int) -> Found:
    """Three models over three rates, from one run: what is exposed, and by which primitive."""
    known = _measured(folder, _FABRICS, (SLOW, USUAL, FAST), launches)
    names = [fabric.name for fabric in (SLOW, USUAL, FAST)]
    resnets = [find(known, RESNET50, name) for name in names]
    slow, fast = names[1:]
    told = _findings(folder)
    return endtoend_rows.rows(known), [
        *endtoend_rows.ordered(resnets, "gloo"),
        *(endtoend_rows.hidden(find(known, RESNET20, name), "gloo", 0.03) for name in (slow, fast)),
        endtoend_rows.effect(find(known, VGG16, slow), find(known, VGG16, fast), "gloo"),
        endtoend_rows.said(told, VGG16, slow, fast, COSTS),
        endtoend_rows.said(told, RESNET50, names[0], fast, COSTS),
        endtoend_rows.said(told, RESNET20, slow, fast, None),
        *(endtoend_rows.step_ratio(find(known, RESNET50, name), "mpi", "gloo", 1.0, 0.9) for name in (fast, slow)),
    ]


def split(folder: Path, launches: int) -> Found:
    """Host 0 alone on its core, its peer replayed: what is exposed where a DPU adds the gradients up."""
    known = _measured(folder, _SPLIT, (USUAL,), launches)
    case = find(known, RESNET50, USUAL.name)
    return endtoend_rows.rows(known), [endtoend_rows.gain(case, "dpu", other) for other in ("gloo", "mpi")]


def parts(folder: Path, quick: bool) -> Parts:
    """What can be measured, by name; ``quick`` does one launch of each, to see that it runs."""
    launches = 1 if quick else LAUNCHES
    return {
        "fabrics": lambda: fabrics(folder / "fabrics", launches),
        "split": lambda: split(folder / "split", launches),
    }


if __name__ == "__main__":
    sys.exit(target.run("endtoend", __doc__, PARTS, parts))
