"""How many rounds of steps to time, and in which order: no MPI and no torch.

A round holds one step without an exchange of gradients and one by each way of exchanging them, next to each other in
time, so that slow changes of the machine's speed cancel in their differences: the exposed communication.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from microbench.stats import Rule

MIN_ROUNDS = 8  # the least even number with an interval for the exposed fraction, too
FEWEST_RATED = 7  # rounds from which on a ratio of two medians has an interval
LEAST_ALONE, FEWEST_ALONE = 8, 2  # steps of one rank alone: the least even number with an interval; and the fewest
_ROUNDS_PER_ALONE = 5


@dataclass(frozen=True)
class Budget:
    """How many rounds are timed, and what decided: ``time``, ``max_iterations``, ``minimum`` or ``deadline``.

    ``alone`` is how many steps rank 0 takes alone beside them: an even number, half before and half after them.
    """

    rounds: int
    stop_reason: str
    alone: int = FEWEST_ALONE


def budget(round_s: float, budget_s: float, max_rounds: int, alone_s: float) -> Budget:
    """The rounds of ``round_s`` seconds that fit ``budget_s``; at least :data:`MIN_ROUNDS`, at most ``max_rounds``.

    Steps alone, of ``alone_s`` each, are as many as scaling efficiency takes for an interval where the fewest rounds
    leave time for them.
    """
    most, fitting, alone = max(1, max_rounds), int(budget_s / round_s), FEWEST_ALONE
    beside = int((budget_s - LEAST_ALONE * alone_s) / round_s)
    if most >= FEWEST_RATED and beside >= min(MIN_ROUNDS, most):
        fitting, alone = beside, LEAST_ALONE
    rounds = min(most, max(MIN_ROUNDS, fitting))
    reason = "max_iterations" if rounds == most else "time" if rounds == fitting else "minimum"
    return Budget(rounds, reason, max(alone, 2 * (rounds // _ROUNDS_PER_ALONE)))


def within(plan: Budget, round_s: float, alone_s: float, left_s: float) -> Budget:
    """The same, with fewer rounds where they would not end in ``left_s``; none where not even one would."""
    if plan.rounds * round_s + plan.alone * alone_s <= left_s:
        return plan
    for alone in (plan.alone, FEWEST_ALONE):
        rounds = min(plan.rounds, int((left_s - alone * alone_s) / round_s))
        if rounds >= FEWEST_RATED:
            return Budget(rounds, "deadline", alone)
    return replace(plan, rounds=max(0, rounds), stop_reason="deadline", alone=FEWEST_ALONE)


def rule(plan: Budget, precision: float) -> Rule:
    """When to look at the steps, and when they are enough."""
    return Rule.plan(precision, MIN_ROUNDS, plan.rounds)


def order(kinds: int, round_number: int, seed: int) -> list[int]:
    """The kinds of steps, by number, in a round's order: drawn anew for each round, alike on all ranks."""
    found = list(range(kinds))
    random.Random(f"{seed}-{round_number}").shuffle(found)  # noqa: S311 - an order, no secret
    return found
