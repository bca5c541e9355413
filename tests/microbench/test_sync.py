"""Clocks and synchronised starts: what is pure, and real jobs with planted skews, clocks of their own among them."""

from __future__ import annotations

import json
import os
import shutil
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fabrics.errors import UserError
from microbench import clocksync, sync
from microbench.clocks import IDENTITY, ClockModel
from suite import launch
from tests import jobs

JOB = ("-m", "tests.microbench.sync_job")
SLACK_NS = 50_000  # what a busy machine may add to a bound of half a round trip
WAYS = ("barrier", "dissemination", "round-time")
CORES = len(os.sched_getaffinity(0))


def fake(rank: int, size: int) -> Any:
    mpi = SimpleNamespace(BYTE="byte")
    return SimpleNamespace(rank=rank, size=size, comm="comm", engine=SimpleNamespace(MPI=mpi), oversubscribed=size > 2)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_a_dissemination_barrier_joins_all_ranks(size: int) -> None:
    programs = [sync.Dissemination(fake(rank, size)).calls() for rank in range(size)]
    assert {len(calls) for calls in programs} == {(size - 1).bit_length()}
    heard = [{rank} for rank in range(size)]
    for step in zip(*programs, strict=True):
        assert {len(call) - 1 for call in step} == {12}
        sources = [call[9] for call in step]
        assert all(step[source][4] == rank for rank, source in enumerate(sources))  # who is heard from sends to me
        heard = [heard[rank] | heard[source] for rank, source in enumerate(sources)]
    assert heard == [set(range(size))] * size


def test_an_iteration_is_valid_where_every_rank_was_early() -> None:
    assert sync.valid(np.array([[5, 5, 0, -2], [1, -1, 5, 5]])).tolist() == [True, False, False, False]
    assert sync.valid(np.full((3, 2), 2**62)).all()


def test_the_ways_have_names() -> None:
    assert list(sync.NAMES) == ["auto", *WAYS]
    with pytest.raises(UserError, match="'window': one of auto, barrier, dissemination, round-time"):
        sync.choose(fake(0, 2), "window")
    assert isinstance(sync.choose(fake(0, 2), "barrier"), sync.Barrier)
    assert isinstance(sync.choose(fake(0, 2), "dissemination"), sync.Dissemination)
    crowded = sync.choose(fake(0, 3), "auto")  # more ranks than cores
    assert isinstance(crowded, sync.Barrier) and "cores" in crowded.method()["sync_reason"]
    assert sync.choose(fake(0, 2), "auto", "so").method() == {"sync_reason": "so"}
    assert sync.choose(fake(0, 3), "barrier").method() == {}  # somebody asked for it
    own = sync.Own("ping-pong")
    assert (own.name, own.calls(), own.columns, own.method()) == ("ping-pong", [], 0, {})


def test_round_time_is_the_jobs_own() -> None:
    job = fake(0, 2)
    job.round_time = object()
    assert sync.choose(job, "auto") is sync.choose(job, "round-time") is job.round_time


@pytest.mark.parametrize("rank", [0, 1])
def test_round_time_reads_the_present_model(rank: int) -> None:
    clocks = SimpleNamespace(model=IDENTITY)
    start = sync.RoundTime(fake(rank, 2), clocks)
    names = [call[0] for call in start.calls()]
    assert names == ["MPI_Sendrecv", *(["deadline"] if rank == 0 else []), "MPI_Bcast", "wait_until"]
    words = start.calls()[-1][2]
    assert not words.any()
    clocks.model = ClockModel(1000, 500, 0.0, 3.0)
    start.before_block()
    assert words.tolist() == clocks.model.words().tolist() == [500, 500, 0]


def test_leaders_are_the_first_of_each_clock() -> None:
    clocks = clocksync.Clocks(fake(3, 5), ["a", "b", "a", "b", "c"])
    assert clocks.leaders == (0, 1, 4)
    alone = clocksync.Clocks(fake(0, 3), ["a"] * 3)
    assert (alone.measure(), len(alone.gather())) == ((0.0, 0.0), 3)  # and no message: this job has no communicator


def found(done: jobs.Done) -> dict[str, Any]:
    assert done.code == 0, done.err
    return dict(json.loads(done.out))


@pytest.fixture(scope="module")
def pair() -> dict[str, Any]:
    return found(jobs.mpi(2, *JOB, "200", *WAYS))


@pytest.fixture(scope="module")
def three() -> dict[str, Any]:
    return found(jobs.mpi(3, *JOB, "10", "own", *WAYS, "auto"))


def test_one_clock_is_exact(pair: dict[str, Any]) -> None:
    assert pair["leaders"] == [0]
    assert pair["models"] == 2
    for clock in pair["clocks"]:
        assert {clock[name] for name in ("offset_ns", "bound_ns", "drift", "discrepancy_ns")} == {0}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("ranks", [2, 3])
def test_a_start_leaves_the_collective_right(way: str, ranks: int, pair: dict[str, Any], three: dict[str, Any]) -> None:
    got = (pair if ranks == 2 else three)[way]
    assert got["used"] == way
    assert got["ranks_right"] == ranks
    assert got["shape"] == [ranks, 200 if ranks == 2 else 10, 2 + (way == "round-time")]
    assert got["ordered"]
    assert sum(got["last"]) == got["shape"][1]
    assert 0 <= got["valid"] <= 1


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("ranks", [2, 3])
def test_a_planted_nap_is_the_last_ranks_entry_skew(
    way: str, ranks: int, pair: dict[str, Any], three: dict[str, Any]
) -> None:
    got = (pair if ranks == 2 else three)[f"{way} and a nap"]
    assert got["skew_ns"] > 1_900_000
    if ranks <= CORES:  # with fewer cores, whoever waits for one may come later still
        assert np.argmax(got["last"]) == ranks - 1


@pytest.mark.skipif(CORES < 2, reason="two ranks that wait busily need two cores")
def test_round_time_starts_together(pair: dict[str, Any]) -> None:
    assert pair["round-time"]["skew_ns"] <= 3 * pair["barrier"]["skew_ns"] + 2000
    assert pair["round-time"]["valid"] > 0
    method = pair["round-time"]["method"]
    assert 0 < method["slack_s"] <= 0.02
    assert method["trial_valid"] >= 0.95 or method["slack_doublings"] == 8 or method["slack_s"] == 0.02


def test_auto_is_round_time_where_every_rank_has_a_core(three: dict[str, Any]) -> None:
    assert three["auto"]["used"] == ("barrier" if CORES < 3 else "round-time")


def test_clocks_learned_over_messages_agree_where_they_are_one(three: dict[str, Any]) -> None:
    assert three["leaders"] == [0, 1, 2]
    assert three["clocks"][0]["offset_ns"] == three["clocks"][0]["bound_ns"] == 0
    for clock in three["clocks"][1:]:
        assert abs(clock["offset_ns"]) <= clock["bound_ns"] + SLACK_NS
        assert clock["bound_ns"] > 0
        assert abs(clock["discrepancy_ns"]) <= clock["bound_ns"] + clock["bound_again_ns"] + SLACK_NS


def other_time() -> list[str]:
    """A command that runs another with CLOCK_MONOTONIC 5 s ahead; skips where there is none."""
    path = shutil.which("unshare")
    prefix = [path or "", "--time", "--monotonic", "5"]
    done = jobs.run([*prefix, "true"]) if path else jobs.Done(1, "", "no unshare")
    if done.code:
        pytest.skip(f"no time namespace: {done.err.strip()}")
    return prefix


def test_a_clock_in_a_time_namespace_is_another() -> None:
    code = "import time; from microbench.clocksync import same_clock_key; print(same_clock_key())"
    here, there = jobs.python("-c", code), jobs.run([*other_time(), sys.executable, "-c", code])
    assert here.out.strip() == clocksync.same_clock_key()
    assert there.code == 0
    assert there.out != here.out


def test_a_clock_5_s_ahead_is_learned() -> None:
    rank = [sys.executable, *JOB, "100", "barrier", "round-time"]
    ranks = ["-n", "1", *rank, ":", "-n", "1", *other_time(), *rank]
    got = found(jobs.run([launch.find_launcher().path, *ranks]))
    assert got["leaders"] == [0, 1]
    clock = got["clocks"][1]
    assert abs(clock["offset_ns"] - 5_000_000_000) <= clock["bound_ns"] + SLACK_NS
    assert abs(clock["discrepancy_ns"]) <= clock["bound_ns"] + clock["bound_again_ns"] + SLACK_NS
    for way in ("barrier", "round-time"):
        assert got[way]["ranks_right"] == 2
        assert got[way]["shortest_ns"] > 0
        assert got[way]["skew_ns"] < 1_000_000_000  # by another clock it would be 5 s
        assert got[way]["valid"] > 0  # a wait told by another clock would be late, or last 5 s
        nap = got[f"{way} and a nap"]
        assert nap["skew_ns"] > 1_900_000
        assert np.argmax(nap["last"]) == 1
