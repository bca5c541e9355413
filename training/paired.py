"""How many rounds of steps to time, and in which order: no MPI and no torch.

A round holds one step without an exchange of gradients and one by each way of exchanging them, next to each other in
time, so that slow changes of the machine's speed cancel in their differences: the exposed communication.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from microbench.stats import Rule

MIN_ROUNDS = 8  # the least even number with an interval for the exposed fraction, too


@dataclass(frozen=True)
class Budget:
    """How many rounds are timed, and what decided: ``time``, ``max_iterations`` or ``minimum``."""

    rounds: int
    stop_reason: str


def budget(round_s: float, budget_s: float, max_rounds: int) -> Budget:
    """The rounds of ``round_s`` seconds that fit ``budget_s``; at least :data:`MIN_ROUNDS`, at most ``max_rounds``."""
    most, fitting = max(1, max_rounds), int(budget_s / round_s)
    rounds = min(most, max(MIN_ROUNDS, fitting))
    if rounds == most:
        return Budget(rounds, "max_iterations")
    return Budget(rounds, "time" if rounds == fitting else "minimum")


def rule(plan: Budget, precision: float) -> Rule:
    """When to look at the steps, and when they are enough."""
    return Rule.plan(precision, MIN_ROUNDS, plan.rounds)


def order(kinds: int, round_number: int, seed: int) -> list[int]:
    """The kinds of steps, by number, in a round's order: drawn anew for each round, alike on all ranks."""
    found = list(range(kinds))
    random.Random(f"{seed}-{round_number}").shuffle(found)  # noqa: S311 - an order, no secret
    return found
