"""gloo in real jobs over loopback: every collective it has, in every type, checked and proved."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from collectives.backends.bench import refused
from collectives.backends.table import OPERATIONS
from fabrics.model import Fabric
from microbench.case import Case
from microbench.dtypes import DTYPES
from tests import jobs
from tests.collectives.backends.plants import DELAY_S
from tests.collectives.test_library_job import CHECKED

SIZED = [name for name in OPERATIONS if name != "barrier"]
RECIPE = {"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo", "GLOO_SOCKET_IFNAME": "lo"}
REQUESTS: dict[str, dict[str, Any]] = {
    "shm": {"benchmark": "allreduce", "nbytes": 8, "kind": "shm"},
    "gather": {"benchmark": "gather", "nbytes": 8},
    "mode": {"benchmark": "allreduce", "nbytes": 8, "mode": "nonblocking"},
    "algorithm": {"benchmark": "allreduce", "nbytes": 8, "algorithm": "ring"},
    "device": {"benchmark": "allreduce", "nbytes": 8, "device": "cuda"},
    "unknown": {"benchmark": "allreduce", "nbytes": 8, "backend": "smoke"},
    "nccl": {"benchmark": "allreduce", "nbytes": 8, "backend": "nccl"},
    "torch-mpi": {"benchmark": "allreduce", "nbytes": 8, "backend": "torch-mpi"},
    "ucc": {"benchmark": "allreduce", "nbytes": 8, "backend": "ucc"},
    "other interface": {"benchmark": "allreduce", "nbytes": 8, "interface": "eth9"},
    "wrong": {"benchmark": "allreduce", "nbytes": 400, "plant": "one_element_off"},
    "slow": {"benchmark": "broadcast", "nbytes": 8, "plant": "slow_on_last", "max_iterations": 3},
    "type": {"benchmark": "alltoall", "nbytes": 8, "dtype": "bfloat16", "plant": "no_such_type"},
    "alone": {"benchmark": "allreduce", "nbytes": 8, "plant": "alone"},
    "odd": {"benchmark": "reduce_scatter", "nbytes": 12},
    "in place on a device": {"benchmark": "allreduce", "nbytes": 40, "device": "cuda", "plant": "device"},
    "on a device": {"benchmark": "alltoall", "nbytes": 40, "device": "cuda", "plant": "device"},
    "nothing": {"benchmark": "allreduce", "nbytes": 0},
    "round-time": {"benchmark": "broadcast", "nbytes": 64, "sync": "round-time", "budget_s": 0.05, "max_iterations": 40,
                   "min_iterations": 10},
    "auto": {"benchmark": "alltoall", "nbytes": 8, "sync": "auto"},
    "after all": {"benchmark": "allreduce", "nbytes": 400},
}  # fmt: skip


def ran(ranks: int, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    program = ("-m", "tests.collectives.backends.job", json.dumps(requests))
    done = jobs.mpi(ranks, *program, timeout_s=150, env=RECIPE)
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()]


@pytest.fixture(scope="module")
def told() -> dict[str, dict[str, Any]]:
    """All requests in one job of two ranks, since each job pays for torch's import."""
    return dict(zip(REQUESTS, ran(2, list(REQUESTS.values())), strict=True))


@pytest.mark.parametrize(
    ("ranks", "sizes", "kinds"),
    [(1, (8,), ("float32",)), (2, (16,), tuple(DTYPES)), (3, (24, 40, 8), ("float32",))],
)
def test_every_operation_gives_what_it_defines(ranks: int, sizes: tuple[int, ...], kinds: tuple[str, ...]) -> None:
    """In every type, float16 and bfloat16 among them; blocks that ranks divide or not, fewer elements than ranks."""
    asked = [
        {"benchmark": name, "nbytes": size, "dtype": kind}
        for name in SIZED
        for size in sizes
        for kind in kinds
        if not (name == "reduce_scatter" and size // DTYPES[kind].nbytes % ranks)
    ]
    records = ran(ranks, [*asked, {"benchmark": "barrier", "dtype": ""}])
    assert len(records) == len(asked) + 1
    for record in records:
        assert record["status"] == "ok", (record["id"], record["reason"])
        assert record["backend"] == "gloo"
        if record["benchmark"] == "barrier":
            continue
        checked = CHECKED[record["benchmark"]](record["nbytes"], ranks)
        validation = record["validation"]
        assert (validation["checked_bytes"], validation["checked_after"]) == (checked, checked), record["id"]
        assert validation["flipped_bit_caught"] is (True if checked else None)
        adds = record["benchmark"] in ("allreduce", "reduce_scatter")
        assert ("reals" in validation) == (adds and bool(DTYPES[record["dtype"]].digits))


def test_a_record_says_how_it_was_timed_and_by_what(told: dict[str, dict[str, Any]]) -> None:
    method = told["after all"]["method"]
    assert method["call"] == "torch.distributed.all_reduce"
    assert (
        method["timing"] == f"timed from Python: an empty call takes about {method['python_overhead_s'] * 1e6:.1f} us"
    )
    assert 0 < method["python_overhead_s"] < told["after all"]["metrics"]["time"]["value"]
    assert (method["in_place"], method["threads"], method["affinity_kept"]) == (True, 1, True)
    assert "refilled" in method
    assert told["after all"]["metrics"]["busbw"]["value"] == pytest.approx(
        400 / told["after all"]["metrics"]["time"]["value"]
    )


def test_gloos_own_traffic_is_proved_once_a_job(told: dict[str, dict[str, Any]]) -> None:
    records = [told[name] for name in ("odd", "round-time", "after all")]
    assert {record["proof"] for record in records} == {"proved"}
    assert {record["counters"]["payload_bytes"] for record in records} == {64 << 20}
    assert told["after all"]["proofs"] == 1


def test_the_slowest_rank_is_the_headline(told: dict[str, dict[str, Any]]) -> None:
    slow = told["slow"]
    assert slow["status"] == "ok"
    assert slow["metrics"]["time"]["value"] > DELAY_S > slow["metrics"]["time_fastest"]["value"]


def test_starts_at_an_agreed_time_have_a_timeline(told: dict[str, dict[str, Any]]) -> None:
    method = told["round-time"]["method"]
    assert method["sync"] == "round-time"
    assert method["warmup_iterations"] > 0
    assert {"makespan", "last_exit", "entry_skew"} <= set(told["round-time"]["metrics"])


def test_ranks_do_not_spin_for_a_start_where_the_backends_threads_need_their_cores(
    told: dict[str, dict[str, Any]],
) -> None:
    assert told["auto"]["method"]["sync"] == "barrier"
    assert "threads on the ranks' cores" in told["auto"]["method"]["sync_reason"]
    assert "sync_reason" not in told["round-time"]["method"]


def test_how_ranks_start_is_no_other_way_of_a_backend() -> None:
    """A plan's ``sync`` made every case of a backend unsupported."""
    job: Any = SimpleNamespace(fabric=Fabric("x", "tcp", ()))
    case = Case("allreduce", "x", backend="gloo", mode="dissemination sync", nbytes=8)
    assert refused(job, case) == ""
    assert "not in-place" in refused(job, replace(case, mode="in-place dissemination sync"))


def test_wrong_data_publishes_no_time(told: dict[str, dict[str, Any]]) -> None:
    assert told["wrong"]["status"] == "invalid"
    assert not told["wrong"]["metrics"]
    assert told["after all"]["status"] == "ok"  # the job goes on


@pytest.mark.parametrize(
    ("name", "status", "reason"),
    [
        ("shm", "unsupported", "gloo has no shared-memory transport"),
        ("gather", "unsupported", "gather is measured by MPI alone"),
        ("mode", "unsupported", "gloo is measured in its own way alone, not nonblocking"),
        ("algorithm", "unsupported", "not ring"),
        ("device", "skipped", "rank 0: no CUDA device: "),
        ("unknown", "unsupported", "there is no backend smoke: mpi, gloo, nccl, ucc, torch-mpi"),
        ("nccl", "unsupported", "nccl takes cuda memory alone: --device cuda measures it"),
        ("torch-mpi", "unsupported", "is built without mpi"),
        ("ucc", "unsupported", "is built without ucc"),
        ("type", "unsupported", "gloo has no alltoall of bfloat16: rank 1: map::at"),
        ("odd", "unsupported", "3 elements are no whole blocks for 2 ranks"),
    ],
)
def test_what_cannot_be_is_told_and_the_job_goes_on(
    told: dict[str, dict[str, Any]], name: str, status: str, reason: str
) -> None:
    assert told[name]["status"] == status
    assert reason in told[name]["reason"]


def test_what_needs_no_torch_does_not_import_it(told: dict[str, dict[str, Any]]) -> None:
    assert not told["device"]["torch"]
    assert told["after all"]["torch"]


def test_another_interface_on_one_rank_stops_all(told: dict[str, dict[str, Any]]) -> None:
    assert told["other interface"]["raised"].startswith(
        "gloo: rank 1: GLOO_SOCKET_IFNAME is 'eth9', not the fabric's 'lo'"
    )


def test_a_group_of_one_rank_is_never_measured(told: dict[str, dict[str, Any]]) -> None:
    assert told["alone"]["raised"] == "gloo: rank 0: torch says rank 0 of 1, launched was rank 0 of 2"


@pytest.mark.parametrize("name", ["in place on a device", "on a device"])
def test_buffers_on_a_device_are_checked_there_and_timed_to_its_end(told: dict[str, dict[str, Any]], name: str) -> None:
    """On a fake one, whose bytes are the host's: what is filled and compared goes there and comes back."""
    record = told[name]
    assert record["status"] == "ok", record["reason"]
    assert record["validation"]["checked_after"] == 80
    assert record["method"]["device"] == "not verified on hardware"
    assert record["metrics"]["time_device"]["value"] == pytest.approx(1.5e-3)
    assert ("refilled" in record["method"]) is (name == "in place on a device")


def test_nothing_to_move_is_measured_without_bandwidth(told: dict[str, dict[str, Any]]) -> None:
    assert told["nothing"]["status"] == "ok"
    assert told["nothing"]["metrics"]["busbw"]["note"] == "0 B carry no bandwidth"


def test_what_torch_raises_in_the_loop_names_call_rank_and_cause() -> None:
    request = {"benchmark": "broadcast", "nbytes": 8, "plant": "breaks_later"}
    done = jobs.mpi(2, "-m", "tests.collectives.backends.job", json.dumps([request]), timeout_s=90, env=RECIPE)
    assert done.code != 0
    assert "torch.distributed.broadcast (call " in done.err
    assert "RuntimeError: Connection reset by peer" in done.err
