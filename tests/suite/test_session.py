"""What a record says of where its ranks ran: pure."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from fabrics.model import Fabric, Proof
from microbench.case import Case, Outcome
from microbench.record import Record
from suite.session import by_lab, compose, placement

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


def test_ranks_called_dpus_on_a_hosts_machine_are_warned_of() -> None:
    def warnings(hosts: str) -> Any:
        this = job(Fabric("here", "tcp", ()), hosts, [(0,)] * 3, "host host dpu")
        library = SimpleNamespace(Get_library_version=lambda: "MPICH Version: 5.0.2")
        vars(this).update(engine=SimpleNamespace(MPI=library), launch=1, oversubscribed=False, seed=0)
        outcome = Outcome(method={"warnings": ["hm"]})
        record = compose(this, Case("offload_allreduce", "here", nbytes=8), outcome, Proof("unknown", ""), "single")
        return record.method["warnings"]

    assert warnings("vm vm vm") == ["DPU ranks share machine vm with hosts: not a DPU", "hm"]
    assert warnings("vm vm nic") == ["hm"]


def test_a_job_of_ones_own_is_emulated_in_hosts_of_a_lab() -> None:
    here = Fabric("as launched", "tcp", ("h0", "h1"))
    assert by_lab(here, (), ["lab/h0", "lab/h1"]).emulated
    assert not by_lab(here, (), ["", ""]).emulated
    assert not by_lab(here, ("h0", "h1"), ["lab/h0", "lab/h1"]).emulated, "what is planned has been looked at"
