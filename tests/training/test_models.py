from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from tests import jobs
from training.bench import too_small
from training.models import MODELS
from training.models.layers import loss
from training.workload import Workload

SEEDS = {"resnet20": (1.08, 59), "resnet50": (102.2, 161), "inception_v3": (95.3, 284), "alexnet": (244.4, 16),
         "vgg16": (553.4, 32)}  # fmt: skip
HE_MILLIONS = {"resnet20": "0.27", "resnet32": "0.46", "resnet44": "0.66", "resnet56": "0.85", "resnet110": "1.7"}
SMALL = [name for name, model in MODELS.items() if model.least_px > 1]


def on_meta(name: str) -> nn.Module:
    """The network without its data: counting needs none."""
    with torch.device("meta"):
        return MODELS[name].build(0)


def takes(network: nn.Module, batch: int, side: int) -> bool:
    """Whether it can be trained on such images."""
    try:
        network(torch.empty(batch, 3, side, side, device="meta"))
    except (RuntimeError, ValueError):
        return False
    return True


def test_names_and_counts_need_no_torch() -> None:
    code = "import sys; from training.models import MODELS; print(len(MODELS), 'torch' in sys.modules)"
    done = jobs.python("-c", code)
    assert done.out.split() == [str(len(MODELS)), "False"], done.err


@pytest.mark.parametrize("name", MODELS)
def test_sizes_are_the_published_ones(name: str) -> None:
    sizes = [p.numel() for p in on_meta(name).parameters()]
    assert (sum(sizes), len(sizes)) == (MODELS[name].parameters, MODELS[name].tensors)
    assert all(p.device.type == "meta" for p in on_meta(name).parameters())


@pytest.mark.parametrize("name", HE_MILLIONS)
def test_counts_for_cifar_round_to_the_published_ones(name: str) -> None:
    digits = len(HE_MILLIONS[name].split(".")[1])
    assert f"{MODELS[name].parameters / 1e6:.{digits}f}" == HE_MILLIONS[name]


@pytest.mark.parametrize("name", SEEDS)
def test_gradient_profiles(name: str) -> None:
    megabytes, tensors = SEEDS[name]
    assert MODELS[name].megabytes == pytest.approx(megabytes, abs=0.05)
    assert MODELS[name].tensors == tensors


@pytest.mark.parametrize("name", MODELS)
def test_usual_images_have_the_classes_and_a_single_least_one_is_refused_in_time(name: str) -> None:
    model, network = MODELS[name], on_meta(name)
    outputs = network(torch.empty(2, 3, model.image_px, model.image_px, device="meta"))
    for logits in outputs if isinstance(outputs, tuple) else (outputs,):
        assert logits.shape == (2, model.classes)
    assert isinstance(outputs, tuple) is (name == "inception_v3_aux")
    assert takes(network, 2, model.least_px)
    assert takes(network, 1, model.alone_px)
    assert too_small(model, Workload(name, 1, model.alone_px)) == ""
    if model.alone_px > model.least_px:
        assert not takes(network, 1, model.alone_px - 1)
        assert "needs a batch of 2" in too_small(model, Workload(name, 1, model.alone_px - 1))


@pytest.mark.parametrize("name", SMALL)
def test_smaller_images_than_the_least_cannot_be_trained_on(name: str) -> None:
    assert not takes(on_meta(name), 2, MODELS[name].least_px - 1)


@pytest.mark.parametrize(("name", "side"), [("vgg16", 7), ("alexnet", 6)])
def test_usual_images_need_no_pooling_to_size(name: str, side: int) -> None:
    network, seen = on_meta(name), []
    (pool,) = (module for module in network.modules() if isinstance(module, nn.AdaptiveAvgPool2d))
    pool.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].shape[-1]))
    network(torch.empty(2, 3, 224, 224, device="meta"))
    assert seen == [side]


def test_inception_has_its_three_resolutions() -> None:
    network = on_meta("inception_v3")
    x = network.stem(torch.empty(2, 3, 299, 299, device="meta"))
    shapes = [tuple(x.shape[1:3])]
    for stage in (network.fine[:-1], network.fine[-1:], network.middle, network.coarse):
        x = stage(x)
        shapes.append(tuple(x.shape[1:3]))
    assert shapes == [(192, 35), (288, 35), (768, 17), (768, 17), (2048, 8)]


def test_auxiliary_head_counts_in_training_alone_and_with_its_weight() -> None:
    assert isinstance(on_meta("inception_v3_aux").eval()(torch.empty(1, 3, 75, 75, device="meta")), torch.Tensor)
    labels, sure, even = torch.tensor([0, 1]), torch.tensor([[50.0, 0.0], [0.0, 50.0]]), torch.zeros(2, 2)
    assert float(loss(even, labels)) == pytest.approx(math.log(2))
    assert float(loss((sure, even), labels)) == pytest.approx(0.4 * math.log(2))
    assert float(loss((even, sure), labels)) == pytest.approx(math.log(2))


@pytest.mark.parametrize(
    ("name", "usual"), [("vgg16", 0.5), ("alexnet", 0.5), ("inception_v3", 0.2), ("resnet20", None)]
)
def test_dropout_is_the_usual_or_the_one_asked_for(name: str, usual: float | None) -> None:
    def shares(dropout: float | None) -> set[float]:
        with torch.device("meta"):
            network = MODELS[name].build(0, dropout)
        return {module.p for module in network.modules() if isinstance(module, nn.Dropout)}

    assert shares(None) == ({usual} if usual else set())
    assert shares(0.0) == ({0.0} if usual else set())
