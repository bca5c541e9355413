"""The bench in real jobs: every operation and mode is measured, checked and told; planted faults are found."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from collectives.overlap import samples, schedule
from collectives.overlap.options import OPERATIONS
from tests import jobs, labs

OVER_LO = {"MPIR_CVAR_CH4_NETMOD": "ofi", "MPIR_CVAR_NOLOCAL": "1", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo"}
LO = {"name": "lo", "kind": "tcp"}
OFFLOAD = {"roles": ["host", "host", "dpu", "dpu"], "cpus": [0, 1, 1, 1], "fabric": LO}
HOSTS = {"roles": ["host", "host"], "cpus": [0, 1], "fabric": LO}
NBYTES = 1 << 16


def launch(spec: dict[str, Any], *cases: dict[str, Any], **env: str) -> list[dict[str, Any]]:
    """Run a job, and read what rank 0 says of each case."""
    text = json.dumps({**spec, "cases": cases})
    done = jobs.mpi(len(spec["roles"]), "-m", "tests.collectives.overlap.job", text, timeout_s=110, env=OVER_LO | env)
    assert done.code == 0, done.err[-3000:]
    return [json.loads(line) for line in done.out.splitlines() if line.startswith("{")]


def case(benchmark: str, plant: str = "", **options: Any) -> dict[str, Any]:
    return {"benchmark": benchmark, "options": options, "plant": plant}


def check_complete(told: dict[str, Any], *modes: str) -> None:
    """What every good outcome holds, whatever the operation, on any transport."""
    assert told["status"] == "ok", told["reason"]
    method, metrics, found = told["method"], told["metrics"], told["samples"]
    steps = schedule.steps(modes)
    n = method["iterations"]
    assert n == 2 * method["rounds"]
    for name in samples.names(steps):
        assert np.shape(found[name]) == (1, n), name
    for mode in modes:
        for what in ("pure", "overall", "post", "wait", "exposed", "cpu"):
            assert metrics[f"{mode}.{what}"]["value"] is not None, (mode, what)
            assert metrics[f"{mode}.{what}"]["n"] == n
        assert {f"{mode}.overlap", f"{mode}.availability", f"{mode}.dilation"} <= set(metrics)
    assert method["compare"] == list(modes)
    assert told["validation"]["wrong_bytes"] == 0 and told["validation"]["flipped_bit_caught"] is True
    compute, whole = np.array(found["compute"]), np.array(found["host.pure"])
    assert (compute > 0).all() and (whole > 0).all()


@pytest.fixture(scope="module")
def offloaded() -> list[dict[str, Any]]:
    everything = ["host", "probes4", "staged", "window", "rma"]
    return launch(
        OFFLOAD,
        case("offload_allreduce", compare=everything) | {"nbytes": 4 * NBYTES},
        *(case(f"offload_{name}", compare=["probes16", "staged", "window"]) for name in OPERATIONS[1:]),
        case("offload_allreduce", placement="node", outstanding=3, skew=0.5, compare=["host", "staged"]),
        case("offload_alltoall", placement="accel", fraction=2, compare=["host", "window"]),
    )


def test_every_way_of_an_allreduce_is_measured_and_checked(offloaded: list[dict[str, Any]]) -> None:
    told = offloaded[0]
    check_complete(told, "host", "probes4", "staged", "window", "rma")
    assert told["method"]["left_out"] == {}
    for mode in ("staged", "window", "rma"):
        table, used = told["method"]["chunk_table"][mode], told["method"]["modes"][mode]
        assert used["chunk_bytes"] == min(table, key=lambda row: row["pure_s"])["chunk_bytes"]
    assert told["reported_ranks"] == [0] and told["method"]["computing_ranks"] == [0]
    checks = len(schedule.steps(told["method"]["compare"])) - 1 + 5  # all but compute before, every mode after
    assert told["validation"]["checked_bytes"] == checks * 2 * 4 * NBYTES


def test_the_gain_is_against_the_fastest_host_mode_of_the_same_case(offloaded: list[dict[str, Any]]) -> None:
    metrics, method = offloaded[0]["metrics"], offloaded[0]["method"]
    fastest = min(metrics[f"{mode}.overall"]["value"] for mode in ("host", "probes4", "blocking"))
    assert metrics[f"{method['best_host']}.overall"]["value"] == fastest
    for mode in ("staged", "window", "rma"):
        gain = 1 - metrics[f"{mode}.overall"]["value"] / fastest
        assert metrics[f"{mode}.net_gain"]["value"] == pytest.approx(gain)


def test_the_dpus_own_tally_is_what_was_asked_for(offloaded: list[dict[str, Any]]) -> None:
    for told in offloaded:
        offloads = [mode for mode in told["method"]["compare"] if mode in ("staged", "window", "rma")]
        assert told["method"]["used"] == dict.fromkeys(offloads, True)
        for mode in offloads:
            tally = told["method"]["tally"][mode]
            assert tally["done"] == [tally["asked"]] * 2 and tally["asked"] >= 2 * told["method"]["iterations"]


def test_every_operation_is_offloaded_and_its_data_checked(offloaded: list[dict[str, Any]]) -> None:
    for told, name in zip(offloaded[1:4], OPERATIONS[1:], strict=True):
        assert told["benchmark"] == f"offload_{name}"
        check_complete(told, "probes16", "staged", "window")


def test_parts_of_an_iteration_add_up_to_it(offloaded: list[dict[str, Any]]) -> None:
    """Post, compute, tests and wait, timed apart, are the whole on the one host that is reported."""
    found = {name: np.array(times) for name, times in offloaded[0]["samples"].items()}
    for mode in ("host", "probes4", "staged", "window", "rma"):
        parts = found[f"{mode}.post"] + found[f"{mode}.work"] + found[f"{mode}.wait"]
        if mode == "probes4":
            parts = parts + found["probes4.test"]
            assert (found["probes4.test_longest"] <= found["probes4.test"]).all()
        assert np.array_equal(parts, found[f"{mode}.overall"])


def test_in_node_placement_every_host_is_reported_with_several_operations_under_way(
    offloaded: list[dict[str, Any]],
) -> None:
    told = offloaded[4]
    check_complete(told, "host", "staged")
    assert told["reported_ranks"] == [0, 1] == told["method"]["computing_ranks"]
    assert told["placement"].startswith("node ")
    assert told["method"]["outstanding"] == 3
    assert told["method"]["tally"]["staged"]["asked"] % 3 == 0
    method = told["method"]
    assert method["longest_lag_s"] == pytest.approx(0.5 * method["compute_of_s"])
    assert told["validation"]["checked_bytes"] == (len(schedule.steps(("host", "staged"))) - 1 + 2) * 2 * 3 * NBYTES


def test_where_an_accelerator_computes_the_hosts_sleep(offloaded: list[dict[str, Any]]) -> None:
    told = offloaded[5]
    check_complete(told, "host", "window")
    assert told["method"]["computing_ranks"] == [] and told["reported_ranks"] == [0, 1]
    assert told["method"]["compute_ns_per_step"] == 1.0
    assert told["method"]["compute_steps"] == pytest.approx(2e9 * told["method"]["compute_of_s"], abs=1)
    spent, slept = (np.array(told["samples"][name]) for name in ("compute.processor", "compute"))
    assert np.median(spent) < np.median(slept)


def test_modes_come_in_another_order_in_every_round_and_rounds_say_why_they_ended(
    offloaded: list[dict[str, Any]],
) -> None:
    for told in offloaded:
        assert told["method"]["stop_reason"] in ("max_iterations", "time", "too slow for the fewest iterations")
        assert told["method"]["lead_in"] == 1


@pytest.fixture(scope="module")
def broken() -> list[dict[str, Any]]:
    plants = ("no collective", "uncounted", "falls back")
    return launch(OFFLOAD, *(case("offload_allreduce", plant, compare=["host", "staged"]) for plant in plants))


def test_a_dpu_that_skips_the_collective_leaves_wrong_data_and_no_times(broken: list[dict[str, Any]]) -> None:
    told = broken[0]
    assert (told["status"], told["metrics"], told["samples"]) == ("invalid", {}, {})
    assert told["reason"].startswith("staged.pure: wrong data")


@pytest.mark.parametrize("place", [1, 2])
def test_an_offload_that_dpus_had_no_part_in_is_measured_and_told(broken: list[dict[str, Any]], place: int) -> None:
    told = broken[place]
    check_complete(told, "host", "staged")
    assert told["method"]["used"] == {"staged": False}
    asked = told["method"]["tally"]["staged"]["asked"]
    assert f"staged: {asked} operations were asked for, the DPUs did 0, 0" in told["method"]["warnings"]
    assert told["metrics"]["staged.net_gain"]["value"] is None
    assert told["metrics"]["staged.net_gain"]["note"] == "n/a: host (offload not used)"


@pytest.fixture(scope="module")
def on_hosts() -> list[dict[str, Any]]:
    spec = {**HOSTS, "level": "multiple"}
    return launch(
        spec,
        case("overlap_allreduce", compare=["host", "thread", "gloo"], outstanding=2),
        *(case(f"overlap_{name}", compare=["host", "gloo"]) for name in OPERATIONS[1:]),
        case("overlap_allreduce", compute="memory", fraction=0.25),
        GLOO_SOCKET_IFNAME="lo",
    )


def test_threads_of_mpi_and_of_gloo_are_modes_of_their_own(on_hosts: list[dict[str, Any]]) -> None:
    told = on_hosts[0]
    check_complete(told, "host", "thread", "gloo")
    assert told["method"]["pure_of"] == {"host": "host.pure", "thread": "thread.pure", "gloo": "gloo.pure"}
    progress = told["method"]["modes"]["thread"]["progress"]
    assert progress["thread"].startswith("the library's") or "MPIX_Start" in progress["why_not_the_librarys"]


def test_gloo_does_every_operation_on_the_same_operands(on_hosts: list[dict[str, Any]]) -> None:
    for told in on_hosts[1:4]:
        check_complete(told, "host", "gloo")


def test_compute_may_stream_through_more_memory_than_the_caches_hold(on_hosts: list[dict[str, Any]]) -> None:
    told = on_hosts[4]
    check_complete(told, "host", "probes16", "probes64")
    assert told["method"]["compute"] == "memory" and told["method"]["compute_fraction"] == 0.25
    assert told["method"]["compute_ring_bytes"] >= 1 << 20


def test_threads_are_left_out_where_mpi_was_started_without_and_the_rest_goes_on() -> None:
    told, alone = launch(
        HOSTS, case("overlap_allreduce", compare=["host", "thread"]), case("overlap_allreduce", compare=["thread"])
    )
    check_complete(told, "host")
    reason = "MPI was not started for threads (MPI_THREAD_MULTIPLE)"
    assert told["method"]["left_out"] == {"thread": reason}
    assert (alone["status"], alone["reason"]) == ("unsupported", f"thread: {reason}")


def test_the_librarys_own_thread_is_used_where_it_lets_one_be_started() -> None:
    (told,) = launch(
        {**HOSTS, "level": "multiple"},
        case("overlap_allreduce", compare=["thread"]),
        MPIR_CVAR_ERROR_CHECKING="0",  # with it, MPICH 5.0.2 refuses the null stream
    )
    check_complete(told, "thread")
    progress = told["method"]["modes"]["thread"]["progress"]["thread"]
    assert progress.startswith("the library's") or "Start" not in progress


def test_a_job_without_dpus_or_with_one_host_is_refused_in_a_line() -> None:
    spec = json.dumps({**HOSTS, "roles": ["host", "host", "host"], "cpus": [0, 1, 1],
                       "cases": [case("offload_allreduce", compare=["staged"])]})  # fmt: skip
    done = jobs.mpi(3, "-m", "tests.collectives.overlap.job", spec, env=OVER_LO)
    assert done.code != 0 and "offload needs 2 or more hosts" in done.err


@pytest.fixture
def lab() -> Iterator[Any]:
    with labs.or_skip("ov") as made:
        yield made


def test_on_a_lab_counters_of_the_dpus_devices_tell_who_did_it(lab: Any) -> None:
    devices = {host: ["eth2g5"] for host in ("h0", "h1", "d0", "d1")}
    spec = {**OFFLOAD, "fabric": {"name": "eth2g5", "kind": "tcp", "devices": devices}}
    plants = ("", "falls back and counts")
    text = json.dumps(
        {**spec, "cases": [case("offload_allreduce", plant, compare=["host", "staged"]) for plant in plants]}
    )
    where = ["-launcher", "ssh", "-launcher-exec", str(lab.agent), "-hosts", "h0,h1,d0,d1", "-ppn", "1", "-n", "4"]
    settings = ["-genv", "UCX_NET_DEVICES", "eth2g5", "-genv", "UCX_TLS", "tcp,self", "-bind-to", "none"]
    python = [jobs.sys.executable, "-m", "tests.collectives.overlap.job", text]
    launcher = str(jobs.launch.find_launcher().path)
    done = jobs.run([*lab.enter("h0", [launcher, *where, *settings, *python])], 110)
    assert done.code == 0, done.err[-3000:]
    good, fake = [json.loads(line) for line in done.out.splitlines() if line.startswith("{")]
    check_complete(good, "host", "staged")
    assert good["hosts"] == ["h0", "h1", "d0", "d1"]
    tally = good["method"]["tally"]["staged"]
    assert good["method"]["used"] == {"staged": True}
    assert tally["dpus_sent_bytes"] >= tally["least_bytes"] == 2 * NBYTES * tally["asked"]
    assert good["method"]["waiting"]["strategy"] == "poll"
    assert max(good["method"]["idle_dpu_cpu_share"]) < 0.2
    if len(os.sched_getaffinity(0)) > 1:
        assert good["placement"].startswith("split ")
    assert fake["method"]["used"] == {"staged": False}
    tally = fake["method"]["tally"]["staged"]
    assert tally["done"] == [tally["asked"]] * 2 and tally["dpus_sent_bytes"] < tally["least_bytes"]
