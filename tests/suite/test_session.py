"""What a record says of where its ranks ran: pure."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fabrics.model import Fabric
from microbench.case import Case
from microbench.record import Record
from suite.session import oversubscribed, placement

REAL = Fabric("eth0", "tcp", ("a", "b"))
LAB = Fabric("eth10g", "tcp", ("h0", "h1"), emulated=True, lab="lab")


def job(fabric: Fabric, hosts: str, cpus: list[tuple[int, ...]], roles: str = "") -> Any:
    names = tuple(hosts.split())
    return SimpleNamespace(fabric=fabric, hosts=names, cpus=tuple(cpus), roles=tuple(roles.split()), size=len(names))


@pytest.mark.parametrize(
    ("where", "crowded"),
    [
        (job(REAL, "a a", [(0,), (1,)]), False),
        (job(REAL, "a a", [(0, 1), (0, 1)]), False),
        (job(REAL, "a a a", [(0, 1)] * 3), True),
        (job(REAL, "a b", [(0,), (0,)]), False),  # each host has a core of its own
        (job(LAB, "h0 h1", [(0,), (0,)]), True),  # emulated hosts share one machine
        (job(LAB, "h0 h1", [(0,), (1,)]), False),
        (job(LAB, "h0 h1 d0 d1", [(0,), (1,), (1,), (1,)], "host host dpu dpu"), False),  # DPUs sleep
        (job(LAB, "h0 h1 h2", [(0,), (1,), (1,)], "host host host"), True),
    ],
)
def test_oversubscription(where: Any, crowded: bool) -> None:
    assert oversubscribed(where) is crowded


def test_placement_is_what_was_read_back() -> None:
    assert placement(job(LAB, "h0 h1", [(0,), (1, 2)])) == "h0:0 h1:1,2"


def test_a_case_tells_its_identity_to_any_record() -> None:
    case = Case("allreduce", "shm", nbytes=8, dtype="int8", mode="m", workload="w", backend="gloo")
    record = Record(**case.identity(), status="skipped", reason="x")
    assert (record.id, record.nbytes, record.mode, record.workload, record.backend) == (case.id, 8, "m", "w", "gloo")
