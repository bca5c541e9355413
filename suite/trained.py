"""Cases of training: their places, their thread level, and about how long they take. Pure.

Such a case has ``model`` among its options, which no other case has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fabrics.model import Fabric
from microbench.case import Case
from suite.placement import HERE, Seats, Target, beside
from training import pace
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
