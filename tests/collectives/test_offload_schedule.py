"""Order, chunks of work and the number of rounds."""

from __future__ import annotations

import pytest

from collectives.offload import schedule
from collectives.offload.schedule import Rounds, chunks, plan, work_steps


@pytest.mark.parametrize("work", [0, 1, 16, 17, 18, 1_000_003])
def test_chunks_add_up_and_differ_by_at_most_one(work):
    pieces = chunks(work, schedule.PROBES + 1)
    assert len(pieces) == 17
    assert sum(pieces) == work
    assert max(pieces) - min(pieces) <= 1


def test_a_step_without_probes_is_one_chunk():
    assert chunks(12345, schedule.probes("host.overall") + 1) == [12345]
    assert schedule.probes("probes16.overall") == 16


def test_every_mode_is_measured_overlapped_and_only_staged_is_offloaded():
    assert {schedule.mode(s) for s in schedule.STEPS if schedule.overlapped(s)} == set(schedule.MODES)
    assert [s for s in schedule.STEPS if schedule.offloaded(s)] == ["staged.pure", "staged.overall"]


def test_work_is_a_count_that_takes_the_target():
    assert work_steps(3_000_000.0, 1.5) == 2_000_000
    assert work_steps(0.4, 1.5) == 1
    assert work_steps(0.0, 1.5) == 0


def test_the_most_iterations_where_time_allows():
    assert plan(1e-4, 6.0, 8, 12) == Rounds(6, 2)
    assert plan(1e-4, 6.0, 8, 40).iterations == 40


def test_the_fewest_iterations_however_long_they_take():
    assert plan(10.0, 6.0, 8, 40).iterations == 8
    assert plan(10.0, -1.0, 8, 40).iterations == 8


def test_between_them_the_budget_decides_with_the_lead_ins_counted():
    rounds = plan(0.1, 3.05, 8, 40)
    assert rounds.iterations == 20
    assert rounds.count * (rounds.block + 1) * 0.1 <= 3.05


def test_odd_limits_become_whole_rounds():
    assert plan(10.0, 1.0, 9, 40).iterations == 10
    assert plan(1e-4, 6.0, 1, 13).iterations == 12
    assert plan(1e-4, 6.0, 1, 1).count == 1
