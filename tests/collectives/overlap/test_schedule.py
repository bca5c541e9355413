"""Order, lateness, pieces of work and the number of rounds: pure arithmetic."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from collectives.overlap import schedule
from collectives.overlap.options import PROBES
from collectives.overlap.schedule import Rounds, chunks, lags, order, plan, steps, work_steps
from microbench import pacing
from microbench.case import Case

MODES = ("host", "probes4", "thread", "staged")
BRIEF = Case("x", "f", min_iterations=8, max_iterations=12, budget_s=6.0)
LONG = Case("x", "f", min_iterations=8, max_iterations=40, budget_s=6.0)


def test_each_mode_is_measured_alone_and_with_compute_but_probes_change_nothing_alone() -> None:
    assert steps(MODES) == (
        "compute", "host.pure", "host.overall", "probes4.overall", "thread.pure", "thread.overall", "staged.pure",
        "staged.overall",
    )  # fmt: skip


def test_the_hosts_own_time_is_measured_even_where_they_are_not_compared() -> None:
    assert steps(("staged",)) == ("compute", "host.pure", "staged.pure", "staged.overall")


def test_only_dpus_carry_what_is_offloaded() -> None:
    assert [step for step in steps(MODES) if schedule.offloaded(step)] == ["staged.pure", "staged.overall"]
    assert {schedule.mode(step) for step in steps(MODES) if schedule.overlapped(step)} == set(MODES)


def test_every_round_has_every_step_once_in_an_order_of_its_own() -> None:
    rounds = [order(MODES, 7, round_) for round_ in range(40)]
    assert all(sorted(found) == sorted(steps(MODES)) for found in rounds)
    first = Counter(schedule.mode(found[0]) for found in rounds)
    assert set(first) == {"compute", *MODES} and max(first.values()) < 20
    assert rounds == [order(MODES, 7, round_) for round_ in range(40)]
    assert rounds != [order(MODES, 8, round_) for round_ in range(40)]


def test_the_steps_of_a_mode_stay_together() -> None:
    found = order(MODES, 1, 3)
    assert found.index("staged.overall") == found.index("staged.pure") + 1


def test_lateness_is_drawn_by_iteration_and_host_and_is_the_same_whenever_it_is_asked_for() -> None:
    mine = lags(5, 2, 1, 1000, 1e6)
    assert np.array_equal(mine, lags(5, 2, 1, 1000, 1e6))
    assert np.unique(mine).size > 990
    for other in (lags(6, 2, 1, 1000, 1e6), lags(5, 3, 1, 1000, 1e6), lags(5, 2, 0, 1000, 1e6)):
        assert abs(np.corrcoef(mine, other)[0, 1]) < 0.2
    assert mine.min() >= 0 and mine.max() < 1e6 and mine.mean() == pytest.approx(5e5, rel=0.1)
    assert not lags(5, 2, 1, 10, 0.0).any()


@pytest.mark.parametrize("work", [0, 1, 16, 17, 18, 1_000_003])
def test_pieces_add_up_and_differ_by_at_most_one(work: int) -> None:
    for probes in PROBES.values():
        pieces = chunks(work, probes + 1)
        assert (len(pieces), sum(pieces)) == (probes + 1, work)
        assert max(pieces) - min(pieces) <= 1


def test_work_is_a_count_that_takes_the_target() -> None:
    assert work_steps(3_000_000.0, 1.5) == 2_000_000
    assert work_steps(0.4, 1.5) == 1
    assert work_steps(0.0, 1.5) == 0


def test_the_most_iterations_where_time_allows() -> None:
    assert plan(BRIEF, 1e-4, 0.0) == Rounds(6, 2)
    assert plan(LONG, 1e-4, 0.0).iterations == 40


def test_between_fewest_and_most_the_budget_decides_with_the_lead_ins_counted() -> None:
    rounds = plan(LONG, 0.1, 2.95)
    assert rounds.iterations == 20
    assert rounds.count * (rounds.block + schedule.LEAD_IN) * 0.1 <= 3.05


def test_many_slow_modes_are_cut_to_the_fewest_and_then_below_and_it_is_said() -> None:
    """Ten budgets are all that the fewest iterations may take: a sweep of nine modes at 32 MiB ends all the same."""
    fewest = plan(LONG, 1.0, 0.0)
    assert fewest.iterations == 8
    assert schedule.stop_reason(LONG, fewest.count) == "time"
    few = plan(LONG, 20.0, 0.0)
    assert few.iterations == 2
    assert few.count * 3 * 20.0 <= 10 * LONG.budget_s
    assert schedule.stop_reason(LONG, few.count) == pacing.TOO_SLOW
    assert plan(LONG, 1e6, 1e6).count == 1


def test_odd_limits_become_whole_rounds() -> None:
    assert plan(Case("x", "f", min_iterations=9, max_iterations=40, budget_s=6.0), 0.9, 0.0).iterations == 10
    assert plan(Case("x", "f", min_iterations=1, max_iterations=13, budget_s=6.0), 1e-4, 0.0).iterations == 12
    assert plan(Case("x", "f", min_iterations=1, max_iterations=1, budget_s=6.0), 1e-4, 0.0).count == 1


def test_rounds_end_when_twice_the_budget_is_spent_but_not_before_the_fewest() -> None:
    assert schedule.must_stop(LONG, 4, 12.1, 11.0) == "time"
    assert schedule.must_stop(LONG, 3, 12.1, 11.0) == ""
    assert schedule.must_stop(LONG, 1, 70.0, 60.1) == pacing.TOO_SLOW
    assert schedule.stop_reason(BRIEF, 6) == "max_iterations"
