"""What the families share: convolutions with batch normalisation, first weights, and the loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

AUXILIARY_WEIGHT = 0.4  # of the auxiliary head's loss, as in the authors' own program for Inception V3
LINEAR_STD = 0.01  # of AlexNet's and of VGG's first weights, as their authors drew them

Network = TypeVar("Network", bound=nn.Module)
Size = int | tuple[int, int]


def seeded(seed: int, make: Callable[[], Network]) -> Network:
    """What ``make`` makes with weights drawn from ``seed``; torch's own random state is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def conv_bn(
    inputs: int, outputs: int, kernel: Size, stride: int = 1, padding: Size = 0, eps: float = 1e-5
) -> list[nn.Module]:
    """A convolution without bias, and batch normalisation."""
    return [nn.Conv2d(inputs, outputs, kernel, stride, padding, bias=False), nn.BatchNorm2d(outputs, eps)]


def draw_convolutions(network: nn.Module) -> None:
    """Normal weights whose variance goes with a convolution's outputs (He et al., arXiv:1502.01852); no biases."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def draw_linear(network: nn.Module, std: float = LINEAR_STD) -> None:
    """Normal weights of ``std``, no biases."""
    for module in network.modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, 0, std)
            nn.init.zeros_(module.bias)


def loss(outputs: Tensor | tuple[Tensor, Tensor], labels: Tensor) -> Tensor:
    """Mean cross entropy of logits (n, classes); an auxiliary head's, which come second, count with a weight."""
    if isinstance(outputs, Tensor):
        return functional.cross_entropy(outputs, labels)
    logits, auxiliary = (functional.cross_entropy(each, labels) for each in outputs)
    return logits + AUXILIARY_WEIGHT * auxiliary
