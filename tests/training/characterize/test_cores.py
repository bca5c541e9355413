"""Where work runs: every thread of the process, and back again."""

from __future__ import annotations

import os
import threading

import pytest

from training.characterize.cores import Team, machine_cpus, on

CPUS = sorted(os.sched_getaffinity(0))


def test_all_threads_move_and_come_back() -> None:
    ready, done = threading.Event(), threading.Event()
    masks: list[set[int]] = []
    task: list[int] = []

    def other() -> None:
        task.append(threading.get_native_id())
        ready.set()
        done.wait(10)
        masks.append(os.sched_getaffinity(0))

    thread = threading.Thread(target=other)
    thread.start()
    assert ready.wait(10)
    before = os.sched_getaffinity(0)
    with on({CPUS[0]}):
        assert os.sched_getaffinity(0) == os.sched_getaffinity(task[0]) == {CPUS[0]}
    assert os.sched_getaffinity(0) == before
    done.set()
    thread.join(10)
    assert masks == [before]


def test_they_come_back_after_an_error() -> None:
    before = os.sched_getaffinity(0)
    with pytest.raises(RuntimeError, match="boom"), on({CPUS[-1]}):
        raise RuntimeError("boom")
    assert os.sched_getaffinity(0) == before


def test_a_thread_made_meanwhile_is_freed_too() -> None:
    team = Team(CPUS[:2])
    with on({CPUS[0]}):
        team.each(lambda place: place)
    tasks = [int(name) for name in os.listdir("/proc/self/task")]  # noqa: PTH208 - names alone
    assert all(os.sched_getaffinity(each) == set(CPUS) for each in tasks)
    team.close()


def test_each_of_a_team_runs_on_its_own_processor() -> None:
    team = Team(CPUS)
    barrier = threading.Barrier(len(CPUS))

    def where(place: int) -> tuple[int, set[int]]:
        if len(CPUS) > 1:
            barrier.wait(10)  # all at once, else this never ends
        return place, os.sched_getaffinity(0)

    got = team.each(where)
    team.close()
    expected = [(i, {cpu}) for i, cpu in enumerate(CPUS)] if len(CPUS) > 1 else [(0, set(CPUS))]
    assert got == expected


def test_what_one_raises_is_raised() -> None:
    team = Team(CPUS)
    with pytest.raises(ZeroDivisionError):
        team.each(lambda place: 1 // (len(CPUS) - 1 - place))
    team.close()


def test_a_bound_process_still_knows_its_machine() -> None:
    whole = machine_cpus()
    with on({CPUS[0]}):
        assert machine_cpus() == whole
        assert os.sched_getaffinity(0) == {CPUS[0]}
    assert set(CPUS) <= set(whole)
