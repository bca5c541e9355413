"""The data-parallel step against one process: real jobs of two and three ranks over loopback.

The reference is computed here, without DDP, MPI or gloo, from the same seeds and shards.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tests import jobs
from tests.training.small_networks import SEED, STEPS, WORKLOADS, loader, network, weights
from training.models.layers import loss
from training.replica import LEARNING_RATE, MOMENTUM

HALF_ULP = 2.0**-24  # what rounding to float32 costs at most, of a value
SUM_ERROR = 256 * HALF_ULP
"""Of a tensor's largest gradient, where sums go in another order.

Errors of sums of m terms walk about like sqrt(m) half ulps: some 110 for the 12 x 32 x 32 terms of a convolution's
gradient, and 70 for 2 x 16 layers of 144 terms each on the way to it. A missing rank costs thousands of times that.
"""
LEAST = 2.0**-149  # the smallest float32 above 0: what rounding costs at most where values vanish
PLANTS = ("left_out", "sum_only")
CASES = {
    2: [("inception_v3", "right"), ("resnet20", "right"), ("alexnet that drops", "right"), ("vgg", "right"),
        ("alexnet", "right"), *(("vgg", plant) for plant in PLANTS), *(("resnet20", plant) for plant in PLANTS)],
    3: [("resnet20", "right"), ("vgg", "right"), ("alexnet", "right"), ("vgg", "left_out")],
}  # fmt: skip
RIGHT = [(ranks, name) for ranks, cases in CASES.items() for name, plant in cases if plant == "right"]
WITHOUT_NORM = [(ranks, name) for ranks, name in RIGHT if name in ("vgg", "alexnet")]
WRONG = [(ranks, name, plant) for ranks, cases in CASES.items() for name, plant in cases if plant != "right"]
ENVIRONMENT = {"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo", "GLOO_SOCKET_IFNAME": "lo"}
Arrays = list[NDArray[np.float32]]


@dataclass(frozen=True)
class Trained:
    """What a job's rank 0 had, and what its ranks disagreed on."""

    gradients: Arrays
    weights: Arrays
    buckets: int
    disagreement: str


Jobs = dict[int, dict[tuple[str, str], Trained]]


def launch(ranks: int, folder: Path) -> dict[tuple[str, str], Trained]:
    program = Path(__file__).with_name("models_job.py")
    command = ("-m", "mpi4py", str(program), str(folder), json.dumps(CASES[ranks]))
    job = jobs.mpi(ranks, *command, timeout_s=150, env=ENVIRONMENT)
    assert job.code == 0, job.err
    faults = json.loads(job.out)
    return {(name, plant): read(folder, f"{name}-{plant}", faults) for name, plant in CASES[ranks]}


def read(folder: Path, case: str, faults: dict[str, str]) -> Trained:
    with np.load(folder / f"{case}.npz") as data:
        kinds = [[data[f"{kind}{i}"] for i in range(len(data.files) // 2)] for kind in ("gradient", "weight")]
        return Trained(kinds[0], kinds[1], len(data["buckets"]), faults[case])


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Jobs:
    return {ranks: launch(ranks, tmp_path_factory.mktemp(f"of{ranks}")) for ranks in CASES}


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """As many as a rank of the jobs has: sums then go in the same order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def backward(module: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor) -> Arrays:
    module.zero_grad()
    loss(module(images), labels).backward()
    return [p.grad.numpy().copy() for p in module.parameters() if p.grad is not None]


def each_shard(name: str, ranks: int) -> list[Arrays]:
    """The gradients of each rank's shard, from a network of its own: statistics of batches are the shard's."""
    found = []
    for rank in range(ranks):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED + rank)  # for dropout
            module = network(name).build(SEED, WORKLOADS[name].dropout)
            found.append(backward(module, *loader(name, rank, ranks).next()))
    return found


def off(got: Arrays, shards: list[Arrays]) -> str:
    """The first tensor of ``got`` that is not the mean of the shards' but for rounding.

    Each of n terms is rounded when it is divided by n, and each of the n - 1 sums, which is at most the mean of the
    absolute values: n half ulps of that, whatever the order.
    """
    for i, (mean, *parts) in enumerate(zip(got, *shards, strict=True)):
        exact = np.stack(parts).astype(np.float64)
        allowed = len(parts) * (1.001 * HALF_ULP * np.abs(exact).mean(axis=0) + LEAST)
        wrong = ~(np.abs(mean - exact.mean(axis=0)) <= allowed)
        if wrong.any():
            return f"tensor {i}: {wrong.sum()} of {wrong.size} elements"
    return ""


@pytest.mark.parametrize(("ranks", "name"), RIGHT)
def test_gradients_are_the_mean_over_the_shards(trained: Jobs, ranks: int, name: str) -> None:
    job = trained[ranks][name, "right"]
    assert job.disagreement == ""
    assert job.buckets > 1 or name not in ("inception_v3", "resnet20")
    assert off(job.gradients, each_shard(name, ranks)) == ""


@pytest.mark.parametrize(("ranks", "name", "plant"), WRONG)
def test_planted_fault_is_no_mean(trained: Jobs, ranks: int, name: str, plant: str) -> None:
    wrong = trained[ranks][name, plant]
    assert wrong.disagreement == ""  # all ranks are wrong alike: only the reference can tell
    assert off(wrong.gradients, each_shard(name, ranks)).startswith("tensor 0: ")


def whole(name: str, ranks: int) -> tuple[Arrays, Arrays, Arrays]:
    """One process on all shards as one batch: gradients, weights before and after the steps."""
    module = network(name).build(SEED, WORKLOADS[name].dropout)
    pairs = [loader(name, rank, ranks).next() for rank in range(ranks)]
    images, labels = (torch.cat(parts) for parts in zip(*pairs, strict=True))
    optimizer = torch.optim.SGD(module.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM)
    before, gradients = weights(module), backward(module, images, labels)
    for _ in range(STEPS):
        backward(module, images, labels)
        optimizer.step()
    return gradients, before, weights(module)


def exceed(trained: Trained, ranks: int, name: str) -> tuple[float, float]:
    """By how much gradients, and what steps made of the weights, are off one process's: above 1 is a fault."""
    gradients, before, after = whole(name, ranks)
    in_gradients, in_weights = [], []
    for got, wanted in zip(trained.gradients, gradients, strict=True):
        in_gradients.append(np.abs(got - wanted).max() / (SUM_ERROR * np.abs(wanted).max()))
    for got, start, end in zip(trained.weights, before, after, strict=True):
        rounding = 2 * STEPS * HALF_ULP * np.abs(end).max()  # each step of either rounds the weights once
        allowed = rounding + STEPS * SUM_ERROR * np.abs(end - start).max()
        in_weights.append(np.abs(got - end).max() / allowed)
    return float(max(in_gradients)), float(max(in_weights))


@pytest.mark.parametrize(("ranks", "name"), WITHOUT_NORM)
def test_ranks_train_as_one_process_does(trained: Jobs, ranks: int, name: str) -> None:
    assert max(exceed(trained[ranks][name, "right"], ranks, name)) <= 1


@pytest.mark.parametrize(("ranks", "name", "plant"), [case for case in WRONG if case[1] == "vgg"])
def test_planted_fault_trains_otherwise(trained: Jobs, ranks: int, name: str, plant: str) -> None:
    assert min(exceed(trained[ranks][name, plant], ranks, name)) > 10
