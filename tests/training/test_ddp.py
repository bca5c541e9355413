"""Real jobs of two ranks over loopback; one launch serves all tests, since each pays for torch's import."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import jobs

DELAY_S, LOADER_S = 0.05, 0.3
TINY = {"model": "resnet20", "batch": 4, "image_px": 16}
SHORT = {"budget_s": 0.1, "max_iterations": 8}
REQUESTS: dict[str, dict[str, Any]] = {
    "shm": {"kind": "shm", "options": TINY},
    "unknown model": {"options": {"model": "resnet51"}},
    "small memory": {"options": TINY, "available_bytes": 2**20},
    "wrong device": {"options": TINY, "device_of_rank_1": "eth9"},
    "ok": {"plant": "right", "options": TINY, "case": SHORT},
    "slow": {"plant": "slow", "delay_s": DELAY_S, "options": TINY, "case": SHORT},
    "kept local": {"plant": "kept_local", "options": TINY, "case": SHORT},
    "sum only": {"plant": "sum_only", "options": TINY, "case": SHORT},
    "one element off": {"plant": "one_element_off", "options": TINY, "case": SHORT},
    "breaks later": {"plant": "breaks_later", "options": TINY, "case": SHORT},
    "infinite": {"plant": "infinite", "options": TINY, "case": SHORT},
    "wrong library": {"wrong_library": True, "options": TINY, "case": SHORT},
    "as it comes": {"options": TINY, "case": {"budget_s": 0.1, "max_iterations": 3}},
    "several": {
        "options": TINY | {"exchanges": ["mpi", "gloo+unfused", "mpi-ring", "mpi-rabenseifner"]},
        "case": {"budget_s": 0.1, "max_iterations": 2},
    },
    "strong": {
        "options": TINY | {"exchanges": ["mpi"], "dtype": "bfloat16", "scaling": "strong"},
        "case": {"budget_s": 0.1, "max_iterations": 8},
    },
    "odd batch": {"options": TINY | {"batch": 5, "scaling": "strong"}},
    "slow loader": {
        "slow_loader_of_rank": 1,
        "delay_s": LOADER_S,
        "options": TINY,
        "case": {"budget_s": 0.1, "max_iterations": 2},
    },
    "no time": {"slow_loader_of_rank": 1, "delay_s": LOADER_S, "options": TINY, "left_s": 2.0},
    "no folder": {"options": TINY | {"image_px": 32, "data": "cifar10:/nowhere"}},
    "nccl": {"options": TINY | {"exchanges": ["nccl"]}},
}
CIFAR = {"images": 10_000 * 3073, "truncated": 10_000 * 3073 - 1}
TIMEOUT_S = 100


def launch(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What rank 0 of two prints; the job is ended with all its processes where it takes too long."""
    recipe = {
        "MPIR_CVAR_CH4_NETMOD": "ofi",
        "FI_PROVIDER": "tcp",
        "FI_TCP_IFACE": "lo",
        "GLOO_SOCKET_IFNAME": "lo",
    }
    program = ("-m", "mpi4py", str(Path(__file__).with_name("ddp_job.py")), json.dumps(requests), "multiple")
    job = jobs.mpi(2, *program, timeout_s=TIMEOUT_S, env=recipe)
    assert job.code == 0, job.err
    lines: list[dict[str, Any]] = json.loads(job.out)
    return lines


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    requests = dict(REQUESTS)
    for name, last_bytes in CIFAR.items():
        folder = cifar(tmp_path_factory.mktemp(name), last_bytes)
        options = TINY | {"image_px": 32, "data": f"cifar10:{folder}", "augment": True}
        requests[name] = {"options": options, "case": {"budget_s": 0.1, "max_iterations": 2}}
    return dict(zip(requests, launch(list(requests.values())), strict=True))


def cifar(folder: Path, last_bytes: int) -> Path:
    """Black images of the first class, as files that take no room; the last one has so many bytes."""
    for number in range(1, 6):
        with (folder / f"data_batch_{number}.bin").open("wb") as file:
            file.truncate(last_bytes if number == 5 else CIFAR["images"])
    return folder


def test_steps_are_measured_on_both_ranks(outcomes: dict[str, dict[str, Any]]) -> None:
    ok = outcomes["ok"]
    assert (ok["status"], ok["reported_ranks"]) == ("ok", [0, 1])
    step, noop = (np.array(ok["samples"][name]) for name in ("step", "step_noop"))
    assert step.shape == noop.shape == (2, 8)
    assert ok["metrics"]["step"]["value"] == pytest.approx(float(np.median(step.max(axis=0))) * 1e-9)
    whole_s = step.max(axis=0) + np.array(ok["samples"]["gloo.data"]).max(axis=0)
    assert ok["metrics"]["images_per_s"]["value"] == pytest.approx(8e9 / float(np.median(whole_s)))
    assert ok["method"]["images"] == 8
    for kind, steps in {"noop": 4, "gloo": 1}.items():
        assert np.array(ok["samples"][f"first.{kind}"]).shape == (2, ok["method"]["first_steps"][kind]) == (2, steps)
    assert np.array(ok["samples"]["step_alone"]).shape == (1, ok["method"]["steps_alone"])
    assert ok["method"]["steps_alone"] in (2, 8)  # as many as time allowed


def test_method_says_how_it_was_measured(outcomes: dict[str, dict[str, Any]]) -> None:
    method = outcomes["ok"]["method"]
    assert (method["threads"], method["interop_threads"]) == (1, 1)
    assert (method["parameters"], method["tensors"]) == (269_722, 59)
    assert sum(method["bucket_bytes"]) == 4 * 269_722
    assert len(method["bucket_bytes"]) == 2
    assert method["workload"] == "resnet20 16px batch 4"


def test_only_every_other_step_exchanges(outcomes: dict[str, dict[str, Any]]) -> None:
    first, checked, buckets = 1, 2, 2
    assert outcomes["ok"]["exchanges"] == (first + checked + 8) * buckets


def test_gradients_become_ready_one_after_the_other(outcomes: dict[str, dict[str, Any]]) -> None:
    """What a prediction needs: when each tensor's gradient, and each bucket, was ready after the start of backward."""
    method = outcomes["ok"]["method"]
    ready = method["gradient_ready_s"]
    (buckets,) = ready["buckets"].values()
    assert len(ready["parameters"]) == method["tensors"] == len(method["parameter_bytes"])
    assert 0 < buckets[0] < buckets[1]
    assert ready["parameters"][0] == max(ready["parameters"])  # backward comes to the first layer last
    assert max(ready["parameters"]) <= buckets[-1] < outcomes["ok"]["metrics"]["noop.backward"]["value"] * 3


def test_plain_names_are_those_of_the_first_exchange(outcomes: dict[str, dict[str, Any]]) -> None:
    metrics = outcomes["ok"]["metrics"]
    for name in ("step", "exposed", "exposed_fraction", "images_per_s", "efficiency"):
        assert metrics[name] == metrics[f"gloo.{name}"]
    assert metrics["efficiency"]["value"] == pytest.approx(metrics["step_alone"]["value"] / metrics["step"]["value"])


def test_parts_of_a_step_are_the_step_without_its_images(outcomes: dict[str, dict[str, Any]]) -> None:
    samples = {name: np.array(rows) for name, rows in outcomes["ok"]["samples"].items()}
    parts = sum(samples[f"gloo.{part}"] for part in ("forward", "backward", "optimizer"))
    assert (parts == samples["gloo.step"]).all()
    assert (samples["gloo.compute"] <= samples["gloo.backward"]).all()


def test_planted_delay_is_exposed(outcomes: dict[str, dict[str, Any]]) -> None:
    metrics = outcomes["slow"]["metrics"]
    assert outcomes["slow"]["status"] == "ok"
    assert metrics["exposed"]["value"] > DELAY_S  # two buckets wait for twice as long
    assert 0 < metrics["exposed_fraction"]["value"] < 1


def test_probe_of_gloo_is_proved_by_counters(outcomes: dict[str, dict[str, Any]]) -> None:
    proof = outcomes["ok"]["proof"]
    assert (proof["verdict"], proof["payload_bytes"]) == ("proved", 64 << 20)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("kept local", "gradients of rank 1 differ from those of rank 0"),
        ("sum only", "not the mean of the ranks' own on rank 0: tensor 0 is off"),
        ("one element off", "not the mean of the ranks' own"),
        ("breaks later", "differ from those of rank 0 after the exchange, after 21 steps"),
        (
            "wrong library",
            "gloo allreduce of 1000 float32 is wrong on rank 1: 1 of 1000 elements, the first at 3",
        ),
    ],
)
def test_wrong_exchange_publishes_no_time(outcomes: dict[str, dict[str, Any]], name: str, reason: str) -> None:
    assert outcomes[name]["status"] == "invalid"
    assert reason in outcomes[name]["reason"]
    assert not outcomes[name]["metrics"]
    assert not outcomes[name]["samples"]


def test_loss_that_is_no_number_fails_with_its_step(outcomes: dict[str, dict[str, Any]]) -> None:
    assert outcomes["infinite"]["status"] == "failed"
    assert outcomes["infinite"]["reason"] == "the loss of step 4 is not finite"


def test_shared_memory_is_refused_before_torch_is_imported(outcomes: dict[str, dict[str, Any]]) -> None:
    assert outcomes["shm"]["raised"] == "Unsupported"
    assert not outcomes["shm"]["torch"]
    assert outcomes["ok"]["torch"]


def test_unknown_model_names_the_known(outcomes: dict[str, dict[str, Any]]) -> None:
    assert outcomes["unknown model"]["raised"] == "UserError"
    assert "'resnet51': one of resnet18, resnet34, resnet50" in outcomes["unknown model"]["reason"]


def test_wrong_device_on_one_rank_stops_all(outcomes: dict[str, dict[str, Any]]) -> None:
    assert outcomes["wrong device"]["raised"] == "CannotRun"
    assert "rank 1: GLOO_SOCKET_IFNAME is 'eth9', not the fabric's 'lo'" in outcomes["wrong device"]["reason"]


def test_what_does_not_fit_is_skipped_with_both_figures(outcomes: dict[str, dict[str, Any]]) -> None:
    assert outcomes["small memory"]["status"] == "skipped"
    assert "MiB for 2 ranks on here, where 1 MiB are available" in outcomes["small memory"]["reason"]


def test_no_more_pairs_than_asked_for(outcomes: dict[str, dict[str, Any]]) -> None:
    line = outcomes["as it comes"]
    assert (line["status"], line["method"]["stop_reason"]) == ("ok", "max_iterations")
    assert line["metrics"]["step"]["n"] == 3
    assert line["metrics"]["step"]["low"] is None


def test_mpi_and_our_schedules_are_exchanges_beside_gloo_with_buckets_of_their_own(
    outcomes: dict[str, dict[str, Any]],
) -> None:
    """Each mode's gradients were compared with the mean before anything was timed: else it would be invalid."""
    line = outcomes["several"]
    assert (line["status"], line["reason"]) == ("ok", "")
    modes = line["method"]["exchanges"]
    assert list(modes) == ["mpi", "gloo+unfused", "mpi-ring", "mpi-rabenseifner"]
    assert [modes[mode]["completes"] for mode in ("mpi", "gloo+unfused")] == ["a thread of ours", "gloo's threads"]
    assert line["metrics"]["step"] == line["metrics"]["mpi.step"]
    usual, unfused = line["method"]["fusions"].values()
    assert (len(usual["bucket_bytes"]), unfused["bucket_tensors"]) == (2, [1] * 59)
    assert sum(usual["bucket_bytes"]) == sum(unfused["bucket_bytes"]) == 4 * 269_722


def test_strong_scaling_shares_the_batch_and_bfloat16_halves_the_bytes(outcomes: dict[str, dict[str, Any]]) -> None:
    line = outcomes["strong"]
    assert (line["status"], line["reason"]) == ("ok", "")
    assert (line["method"]["batch_per_rank"], line["method"]["dtype"]) == (2, "bfloat16")
    assert sum(line["method"]["bucket_bytes"]) == 2 * 269_722
    metrics = line["metrics"]
    assert (line["method"]["images"], line["method"]["batch_per_rank"]) == (4, 2)
    assert metrics["images_per_s"]["value"] == pytest.approx(4 / metrics["step"]["value"], rel=0.1)  # data is nothing
    alone, step = metrics["step_alone"]["value"], metrics["step"]["value"]
    assert metrics["efficiency"]["value"] == pytest.approx(alone / step / 2)
    assert "2 ranks do not divide the batch of 5" in outcomes["odd batch"]["reason"]


def test_slow_loader_is_data_time_and_not_the_network(outcomes: dict[str, dict[str, Any]]) -> None:
    samples = {name: np.array(rows) for name, rows in outcomes["slow loader"]["samples"].items()}
    for mode in ("gloo", "noop"):
        first, slow = samples[f"{mode}.data"]
        assert first.max() < 1e9 * LOADER_S < slow.min()
        assert samples[f"{mode}.step"].min(axis=1).max() < 1e9 * LOADER_S  # on both: they wait before the step
    metrics = outcomes["slow loader"]["metrics"]
    assert metrics["images_per_s"]["value"] < 8 / LOADER_S  # a user has to wait for the images, too


def test_loader_that_leaves_no_time_is_told_with_what_to_do(outcomes: dict[str, dict[str, Any]]) -> None:
    line = outcomes["no time"]
    assert (line["status"], line["metrics"]) == ("skipped", {})
    assert "resnet20 16px batch 4: a step waits 0.3 s for its images" in line["reason"]
    assert line["reason"].endswith("a smaller batch or smaller images take less, deadline_s in a plan gives more")


def test_images_of_files_are_trained_on_and_damaged_ones_told_in_a_line(outcomes: dict[str, dict[str, Any]]) -> None:
    assert (outcomes["images"]["status"], outcomes["images"]["reason"]) == ("ok", "")
    assert outcomes["images"]["method"]["workload"] == "resnet20 32px batch 4, cifar10, augmented"
    assert outcomes["images"]["metrics"]["gloo.data"]["value"] > outcomes["ok"]["metrics"]["gloo.data"]["value"]
    for name, told in {"no folder": "no such folder", "truncated": "data_batch_5.bin is truncated"}.items():
        line = outcomes[name]
        assert line["raised"] == "UserError"
        assert told in line["reason"]
        assert "\n" not in line["reason"]


def test_nccl_is_refused_where_training_is_on_processors(outcomes: dict[str, dict[str, Any]]) -> None:
    assert outcomes["nccl"]["raised"] == "Unsupported"
    assert "nccl" in outcomes["nccl"]["reason"]
