"""Training by ``bench``: options, the plan that is launched, and what is printed. Pure, but for the command's words."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from fabrics.errors import UserError
from microbench.case import Outcome
from microbench.record import Metric, Record
from microbench.registry import TRAIN, Benchmark
from reports.load import RunData
from reports.units import MB_PER_S
from suite import benchdpus, benchtrain
from tests import jobs

TRAINING = Benchmark("train", "", lambda job, case: Outcome(), kind=TRAIN, precision=0.05)


def arguments(text: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--thread-level")
    parser.add_argument("--dtype")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--precision", type=float)
    parser.add_argument("--iterations", type=int, default=1000)
    benchtrain.add(parser)
    benchdpus.add(parser)
    return parser.parse_args(text.split())


def test_options_make_the_case_of_a_plan() -> None:
    given = benchtrain.case_options(arguments("--model vgg16 --hook mpi,gloo+64M --dtype bfloat16 --scaling strong"))
    assert given["options"] == {
        "model": "vgg16", "batch": 16, "image_px": 64, "exchanges": ["mpi", "gloo+64M"], "dtype": "bfloat16",
        "scaling": "strong",
    }  # fmt: skip
    assert given["workload"] == "vgg16 64px batch 16, mpi/gloo+64M, strong scaling, bfloat16"
    assert (given["backend"], given["algorithm"]) == ("gloo", "ddp")


@pytest.mark.parametrize(("model", "side"), [("", 64), ("--model resnet20", 32), ("--model inception_v3", 75)])
def test_images_are_small_where_nothing_is_said(model: str, side: int) -> None:
    assert benchtrain.setup(arguments(model)).workload.image_px == side


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("--hook dpu", UserError, "dpu: say which ranks are DPUs: --roles host,host,dpu,dpu or --dpus D"),
        ("--hook gloo+", UserError, "train: exchange 'gloo\\+': behind the \\+ stands"),
        ("--hook mpi --thread-level single", UserError, "--hook mpi takes MPI at thread level multiple: leave out"),
        ("--hook gloo,mpi-ring --thread-level serialized", UserError, "leave out --thread-level serialized"),
        ("--batch 99999999", UserError, "batch is '99999999': at most 16777216"),
        ("--hook gloo,,mpi", UserError, "unknown exchange ''"),
        ("--data mnist", UserError, "data is 'mnist': one of synthetic, cifar10:PATH or folder:PATH"),
        ("--peer sleeps", UserError, "peer is 'sleeps': one of computes, replayed"),
        ("--placement accel", UserError, "placement is 'accel'"),
        ("--dtype int8", UserError, "dtype is 'int8': one of float32, bfloat16"),
    ],
)
def test_what_cannot_be_meant_is_refused(text: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        benchtrain.case_options(arguments(text))


def test_named_fabric_makes_a_plan_of_one_launch() -> None:
    plan = benchtrain.plan(arguments("--fabric eth10g --hook dpu --iterations 5 --seconds 3"), TRAINING)
    (section,) = plan.sections
    assert (plan.launches, section.budget_s, section.max_iterations, section.precision) == (1, 3.0, 5, 0.05)
    assert section.models[0]["exchanges"] == ["dpu"]
    assert benchtrain.plan(arguments("--fabric eth10g"), TRAINING).sections[0].budget_s == benchtrain.USUAL_S


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("--fabric f --roles host,host", "leave out --roles"),
        ("--fabric f --thread-level single", "leave out --thread-level"),
        ("--fabric f --scaling strong --batch 5", "2 ranks do not divide the batch of 5"),
    ],
)
def test_plan_leaves_no_say_over_what_it_places(text: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        benchtrain.plan(arguments(text), TRAINING)


def test_other_benchmarks_train_nothing_and_training_takes_dpus() -> None:
    with pytest.raises(UserError, match="x trains nothing: leave out --image-px"):
        benchtrain.refuse(arguments("--image-px 32"), Benchmark("x", "", lambda job, case: Outcome()))
    benchdpus.refuse(arguments("--roles host,dpu --placement split"), TRAINING)
    with pytest.raises(UserError, match="train overlaps nothing with compute: leave out --skew"):
        benchdpus.refuse(arguments("--skew 1"), TRAINING)


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--batch", "9223372036854775808"), 2, "'9223372036854775808' is too large: at most 2147483647"),
        (("--hook", "tcp"), 2, "unknown exchange 'tcp': it begins with one of gloo, mpi, dpu, nccl"),
        (("--fabric", "tcp-lo", "--data", "cifar10:/nowhere"), 2, "cifar10:/nowhere: no such folder: it must hold"),
        (("--sizes", "8"), 2, "train moves no data: leave out --sizes"),
        (("--algorithm", "ring"), 2, "train has no algorithm 'ring': leave out --algorithm"),
        ((), 4, "train needs 2 ranks or more: start it with mpiexec, or name a --fabric to launch them over"),
    ],
)
def test_mistake_is_one_line(options: tuple[str, ...], code: int, said: str) -> None:
    done = jobs.fabricbench("bench", "train", *options)
    assert (done.code, done.out, len(done.err.splitlines())) == (code, "", 1)
    assert said in done.err


def test_exchanges_stand_beside_each_other_and_what_a_step_is_made_of_below() -> None:
    metrics: dict[str, Any] = {"step": Metric(0.9, "s", 8), "step_noop": Metric(0.8, "s", 8)}
    metrics |= {"step_alone": Metric(0.7, "s", 2), "noop.forward": Metric(0.3, "s", 8)}
    for mode, step in {"gloo+64M": 0.9, "mpi": 0.85}.items():
        metrics[f"{mode}.step"] = Metric(step, "s", 8, step - 0.01, step + 0.01)
        metrics[f"{mode}.exposed"] = Metric(step - 0.8, "s", 8, note="n=8 < 9")
        metrics[f"{mode}.forward"] = Metric(0.31, "s", 8)
    record = Record("x", "train", "eth10g", "ok", workload="resnet50 64px batch 16", metrics=metrics, ranks=2)
    title, proof, workload, _, heads, first, second, _, *parts = benchtrain.lines(RunData({}, (record,)), MB_PER_S)
    assert title.startswith("# train: 2 ranks")
    assert "no data" not in title
    assert proof == "# proof: unknown"
    assert workload.endswith("a step without an exchange 800.0 ms, one rank alone 700.0 ms (n 2)")
    assert heads.split()[:3] == ["exchange", "step", "ms"]
    assert first.split()[:5] == ["gloo+64M", "900.0", "[890.0,", "910.0]", "100.00"]
    assert second.split()[:2] == ["mpi", "850.0"]
    assert [line.split()[:3] for line in parts] == [
        ["gloo+64M", "-", "310.0"], ["mpi", "-", "310.0"], ["noop", "-", "300.0"],
    ]  # fmt: skip


def test_what_was_not_measured_is_a_line_without_a_title() -> None:
    record = Record("x", "train", "eth10g", "failed", "rank 1 on h1: folder:/d: no such folder", ranks=2)
    (told,) = benchtrain.lines(RunData({}, (record,)), MB_PER_S)
    assert told == "failed: rank 1 on h1: folder:/d: no such folder"


def test_efficiency_is_told_with_its_interval_or_why_not_and_threads_in_the_heading() -> None:
    metrics = {
        "step": Metric(0.9, "s", 8), "step_noop": Metric(0.8, "s", 8), "step_alone": Metric(0.7, "s", 2),
        "gloo.step": Metric(0.9, "s", 8, 0.8, 1.0), "gloo.efficiency": Metric(0.78, "1", 2, note="n=2 < 7"),
        "mpi.step": Metric(0.9, "s", 8, 0.8, 1.0), "mpi.efficiency": Metric(0.78, "1", 8, 0.7, 0.8),
    }  # fmt: skip
    method = {"threads": 1, "data": "folder:/d", "warnings": ["the optimizer took longer"]}
    record = Record("x", "train", "eth10g", "ok", workload="w", metrics=metrics, method=method, ranks=2)
    _, _, base, counted, data, heads, gloo, mpi, *rest = benchtrain.lines(RunData({}, (record,)), MB_PER_S)
    assert base.endswith("one rank alone 700.0 ms (n 2)")
    assert counted.startswith("# 8 rounds of steps, 1 thread a rank; exposed: ")
    assert "data is beside it" in data
    assert heads.split()[-3:] == ["%", "95", "%"]
    assert gloo.endswith("78.0  n=2 < 7")
    assert mpi.endswith("78.0  [70.0, 80.0]")
    assert rest[-1] == "# the optimizer took longer"
