"""Residual networks for image classification.

Two families (He et al., arXiv:1512.03385): the ImageNet one (18 to 152 layers, with the stride of a
bottleneck in its 3x3 convolution, "v1.5") and the CIFAR one (6n+2 layers, with shortcuts that have no
parameters: every other pixel, and channels of zeros).
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional

from training.models.layers import conv_bn, draw_convolutions, seeded


@dataclass(frozen=True)
class Plan:
    """What tells one network from another: blocks per stage, width of each stage, kind of block, classes."""

    blocks: tuple[int, ...]
    widths: tuple[int, ...]
    bottleneck: bool
    cifar: bool
    classes: int


class ZeroPadShortcut(nn.Module):
    """Every ``stride``-th pixel, with channels of zeros on both sides: no parameters ("option A")."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        self.before = (outputs - inputs) // 2
        self.after = outputs - inputs - self.before

    def forward(self, x: Tensor) -> Tensor:
        """(n, inputs, h, w) -> (n, outputs, h / stride, w / stride)."""
        return functional.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.before, self.after))


class Residual(nn.Module):
    """``relu(body(x) + shortcut(x))``."""

    def __init__(self, body: nn.Module, shortcut: nn.Module) -> None:
        super().__init__()
        self.body = body
        self.shortcut = shortcut

    def forward(self, x: Tensor) -> Tensor:
        """Of the shape that both branches make of ``x``."""
        return functional.relu(self.body(x) + self.shortcut(x), inplace=True)


class ResNet(nn.Module):
    """A residual network after ``plan``; images (n, 3, h, w) -> logits (n, classes)."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.stem = _cifar_stem(plan.widths[0]) if plan.cifar else _imagenet_stem(plan.widths[0])
        blocks: list[nn.Module] = []
        channels = plan.widths[0]
        for stage, (count, width) in enumerate(zip(plan.blocks, plan.widths, strict=True)):
            outputs = 4 * width if plan.bottleneck else width
            for i in range(count):
                blocks.append(_block(plan, channels, width, outputs, stride=2 if stage and i == 0 else 1))
                channels = outputs
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(channels, plan.classes)
        draw_convolutions(self)

    def forward(self, images: Tensor) -> Tensor:
        """Logits (n, classes)."""
        logits: Tensor = self.head(self.blocks(self.stem(images)).mean(dim=(2, 3)))
        return logits


def build(plan: Plan, seed: int) -> ResNet:
    """The network of ``plan``, with weights drawn from ``seed``."""
    return seeded(seed, lambda: ResNet(plan))


def _conv_bn(inputs: int, outputs: int, kernel: int, stride: int = 1) -> list[nn.Module]:
    return conv_bn(inputs, outputs, kernel, stride, padding=kernel // 2)


def _imagenet_stem(width: int) -> nn.Module:
    pool = nn.MaxPool2d(3, stride=2, padding=1)
    return nn.Sequential(*_conv_bn(3, width, 7, stride=2), nn.ReLU(inplace=True), pool)


def _cifar_stem(width: int) -> nn.Module:
    return nn.Sequential(*_conv_bn(3, width, 3), nn.ReLU(inplace=True))


def _block(plan: Plan, inputs: int, width: int, outputs: int, stride: int) -> nn.Module:
    body = _bottleneck(inputs, width, outputs, stride) if plan.bottleneck else _basic(inputs, width, stride)
    return Residual(body, _shortcut(plan, inputs, outputs, stride))


def _basic(inputs: int, width: int, stride: int) -> nn.Module:
    second = _conv_bn(width, width, 3)
    return nn.Sequential(*_conv_bn(inputs, width, 3, stride), nn.ReLU(inplace=True), *second)


def _bottleneck(inputs: int, width: int, outputs: int, stride: int) -> nn.Module:
    first, last = _conv_bn(inputs, width, 1), _conv_bn(width, outputs, 1)
    middle = _conv_bn(width, width, 3, stride)
    return nn.Sequential(*first, nn.ReLU(inplace=True), *middle, nn.ReLU(inplace=True), *last)


def _shortcut(plan: Plan, inputs: int, outputs: int, stride: int) -> nn.Module:
    if inputs == outputs and stride == 1:
        return nn.Identity()
    if plan.cifar:
        return ZeroPadShortcut(inputs, outputs, stride)
    return nn.Sequential(*_conv_bn(inputs, outputs, 1, stride))
