"""Cases of training in plans: places, thread levels, estimates and deadlines. Pure."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabrics.errors import UserError
from fabrics.model import Fabric
from microbench import registry
from microbench.case import Case
from suite import trained
from suite.plan import Plan, estimate_s, make_plan
from suite.planfile import parse

TABLE = registry.load()
PLAIN = "model = 'resnet50', batch = 16, image_px = 64"


def lab(name: str, bits_per_s: float) -> Fabric:
    devices = {host: (name,) for host in ("h0", "h1", "d0", "d1")}
    return Fabric(name, "tcp", ("h0", "h1"), devices, rate_bits_per_s=bits_per_s, emulated=True, lab="lab")


FAST, SLOW = lab("eth10g", 10e9), lab("eth2g5", 2.5e9)


def plan(*models: str, fabric: Fabric = FAST, more: str = "") -> Plan:
    entries = ", ".join(f"{{{model}}}" for model in models)
    file = parse(f"launches = 1\n[train]\nmodels = [{entries}]\n{more}", "x", TABLE)
    return make_plan(file, [fabric], (0, 1))


def test_exchanges_that_take_threads_have_a_job_of_their_own() -> None:
    made = plan(PLAIN, f"{PLAIN}, exchanges = ['gloo', 'mpi']", f"{PLAIN}, exchanges = ['gloo', 'gloo+unfused']")
    jobs = {job.thread_level: [case.workload for case in job.cases] for job in made.jobs}
    assert jobs == {
        "single": ["resnet50 64px batch 16", "resnet50 64px batch 16, gloo/gloo+unfused"],
        "multiple": ["resnet50 64px batch 16, gloo/mpi"],
    }
    assert all(job.torch and job.libraries == ("gloo",) for job in made.jobs)


def test_dpus_have_ranks_beside_their_hosts_or_share_the_other_core_with_a_replayed_peer() -> None:
    dpus = f"{PLAIN}, exchanges = ['gloo', 'dpu']"
    (node,) = plan(dpus).jobs
    assert (node.hosts, node.roles) == (("h0", "h1", "d0", "d1"), ("host", "host", "dpu", "dpu"))
    assert node.cpus == ((0,), (1,), (0,), (1,))
    (split,) = plan(f"{dpus}, peer = 'replayed'").jobs
    assert split.cpus == ((0,), (1,), (1,), (1,))
    here = Fabric("tcp-lo", "tcp", ("localhost",), {"localhost": ("lo",)})
    (skip,) = plan(dpus, fabric=here).skips
    assert (skip.status, skip.reason) == ("skipped", "no DPUs beside the hosts of this fabric")


def test_nccl_is_of_device_memory() -> None:
    made = plan(f"{PLAIN}, exchanges = ['nccl', 'nccl+64M']")
    (case,) = made.jobs[0].cases
    assert (case.backend, case.device, made.jobs[0].libraries) == ("nccl", "cuda", ("nccl",))


def test_ranks_are_swept() -> None:
    here = Fabric("tcp-lo", "tcp", ("localhost",), {"localhost": ("lo",)})
    assert {len(job.hosts) for job in plan(PLAIN, fabric=here, more="ranks = [2, 4]").jobs} == {2, 4}


def test_batch_that_cannot_be_shared_is_refused_before_anything_runs() -> None:
    with pytest.raises(UserError, match=r"plan x: \[train\]: train: strong scaling: 3 ranks do not divide the batch"):
        plan("model = 'resnet20', batch = 4, image_px = 32, scaling = 'strong'", more="ranks = [2, 3]")


def test_estimate_and_deadline_of_a_large_model_know_what_it_moves() -> None:
    """VGG-16 has 138 M parameters: each of 8 rounds moves 553 MB."""
    took = []
    for fabric in (FAST, SLOW):
        (case,) = plan("model = 'vgg16', batch = 2, image_px = 32", fabric=fabric).jobs[0].cases
        wire_s = 8 * 553e6 * 8 / (fabric.rate_bits_per_s or 1)
        assert estimate_s(case, fabric) > wire_s
        assert case.deadline_s > 30 + 6 * wire_s
        took.append((estimate_s(case, fabric), wire_s))
    (fast, fast_wire), (slow, slow_wire) = took
    assert slow - fast > slow_wire - fast_wire


def test_estimate_grows_with_what_is_compared_and_with_slow_types() -> None:
    def estimate(more: str) -> float:
        return estimate_s(plan(f"{PLAIN}{more}").jobs[0].cases[0], FAST)

    plain = estimate("")
    assert plain < estimate(", exchanges = ['gloo', 'mpi']") < estimate(", exchanges = ['gloo', 'mpi', 'dpu']")
    assert plain < estimate(", exchanges = ['gloo+unfused']")
    assert plain < estimate(", dtype = 'bfloat16'")
    assert estimate(", scaling = 'strong'") < plain


def test_images_of_files_take_time_to_load_in_estimate_and_deadline() -> None:
    def case(more: str) -> Case:
        return plan(f"{PLAIN}{more}").jobs[0].cases[0]

    made_up, few, many = (case(f", data = '{kind}'") for kind in ("synthetic", "cifar10:/d", "folder:/d"))
    assert estimate_s(made_up, FAST) < estimate_s(few, FAST) < estimate_s(many, FAST)
    assert many.deadline_s - made_up.deadline_s > 2 * 6 * 16 * 0.02
    assert estimate_s(case(", augment = true"), FAST) > estimate_s(made_up, FAST)


def test_images_that_are_not_here_are_refused_before_anything_is_launched(tmp_path: Path) -> None:
    options = {"model": "resnet20", "batch": 30_000, "image_px": 32, "data": f"cifar10:{tmp_path}/c"}
    trained.check_images(options | {"data": "synthetic"}, (2,))
    with pytest.raises(UserError, match="no such folder: it must hold data_batch_1"):
        trained.check_images(options, (2,))
    (tmp_path / "c").mkdir()
    for number in range(1, 6):
        with (tmp_path / "c" / f"data_batch_{number}.bin").open("wb") as file:
            file.truncate(30_730_000)
    trained.check_images(options | {"batch": 25_000}, (2,))
    with pytest.raises(UserError, match="50000 images are fewer than a step takes: 30000 on each of 2 ranks"):
        trained.check_images(options, (2,))
