from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fabrics.errors import UserError
from training.setup import Setup

ROOT = Path(__file__).parents[2]
TINY = {"model": "resnet20", "batch": 4, "image_px": 32}


def test_what_is_usual_says_nothing() -> None:
    usual = Setup.of(TINY)
    assert (usual.label, usual.options) == ("resnet20 32px batch 4", TINY)
    named = {"exchanges": ["gloo"], "scaling": "weak", "dtype": "float32", "data": "synthetic", "augment": False}
    assert Setup.of(TINY | named | {"placement": "auto", "peer": "computes"}) == usual


def test_what_is_not_usual_is_in_the_label_and_read_back() -> None:
    options = TINY | {
        "exchanges": ["mpi", "gloo+64M"], "scaling": "strong", "dtype": "bfloat16", "data": "cifar10:/d/c",
        "augment": True, "placement": "split", "peer": "replayed",
    }  # fmt: skip
    setup = Setup.of(options)
    told = "mpi/gloo+64M, strong scaling, bfloat16, cifar10, augmented, split, peer replayed"
    assert setup.label == f"resnet20 32px batch 4, {told}"
    assert setup.options == options
    assert Setup.of(setup.options) == setup


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"exchanges": []}, "exchanges are empty: name some of gloo, mpi, dpu, nccl"),
        ({"exchanges": "gloo"}, "exchanges are 'gloo': a list"),
        ({"exchanges": ["gloo", "gloo"]}, "exchange 'gloo' stands twice"),
        ({"exchanges": ["dpu-staged", "dpu-window"]}, "one transport to DPUs"),
        ({"exchanges": ["tcp"]}, "unknown exchange 'tcp'"),
        ({"scaling": "super"}, "scaling is 'super': one of weak, strong"),
        ({"dtype": "float16"}, "dtype is 'float16': one of float32, bfloat16"),
        ({"augment": 1}, "augment is 1: true or false"),
        ({"data": "mnist"}, "data is 'mnist'"),
        ({"peer": "sleeps"}, "peer is 'sleeps'"),
        ({"placement": "accel"}, "placement is 'accel'"),
        ({"peer": "replayed", "placement": "node"}, "placement split, not node"),
        ({"exchanges": ["nccl", "mpi"]}, "nccl takes device memory, other exchanges the host's"),
        ({"exchange": ["gloo"]}, "unknown option 'exchange': one of model, batch, .*, exchanges, .*, peer$"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Setup.of(TINY | options)


@pytest.mark.parametrize(
    ("options", "level", "placed"),
    [
        ({}, "single", ""),
        ({"exchanges": ["gloo", "gloo+unfused"]}, "single", ""),
        ({"exchanges": ["gloo", "mpi-ring"]}, "multiple", ""),
        ({"exchanges": ["gloo", "dpu"]}, "multiple", "node"),
        ({"exchanges": ["gloo", "dpu"], "peer": "replayed"}, "multiple", "split"),
        ({"exchanges": ["gloo", "dpu"], "placement": "split"}, "multiple", "split"),
    ],
)
def test_threads_and_places_follow_from_the_exchanges(options: dict[str, Any], level: str, placed: str) -> None:
    setup = Setup.of(TINY | options)
    assert (setup.thread_level, setup.placed) == (level, placed)


def test_strong_scaling_divides_the_batch_or_says_that_it_cannot() -> None:
    strong = Setup.of(TINY | {"scaling": "strong"})
    assert strong.batch_of(2) == 2
    assert Setup.of(TINY).batch_of(3) == 4
    with pytest.raises(UserError, match="3 ranks do not divide the batch of 4"):
        strong.batch_of(3)


def test_planning_imports_neither_torch_nor_mpi() -> None:
    code = "import sys, training.setup, training.pace; sys.exit('torch' in sys.modules or 'mpi4py.MPI' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60, check=False).returncode == 0
