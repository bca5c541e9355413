"""How many pairs of steps to time, in which order, and what they tell: no MPI and no torch.

A pair is one step that exchanges gradients and one that does not, next to each other in time, so that
slow changes of the machine's speed cancel in their difference: the exposed communication.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from microbench.record import Metric
from microbench.stats import LEVEL, Interval, Rule, metric, quantile, samples_needed

MIN_PAIRS = 8  # the least even number with an interval for the exposed fraction, too

_NS = 1e-9


@dataclass(frozen=True)
class Budget:
    """How many pairs are timed, and what decided: ``time``, ``max_iterations`` or ``minimum``."""

    pairs: int
    stop_reason: str


def budget(pair_s: float, budget_s: float, max_pairs: int) -> Budget:
    """The even number of pairs of ``pair_s`` seconds that fit ``budget_s``.

    At least :data:`MIN_PAIRS`, and never more than ``max_pairs``. Even, so that as many pairs begin with
    the one kind of step as with the other.
    """
    most, fitting = max(2, _even(max_pairs)), _even(int(budget_s / pair_s))
    pairs = min(most, max(MIN_PAIRS, fitting))
    if pairs == most:
        return Budget(pairs, "max_iterations")
    return Budget(pairs, "time" if pairs == fitting else "minimum")


def rule(plan: Budget, precision: float) -> Rule:
    """When to look at the steps, after whole ABBA turns, and when they are enough."""
    usual = Rule.plan(precision, MIN_PAIRS, plan.pairs)
    return replace(usual, looks=tuple(look + look % 2 for look in usual.looks))


def _even(n: int) -> int:
    return n - n % 2


def exchanges(pair: int) -> tuple[bool, bool]:
    """Whether the first and the second step of a pair exchange gradients: A B, B A, A B, ..."""
    return (True, False) if pair % 2 == 0 else (False, True)


def metrics(
    step_ns: NDArray[np.int64], noop_ns: NDArray[np.int64], images: int, level: float = LEVEL
) -> dict[str, Metric]:
    """The metrics of paired steps, times of shape (ranks, pairs); all ranks take ``images`` in a step.

    A step lasts as long as on its slowest rank. ``exposed`` is the median of the paired differences. ``level`` is that
    of one look, where several were taken.
    """
    step_s, noop_s = step_ns.max(axis=0) * _NS, noop_ns.max(axis=0) * _NS
    step = quantile(step_s, level=level)
    rate = metric(step.map(float(images), power=-1), "images/s", "higher")
    return {
        "step": metric(step, "s"),
        "step_noop": metric(quantile(noop_s, level=level), "s"),
        "exposed": metric(quantile(step_s - noop_s, level=level), "s"),
        "exposed_fraction": exposed_fraction(step_s, noop_s, level),
        "images_per_s": replace(rate, kind="derived"),
    }


def exposed_fraction(step_s: NDArray[np.float64], noop_s: NDArray[np.float64], level: float = LEVEL) -> Metric:
    """Median exposed time over median step time: a ratio of summaries, not a summary of ratios.

    Its interval is the widest ratio of the ends of both intervals, each at a level that leaves half of the
    error (Bonferroni), so that it holds with at least the usual level.
    """
    level = 1 - (1 - level) / 2
    exposed, step = quantile(step_s - noop_s, level=level), quantile(step_s, level=level)
    low, high = _ratio_ends(exposed, step)
    note = "" if low is not None else f"n={step.n} < {samples_needed(level=level)}"
    return Metric(exposed.value / step.value, "1", step.n, low, high, "lower", "derived", note)


def _ratio_ends(top: Interval, bottom: Interval) -> tuple[float | None, float | None]:
    if top.low is None or top.high is None or bottom.low is None or bottom.high is None:
        return None, None
    ratios = [t / b for t in (top.low, top.high) for b in (bottom.low, bottom.high)]
    return min(ratios), max(ratios)
