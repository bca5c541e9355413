"""What a record says of where its ranks ran: pure."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from fabrics.model import Fabric
from microbench.case import Case
from microbench.record import Record
from suite.session import placement

LAB = Fabric("eth10g", "tcp", ("h0", "h1"), emulated=True, lab="lab")


def job(fabric: Fabric, hosts: str, cpus: list[tuple[int, ...]], roles: str = "") -> Any:
    names = tuple(hosts.split())
    return SimpleNamespace(fabric=fabric, hosts=names, cpus=tuple(cpus), roles=tuple(roles.split()), size=len(names))


def test_placement_is_what_was_read_back() -> None:
    assert placement(job(LAB, "h0 h1", [(0,), (1, 2)])) == "h0:0 h1:1,2"


def test_a_case_tells_its_identity_to_any_record() -> None:
    case = Case("allreduce", "shm", nbytes=8, dtype="int8", mode="m", workload="w", backend="gloo")
    record = Record(**case.identity(), status="skipped", reason="x")
    assert (record.id, record.nbytes, record.mode, record.workload, record.backend) == (case.id, 8, "m", "w", "gloo")
