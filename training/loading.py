"""Waiting for images takes what no plan can know: what a case does about its deadline. Pure, but for the clock."""

from __future__ import annotations

import time

from training.pace import least_steps
from training.setup import Setup

_KEPT = 0.2  # of the time that is left: steps do not all take as long as the first
_LESS = "a smaller batch or smaller images take less, deadline_s in a plan gives more"


def left_s(deadline_ns: int) -> float | None:
    """What is left of a case's time to plan with; None where it has no limit, as in a job of the user's own.

    ``deadline_ns`` is on the monotonic clock, 0 for no limit (:attr:`microbench.page.Page.deadline_ns`).
    """
    if not deadline_ns:
        return None
    return (1 - _KEPT) * max(0.0, (deadline_ns - time.monotonic_ns()) * 1e-9)


def too_slow(setup: Setup, waits_s: float, left: float) -> str:
    """Why a case cannot end in the time ``left`` whose every step waits so long for images, or nothing."""
    steps = least_steps(len(setup.modes), len({mode.cap_bytes for mode in setup.modes}))
    if steps * waits_s <= left:
        return ""
    return (
        f"{setup.label}: a step waits {waits_s:.2g} s for its images, so that the {steps} steps that it takes at least"
        f" wait {steps * waits_s:.0f} s; {left:.0f} s are left of the case's time: {_LESS}"
    )


def no_round(setup: Setup, round_s: float, waits_s: float, left: float) -> str:
    """Why not one round of steps is timed in the time ``left``."""
    waited = f", {waits_s * (1 + len(setup.modes)):.2g} s of it waiting for images," if waits_s > round_s / 100 else ""
    return (
        f"{setup.label}: a round of steps takes {round_s:.2g} s{waited} and does not fit"
        f" into the {left:.0f} s that are left of the case's time: {_LESS}"
    )
