"""How many samples a case gets, when sampling stops and why, and what that may take: pure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from microbench.case import Case
from microbench.pacing import (
    TOO_SLOW,
    Spent,
    at_most_s,
    has_lead_in,
    iterations,
    out_of_time,
    piece,
    plan_rule,
    stop_reason,
    warm_up_more,
)
from microbench.stats import LEVEL, looks, samples_needed

CASE = Case("x", "shm", budget_s=1.0, min_iterations=10, max_iterations=1000, precision=0.025)
RNG = np.random.default_rng(5)


@pytest.mark.parametrize(
    ("each_s", "planned"),
    [(1e-9, 1000), (1e-3, 1000), (2e-3, 500), (0.5, 10), (1.0, 10), (1.5, 6), (4.0, 2), (100.0, 1), (1e6, 1)],
)
def test_iterations_fit_the_budget(each_s: float, planned: int) -> None:
    assert iterations(CASE, each_s * 1e9) == planned


def test_a_percentile_is_sought_where_it_is_cheap() -> None:
    tail = samples_needed(0.99)
    assert plan_rule(CASE, 1000, each_ns=1e3).looks == looks(tail, 1000)
    assert plan_rule(CASE, 1000, each_ns=1e3).fewest == tail
    assert plan_rule(CASE, 1000, each_ns=1e6).looks[0] == 30
    assert plan_rule(CASE, 1000, each_ns=1e3, batched=4).looks[0] == 30
    assert plan_rule(CASE, 20, each_ns=1e3).looks == (20,)


def test_looks_are_paid_for_only_where_they_decide() -> None:
    assert plan_rule(CASE, 1000, 1e6).level > LEVEL
    assert plan_rule(replace(CASE, precision=0.0), 1000, 1e6).level == LEVEL
    assert plan_rule(CASE, 30, 1e6).level == LEVEL


def test_why_sampling_stops() -> None:
    rule = plan_rule(CASE, 1000, 1e6)
    narrow, wide = RNG.normal(100, 0.1, 45), RNG.lognormal(0, 2, 1000)
    assert stop_reason(CASE, rule, narrow, 45, Spent(0.1, 0.1)) == "precision"
    assert stop_reason(CASE, rule, wide[:45], 45, Spent(0.1, 0.1)) == ""
    assert stop_reason(CASE, rule, wide[:45], 45, Spent(2.1, 2.1)) == "time"
    assert stop_reason(CASE, rule, wide, 1000, Spent(0.1, 0.1)) == "max_iterations"
    assert stop_reason(CASE, plan_rule(CASE, 500, 1e6), wide[:500], 500, Spent(0.1, 0.1)) == "time"
    assert stop_reason(CASE, plan_rule(CASE, 4, 1e6), wide[:4], 4, Spent(0.1, 0.1)) == TOO_SLOW
    assert stop_reason(replace(CASE, precision=0.0), rule, narrow, 45, Spent(0.1, 0.1)) == ""


def test_time_is_looked_at_between_looks_where_a_look_is_far() -> None:
    assert piece(CASE, 1e6, 200) == 200
    assert piece(CASE, 0.2e9, 30) == 5
    assert piece(CASE, 7e9, 10) == 1
    assert out_of_time(CASE, 5, Spent(99, 9.9)) == ""  # the fewest are still to be had
    assert out_of_time(CASE, 5, Spent(99, 10.1)) == TOO_SLOW
    assert out_of_time(CASE, 10, Spent(2.1, 0)) == "time"
    assert out_of_time(CASE, 10, Spent(1.9, 1.9)) == ""


def test_a_pause_of_the_machine_is_no_slow_operation() -> None:
    """Budgets of milliseconds that one slice of another process uses up: the fewest iterations are had all the same."""
    brief = replace(CASE, budget_s=0.01)
    assert iterations(brief, 0.1e9) == 10
    assert out_of_time(brief, 5, Spent(1.9, 1.9)) == ""
    assert out_of_time(brief, 5, Spent(2.1, 2.1)) == TOO_SLOW


def test_what_takes_longer_than_its_budget_is_run_three_times_at_least_and_no_more_than_it_must() -> None:
    """Check, warm-up, sample: 6 s each with a budget of 0.5 s; and a budget of a minute buys all warm-up there is."""
    brief = replace(CASE, budget_s=0.5)
    assert (warm_up_more(brief, 6e9), has_lead_in(brief, 6e9), iterations(brief, 6e9)) == (0, False, 1)
    assert at_most_s(brief, 6.0) == 3 * 6.0
    assert warm_up_more(replace(CASE, budget_s=60.0), 6e9) == 2
    assert warm_up_more(replace(CASE, budget_s=0.001), 0.2e9) == 2  # a first call may take long, once
    assert has_lead_in(CASE, 1e6)


@pytest.mark.parametrize("each_s", [0.0, 1e-6, 1e-3, 0.03, 0.3, 0.6, 1.0, 3.0, 30.0])
def test_what_it_takes_is_ten_budgets_or_a_few_iterations(each_s: float) -> None:
    brief = replace(CASE, budget_s=0.5)
    assert brief.budget_s <= at_most_s(brief, each_s) <= max(10 * brief.budget_s, each_s) + 5 * each_s
