"""First weights: from the seed alone, of the usual scale, and such that a few steps learn a planted problem."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn

from training.models import MODELS, alexnet, vgg
from training.models.layers import loss

Optimize = Callable[[nn.Module, float], torch.optim.Optimizer]
PLANTED = 4  # classes, which only their patterns tell apart
_STAGES = ((32, 32), (64, 64), (64, 64, 64), (64, 64, 64), (64, 64, 64))


def narrow_vgg(seed: int) -> nn.Module:
    return vgg.build(vgg.Plan(_STAGES, 1024, PLANTED), seed, dropout=0.0)


def narrow_alexnet(seed: int) -> nn.Module:
    return alexnet.build(alexnet.Plan((32, 64, 64, 64, 64), 1024, PLANTED), seed, dropout=0.0)


def planted(side: int) -> tuple[Tensor, Tensor]:
    """Two images of each class: its pattern, and noise."""
    random = torch.Generator().manual_seed(1)
    labels = torch.arange(2 * PLANTED) % PLANTED
    patterns = torch.randn(PLANTED, 3, side, side, generator=random)
    return patterns[labels] + 0.3 * torch.randn(len(labels), 3, side, side, generator=random), labels


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Threads that wait for each other are slow where others compute too."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def descent(network: nn.Module, rate: float) -> torch.optim.Optimizer:
    """As networks with batch normalisation are usually trained."""
    return torch.optim.SGD(network.parameters(), lr=rate, momentum=0.9)


def adam(network: nn.Module, rate: float) -> torch.optim.Optimizer:
    """Steps of a size that does not go with the gradients', which are small in deep networks without normalisation."""
    return torch.optim.Adam(network.parameters(), lr=rate)


@pytest.mark.parametrize(
    ("build", "side", "optimize", "rate", "steps"),
    [
        (lambda: MODELS["resnet20"].build(3), 16, descent, 0.05, 8),
        (lambda: MODELS["resnet18"].build(3), 32, descent, 0.02, 6),
        (lambda: MODELS["inception_v3"].build(3, 0.0), 75, descent, 0.02, 8),
        (lambda: narrow_vgg(3), 32, adam, 3e-4, 18),
        (lambda: narrow_alexnet(3), 63, adam, 3e-4, 12),
    ],
    ids=["resnet20", "resnet18", "inception_v3", "vgg", "alexnet"],
)
def test_a_few_steps_learn_what_is_planted(
    build: Callable[[], nn.Module], side: int, optimize: Optimize, rate: float, steps: int
) -> None:
    network, (images, labels) = build(), planted(side)
    optimizer = optimize(network, rate)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        now = loss(network(images), labels)
        now.backward()
        optimizer.step()
        losses.append(now.item())
    assert losses[0] > 0.9 * math.log(PLANTED)
    assert min(losses[-3:]) < 0.4 * math.log(PLANTED)  # guessing among the four would leave 1


BUILDS: dict[str, Callable[[int], nn.Module]] = {
    "resnet20": MODELS["resnet20"].build,
    "inception_v3": MODELS["inception_v3"].build,
    "vgg": narrow_vgg,
    "alexnet": narrow_alexnet,
}


@pytest.mark.parametrize("name", BUILDS)
def test_seed_alone_decides_the_weights(name: str) -> None:
    before = torch.random.get_rng_state()
    one, same, other = (list(BUILDS[name](seed).parameters()) for seed in (1, 1, 2))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(one, same, strict=True))
    assert not torch.equal(one[0], other[0])


@pytest.mark.parametrize("name", BUILDS)
def test_convolutions_have_the_scale_of_their_outputs(name: str) -> None:
    drawn = [m for m in BUILDS[name](1).modules() if isinstance(m, nn.Conv2d) and m.weight.numel() > 9000]
    assert len(drawn) > 2
    for module in drawn:
        fan_out = module.out_channels * math.prod(module.kernel_size)
        assert float(module.weight.detach().std()) == pytest.approx(math.sqrt(2 / fan_out), rel=0.05)
        assert module.bias is None or not module.bias.any()


@pytest.mark.parametrize("name", ["inception_v3", "vgg", "alexnet"])
def test_linear_layers_have_the_published_scale(name: str) -> None:
    drawn = [m for m in BUILDS[name](1).modules() if isinstance(m, nn.Linear) and m.weight.numel() > 9000]
    assert drawn
    for module in drawn:
        assert float(module.weight.detach().std()) == pytest.approx(0.01, rel=0.05)
        assert not module.bias.any()
