from __future__ import annotations

import pytest
import torch
from torch import nn

from training.models import MODELS
from training.models.resnet import Plan, Residual, ZeroPadShortcut, build

IMAGENET = Plan((1, 1), (4, 8), bottleneck=True, cifar=False, classes=5)
BASIC = Plan((1, 2), (4, 8), bottleneck=False, cifar=False, classes=5)
CIFAR = Plan((1, 1, 1), (4, 8, 16), bottleneck=False, cifar=True, classes=5)


def test_bottleneck_strides_in_its_3x3_convolution() -> None:
    with torch.device("meta"):
        network = MODELS["resnet50"].build(0)
    kernels = {
        module.kernel_size
        for block in network.blocks
        for module in block.body.modules()
        if isinstance(module, nn.Conv2d) and module.stride == (2, 2)
    }
    assert kernels == {(3, 3)}


@pytest.mark.parametrize("plan", [IMAGENET, BASIC, CIFAR])
def test_gradient_reaches_every_parameter(plan: Plan) -> None:
    network = build(plan, seed=1)
    logits = network(torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(2)))
    assert logits.shape == (4, 5)
    nn.functional.cross_entropy(logits, torch.arange(4)).backward()
    assert all(p.grad is not None and bool(p.grad.any()) for p in network.parameters())


def test_gradient_is_the_slope_of_the_loss() -> None:
    network = build(CIFAR, seed=1).double()
    images = torch.randn(3, 3, 8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    weight = network.head.weight
    network(images).square().sum().backward()
    assert weight.grad is not None
    slope = float(weight.grad[1, 2])
    values = []
    for shift in (1e-5, -2e-5):
        with torch.no_grad():
            weight[1, 2] += shift
            values.append(float(network(images).square().sum()))
    assert (values[0] - values[1]) / 2e-5 == pytest.approx(slope, rel=1e-6)


def test_shortcut_takes_every_other_pixel_and_pads_channels_on_both_sides() -> None:
    x = torch.arange(2 * 4 * 4, dtype=torch.float32).reshape(1, 2, 4, 4)
    shortcut = ZeroPadShortcut(2, 5, stride=2)
    y = shortcut(x)
    assert y.shape == (1, 5, 2, 2)
    assert torch.equal(y[:, 1:3], x[:, :, ::2, ::2])
    assert not y[:, [0, 3, 4]].any()
    assert not list(shortcut.parameters())


def test_residual_adds_before_it_cuts_off() -> None:
    double = nn.Identity()
    assert Residual(double, double)(torch.tensor([-1.0, 2.0])).tolist() == [0.0, 4.0]


def test_seed_alone_decides_the_weights() -> None:
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    one, same, other = (build(CIFAR, seed).stem[0].weight for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert torch.equal(torch.random.get_rng_state(), before)
