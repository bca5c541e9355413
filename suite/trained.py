"""Cases of training: their places, their thread level, and about how long they take. Pure.

Such a case has ``model`` among its options, which no other case has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from fabrics.model import Fabric
from microbench.case import Case
from suite.placement import HERE, Seats, Target, beside
from training import data, pace
from training.data.shards import shard
from training.models import MODELS
from training.setup import Setup

ALGORITHM = "ddp"


def is_training(case: Case) -> bool:
    """Whether a case trains."""
    return "model" in case.options


def case_of(
    base: Case, options: Mapping[str, Any], ranks: int, fabric: Fabric, target: Target = HERE
) -> tuple[Seats, Case]:
    """The case of a model's options on so many hosts, and its places: beside each host its DPU where DPUs take part."""
    setup = Setup.of(options)
    there = beside(fabric, ranks, target) if setup.with_dpus else 0
    seats = Seats(ranks, there, how=setup.placed)
    case = replace(base, **identity(setup), options=dict(options))
    return seats, replace(case, ranks=seats.ranks)


def identity(setup: Setup) -> dict[str, Any]:
    """What a case says of its setup; its backend forms the group of DDP's own messages."""
    return {
        "backend": setup.backend, "algorithm": ALGORITHM, "device": setup.device, "workload": setup.label
    }  # fmt: skip


def thread_level(case: Case) -> str:
    """The thread level that MPI has to be started at for a case of training."""
    return Setup.of(case.options).thread_level


def usual_level(case: Case) -> str:
    """The thread level that a user's own job starts at where it does not say: what training takes, else single."""
    return thread_level(case) if is_training(case) else "single"


def at_most_s(case: Case, bytes_per_s: float) -> float:
    """About how long a case of training takes at most on a fabric of that rate."""
    setup = Setup.of(case.options)
    return pace.at_most_s(setup, case.ranks, case.budget_s, case.max_iterations, bytes_per_s)


def check_images(options: Mapping[str, Any], ranks: Iterable[int]) -> None:
    """Raise what a case of such options would on a machine that has its images: here, before anything is launched.

    Raises UserError for images that are missing, damaged, or too few, CannotRun where nothing here decodes them.
    """
    setup = Setup.of(options)
    choice, model = data.parse(setup.data), MODELS[setup.workload.model]
    if not choice.path:
        return
    source = data.opened(choice, "training", setup.workload.image_px, model.classes, seed=0, images=0)
    for size in ranks:
        shard(source, setup.batch_of(size), 0, size, seed=0)
