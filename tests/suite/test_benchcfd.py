"""``bench cfd``: its options, and its parts beside each other. Pure, but for the command's own words."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from fabrics.errors import UserError
from microbench.case import Outcome
from microbench.record import Metric, Record
from microbench.registry import Benchmark
from reports.units import MB_PER_S
from suite import benchcfd, benchdpus, benchmodes, benchtrain
from tests import jobs


def options(text: str, kind: Any = "cfd") -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    benchtrain.add(parser)
    benchdpus.add(parser)
    benchcfd.add(parser)
    known = Benchmark("x", "", lambda job, case: Outcome(), kind=kind)
    args = parser.parse_args(text.split())
    benchtrain.refuse(args, known)
    return {**benchdpus.case_options(args, known), **benchcfd.case_options(args, known)}


def test_options_and_workload_are_those_of_a_plan() -> None:
    given = options("--grid 32x16x8 --steps 3 --compare probes,blocking --scaling weak --cfl 0.3 --split 2x1")
    assert given["workload"] == "euler 32x16x8 cfl 0.3 split 2x1"
    assert given["options"] == {
        "grid": "32x16x8", "steps": 3, "compare": ["blocking", "probes"], "scaling": "weak", "cfl": 0.3, "split": "2x1",
    }  # fmt: skip
    assert options("")["workload"] == "euler 64x64x64"
    assert options("", "") == {}


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("--grid 8x8", "cfd", "grid is '8x8'"),
        ("--compare host", "cfd", "no mode 'host'"),
        ("--split 2", "cfd", "split is '2'"),
        ("--cfl -1", "cfd", "cfl is -1"),
        ("--scaling all", "cfd", "one of both, strong, weak, none"),
        ("--model vgg16", "cfd", "x trains nothing: leave out --model"),
        ("--scaling weak", "", "x trains nothing: leave out --scaling"),
        ("--skew 1", "cfd", "x overlaps nothing with compute: leave out --skew"),
        ("--grid 8x8x8", "", "x solves no flow: leave out --grid"),
        ("--compare host", "", "x overlaps nothing with compute: leave out --compare"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(text: str, kind: Any, said: str) -> None:
    with pytest.raises(UserError) as caught:
        options(text, kind)
    assert said in str(caught.value)


def record(metrics: dict[str, Metric], **more: Any) -> Record:
    return Record("x", "cfd", "as launched", workload="euler 8x8x8", metrics=metrics, **more)


def test_parts_stand_beside_each_other() -> None:
    metrics = {
        "blocking.step": Metric(0.040, "s", 12, 0.039, 0.0412), "blocking.cells_per_s": Metric(5e6, "cells/s", 12),
        "blocking.exposed_fraction": Metric(0.125, "1", 12), "blocking.speedup": Metric(1.5, "1", 12),
        "silent.step": Metric(0.035, "s", 12, note="n=2 < 6"),
    }  # fmt: skip
    method = {"split": "2x1", "steps": 4, "left_out": {"probes": "no reason"}}
    validation = {"checked_steps": 2, "like": "one rank's bits", "conserved_within": 2e-16}
    told = benchmodes.lines(record(metrics, status="ok", method=method, validation=validation), MB_PER_S)
    assert told[0] == "# euler 8x8x8, split 2x1, 4 steps a block, n 12"
    rows = {line.split()[0]: line.split()[1:] for line in told[2:4]}
    assert rows["blocking"] == ["40.00", "[39.00,", "41.20]", "5.000", "12.5", "1.50"]
    assert rows["silent"] == ["35.00", "n=2", "<", "6", "-", "-", "-"]
    assert told[-2:] == [
        "# left out: probes: no reason",
        "# checked: every byte after 2 steps, one rank's bits; mass, momentum and energy kept within 2e-16",
    ]


def test_no_result_says_why() -> None:
    bad = record({}, status="failed", reason="unstable in step 3")
    assert benchmodes.lines(bad, MB_PER_S) == ["euler 8x8x8 failed: unstable in step 3"]


def test_a_flow_that_breaks_up_is_told_with_its_step_and_cell() -> None:
    done = jobs.fabricbench("bench", "cfd", "--grid", "8x8x4", "--cfl", "8", "--seconds", "0.05")
    assert done.code == 4
    assert "unstable in step" in done.out
    assert "the first cell that is no gas is (" in done.out
