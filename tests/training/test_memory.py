from __future__ import annotations

import pytest
import torch
from torch import nn

from training.memory import activation_bytes, needed_bytes
from training.models import MODELS
from training.setup import Setup
from training.workload import Workload


def test_activations_are_counted_once_and_without_parameters() -> None:
    with torch.device("meta"):
        network = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 1))
        images = torch.empty(4, 10)
    inputs, after_relu = 4 * 10 * 4, 4 * 20 * 4  # the second layer keeps what the ReLU kept
    assert activation_bytes(network, images) == inputs + after_relu


def test_a_larger_batch_needs_more_in_proportion() -> None:
    model = MODELS["resnet20"]
    need = [needed_bytes(model, Setup(Workload("resnet20", batch, 32))) for batch in (4, 8, 12)]
    assert need[2] - need[1] == pytest.approx(need[1] - need[0], rel=1e-3)
    assert need[1] > need[0] > 6 * 4 * 269_722


@pytest.mark.parametrize("name", MODELS)
def test_every_model_has_an_estimate_above_what_its_parameters_take(name: str) -> None:
    model = MODELS[name]
    few, more = (needed_bytes(model, Setup(Workload(name, batch, model.least_px))) for batch in (2, 8))
    assert 6 * 4 * model.parameters < few < more < 12 * 4 * model.parameters + 10**9


def test_a_network_whose_parameters_are_in_one_tensor_needs_more_for_its_check() -> None:
    vgg16 = needed_bytes(MODELS["vgg16"], Setup(Workload("vgg16", 4, 32)))
    assert 4.3e9 < vgg16 < 5.5e9  # seen at its peak: 4.7e9, without MPI


@pytest.mark.parametrize(("name", "side"), [("resnet20", 32), ("inception_v3", 75), ("alexnet", 63)])
def test_estimate_holds_what_a_forward_pass_keeps(name: str, side: int) -> None:
    model = MODELS[name]
    network, images = model.build(0), torch.randn(2, 3, side, side)
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
        estimate = activation_bytes(model.build(0), torch.empty(2, 3, side, side))
    assert estimate == pytest.approx(real - parameters, rel=0.1)


def test_each_fusion_and_what_dpus_hold_needs_more_by_all_gradients() -> None:
    model, workload = MODELS["resnet20"], Workload("resnet20", 4, 32)
    whole = 4 * model.parameters

    def need(*exchanges: str) -> int:
        return needed_bytes(model, Setup(workload, exchanges))

    assert need("gloo", "mpi") == need("gloo")
    assert need("gloo", "gloo+unfused") - need("gloo") == whole
    assert need("gloo", "mpi-ring") - need("gloo") == whole
    assert need("gloo", "dpu") - need("gloo") == 2 * whole


def test_bfloat16_needs_less_and_a_stand_in_has_no_model() -> None:
    model, workload = MODELS["resnet50"], Workload("resnet50", 4, 64)
    full = needed_bytes(model, Setup(workload))
    assert needed_bytes(model, Setup(workload, dtype="bfloat16")) < full
    assert needed_bytes(model, Setup(workload, peer="replayed"), stands_in=True) < full - 3 * 4 * model.parameters
