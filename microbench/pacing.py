"""How much of a case is run, and when to stop. Pure: all of it follows from how long one iteration takes.

A budget bounds the samples of what fits into it. What is slower has its fewest iterations while these take at most
ten budgets, else as many as that holds, and one at least: it is told so, and has no interval where they are too few.
Ten budgets are two seconds at least: where a budget is brief, one pause of a busy machine is no slow operation.
Beside the samples a slow operation is run twice at least, once to check its data and once to warm up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from microbench.case import Case
from microbench.stats import LEVEL, Rule, samples_needed

TOO_SLOW = "too slow for the fewest iterations"
WARM_UP_SHARE = 0.2  # of the budget, at most
_MOST_BUDGETS, _MOST_S = 10, 2.0  # so that a plan's few seconds do not become hours
_TAIL_SHARE = 0.25  # of the budget, at most
_TAIL_S = 0.1  # the most that a percentile may cost when the median is known
_TAIL = 0.99
_LEAD_IN_SHARE = 0.1  # of the budget, at most: what takes longer hardly notices what a pause left in the caches
_LONG_S = 0.5  # what takes longer, and longer than its budget, is warmed up by one iteration
_SECOND_BLOCK = 2
_LEAST_LEFT = 0.25  # of the budget, for samples: however long the preparation took


def warm_up_more(case: Case, each_ns: float) -> int:
    """How many iterations follow the first one of warm-up, whose time may be that of a first call; 0 where it is long.

    What comes after these has to fit a share of the budget.
    """
    return 0 if each_ns > 1e9 * max(case.budget_s, _LONG_S) else _SECOND_BLOCK


def has_lead_in(case: Case, each_ns: float) -> bool:
    """Whether each block begins with an iteration that counts as warm-up."""
    return each_ns <= 1e9 * _LEAD_IN_SHARE * case.budget_s


def iterations(case: Case, each_ns: float) -> int:
    """As many as fit the budget, at least the case's fewest; of what is far too slow for those, a few, or one."""
    each_s = max(each_ns, 1.0) * 1e-9
    planned = max(case.min_iterations, min(case.max_iterations, int(case.budget_s / each_s)))
    return min(planned, max(1, int(_most_s(case) / each_s)))


def _most_s(case: Case) -> float:
    """What the fewest iterations may take."""
    return max(_MOST_BUDGETS * case.budget_s, _MOST_S)


def piece(case: Case, each_ns: float, left: int) -> int:
    """How many of the ``left`` iterations up to a look may run before the time is looked at: what fits the budget."""
    return min(left, max(1, int(case.budget_s * 1e9 / max(each_ns, 1.0))))


def plan_rule(case: Case, planned: int, each_ns: float, batched: int = 1) -> Rule:
    """When to look, and what is enough: also of samples for the 99th percentile, where a part of the budget gives them.

    A case without a precision is never enough, so its looks need no correction.
    """
    tail = samples_needed(_TAIL)
    cheap = batched == 1 and tail <= planned and tail * each_ns <= 1e9 * min(_TAIL_SHARE * case.budget_s, _TAIL_S)
    rule = Rule.plan(case.precision, max(case.min_iterations, tail if cheap else 0), planned)
    return rule if case.precision else replace(rule, level=LEVEL)


@dataclass(frozen=True)
class Spent:
    """Seconds since a case began to be measured, and of these since it has been sampled."""

    all_s: float
    sampling_s: float


def out_of_time(case: Case, done: int, spent: Spent) -> str:
    """Why to stop before the next look, or nothing: the fewest iterations are too slow after all, or time is up."""
    if done >= case.min_iterations:
        return "time" if spent.all_s > 2 * case.budget_s else ""
    return TOO_SLOW if spent.sampling_s > _most_s(case) else ""


def stop_reason(case: Case, rule: Rule, series: NDArray[np.float64], done: int, spent: Spent) -> str:
    """Why to stop at this look: ``precision``, ``time``, ``max_iterations``, too slow, or nothing."""
    if case.precision and rule.enough(series):
        return "precision"
    if done < rule.looks[-1]:
        return out_of_time(case, done, spent)
    return why_done(case, done)


def why_done(case: Case, done: int, step: int = 1) -> str:
    """Why the iterations that were planned are all, where ``step`` of them come at a time."""
    if done + step > case.max_iterations:
        return "max_iterations"
    return "time" if done >= case.min_iterations else TOO_SLOW


def left(case: Case, spent_s: float) -> Case:
    """The case with the budget that ``spent_s`` of preparation leaves for its samples: a part of it in any case."""
    return replace(case, budget_s=max(case.budget_s - spent_s, _LEAST_LEFT * case.budget_s))


def at_most_s(case: Case, each_s: float) -> float:
    """About how long it takes at most if one iteration takes ``each_s``: the check, warm-up and samples."""
    each_ns = 1e9 * each_s
    others = 2 + warm_up_more(case, each_ns) + has_lead_in(case, each_ns)
    return max(case.budget_s, (iterations(case, each_ns) + others) * each_s)
