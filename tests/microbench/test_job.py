"""What a job tells of its own layout: pure."""

from __future__ import annotations

from typing import Any

import pytest

from fabrics.model import Fabric
from microbench.job import Job, differing

REAL = Fabric("eth0", "tcp", ("a", "b"))
LAB = Fabric("eth10g", "tcp", ("h0", "h1"), emulated=True, lab="lab")


@pytest.mark.parametrize(
    ("fabric", "hosts", "cpus", "roles", "crowded"),
    [
        (REAL, "a a", [(0,), (1,)], "", False),
        (REAL, "a a", [(0, 1), (0, 1)], "", False),
        (REAL, "a a a", [(0, 1)] * 3, "", True),
        (REAL, "a b", [(0,), (0,)], "", False),  # each host has a core of its own
        (LAB, "h0 h1", [(0,), (0,)], "", True),  # emulated hosts share one machine
        (LAB, "h0 h1", [(0,), (1,)], "", False),
        (LAB, "h0 h1 d0 d1", [(0,), (1,), (1,), (1,)], "host host dpu dpu", False),  # DPUs sleep
        (LAB, "h0 h1 h2", [(0,), (1,), (1,)], "host host host", True),
    ],
)
def test_oversubscription(fabric: Fabric, hosts: str, cpus: list[tuple[int, ...]], roles: str, crowded: bool) -> None:
    nothing: Any = None
    job = Job(nothing, nothing, fabric, tuple(hosts.split()), tuple(roles.split()), tuple(cpus))
    assert job.oversubscribed is crowded


@pytest.mark.parametrize(
    ("mine", "theirs", "expected"),
    [
        ({"size": "8", "sync": "auto"}, {"size": "8", "sync": "barrier"}, {"sync": "auto"}),
        ({"size": "8", "dtype": "int8", "n": "9"}, {"size": "4", "dtype": "int8", "n": "9"},
         {"size": "8", "dtype": "int8"}),
        ({"size": "8", "dtype": "int8"}, {"size": "8", "dtype": "float32"}, {"size": "8", "dtype": "int8"}),
        ({"size": "8"}, {"size": "8", "dpus": "d0"}, {"dpus": None}),
    ],
)  # fmt: skip
def test_of_ranks_that_disagree_only_what_differs_is_told(
    mine: dict[str, str], theirs: dict[str, str], expected: dict[str, str | None]
) -> None:
    assert differing(mine, theirs) == expected
