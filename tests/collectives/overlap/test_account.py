"""Where a case ran, and what is doubtful about it."""

from __future__ import annotations

from collectives.overlap.account import crowding, disturbance, sizing, where
from collectives.overlap.ranks import host_ranks

HOSTS = ("h0", "h1", "d0", "d1")
MS = 1_000_000


def test_split_means_that_the_reported_host_has_its_cores_alone() -> None:
    assert crowding("split", (0, 1), HOSTS, ((0,), (1,), (1,), (1,)), True) == []
    assert crowding("split", (0, 1), HOSTS, ((0,), (1,), (0, 1), (0,)), True) == [
        "rank 0 shares its cores with ranks 2, 3: compute and communication compete"
    ]
    assert crowding("split", (0, 1), HOSTS, ((0,), (0,), (0,), (0,)), False) == []  # real hosts, cores of their own


def test_in_node_placement_only_hosts_must_not_share() -> None:
    assert crowding("node", (0, 1), HOSTS, ((0,), (1,), (0,), (1,)), True) == []
    assert crowding("accel", (0, 1), HOSTS, ((1,), (1,), (0,), (0,)), True) == [
        "rank 0 shares its cores with ranks 1: compute and communication compete"
    ]


def test_the_placement_names_every_rank_and_split_that_is_shared() -> None:
    cpus = ((0,), (1,), (1,), (1,))
    assert where("split", False, HOSTS, cpus) == "split h0:0 h1:1 d0:1 d1:1"
    assert where("split", True, HOSTS, cpus).startswith("shared h0:0")
    assert where("node", True, HOSTS, cpus).startswith("node h0:0")


def test_compute_that_slowed_down_since_its_calibration_is_flagged() -> None:
    assert disturbance(10.2 * MS, 10 * MS) == []
    assert "1.50 times" in disturbance(15 * MS, 10 * MS)[0]
    assert disturbance(0, 0) == []


def test_compute_that_is_far_from_what_was_asked_is_flagged() -> None:
    assert sizing(0.36 * MS, 0.35 * MS, 1.0, 0.0, 0.35 * MS) == []
    assert sizing(0.2 * MS, 0.35 * MS, 1.0, 0.0, 0.2 * MS) == []
    (told,) = sizing(32.15 * MS, 0.09 * MS, 1.0, 0.0, 32.2 * MS)
    assert told == (
        "compute took 357 times the hosts' own collective, not 1 as asked: that took 32.2 ms when the compute was "
        "sized, and 0.09 ms in the rounds"
    )
    assert "0.00114 times" in sizing(0.004 * MS, 3.5 * MS, 1.0, 0.0, 0.004 * MS)[0]
    assert sizing(1 * MS, 3 * MS, 1.0, 1.0, 1 * MS) == [], "hosts wait for late ones"
    assert sizing(0, 3 * MS, 0.0, 0.0, 1 * MS) == []


def test_hosts_are_the_ranks_of_that_role_or_all() -> None:
    assert host_ranks((), 3) == (0, 1, 2)
    assert host_ranks(("host", "host", "dpu"), 3) == (0, 1)
