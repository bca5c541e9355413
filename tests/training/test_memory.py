from __future__ import annotations

import pytest
import torch
from torch import nn

from training.memory import activation_bytes, needed_bytes
from training.resnet import MODELS
from training.workload import Workload


def test_activations_are_counted_once_and_without_parameters() -> None:
    with torch.device("meta"):
        network = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 1))
        images = torch.empty(4, 10)
    inputs, after_relu = 4 * 10 * 4, 4 * 20 * 4  # the second layer keeps what the ReLU kept
    assert activation_bytes(network, images) == inputs + after_relu


def test_a_larger_batch_needs_more_in_proportion() -> None:
    model = MODELS["resnet20"]
    need = [needed_bytes(model, Workload("resnet20", batch, 32)) for batch in (4, 8, 12)]
    assert need[2] - need[1] == pytest.approx(need[1] - need[0], rel=1e-3)
    assert need[1] > need[0] > 5 * 4 * 269_722


def test_estimate_holds_what_a_forward_pass_keeps() -> None:
    model = MODELS["resnet20"]
    network, images = model.builder(0), torch.randn(2, 3, 32, 32)
    kept: dict[int, torch.UntypedStorage] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = network(images).sum()
    real = sum(storage.nbytes() for storage in kept.values())
    parameters = sum(p.nbytes for p in network.parameters())
    loss.backward()
    with torch.device("meta"):
        estimate = activation_bytes(model.builder(0), torch.empty(2, 3, 32, 32))
    assert estimate == pytest.approx(real - parameters, rel=0.1)
