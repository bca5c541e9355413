"""The networks by name, with what is published of them; torch is imported only when one is built.

Counts of the networks for ImageNet (1000 classes) are those that torchvision publishes with its weights
(``num_params``). He et al. give theirs for CIFAR-10 to two digits, which the counts here round to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import nn

FLOAT32_BYTES = 4
_TORCHVISION = "torchvision, num_params"
_HE = "He et al., arXiv:1512.03385, table 6"


class Builder(Protocol):
    """Makes a network, with weights drawn from ``seed`` and this share of dropout where it has any."""

    def __call__(self, seed: int, dropout: float = 0.0) -> nn.Module:
        """The network, in training."""


@dataclass(frozen=True)
class Model:
    """A network of the table.

    ``image_px`` is the side of its usual images; it takes none
    below ``least_px``, and batch normalisation can train on a single image only from ``alone_px`` on. ``parameters``
    is how many numbers its ``tensors`` have, as published in ``source``. ``dropout`` is its usual share, None where it
    has none.
    """

    builder: Builder
    image_px: int
    least_px: int
    alone_px: int
    classes: int
    parameters: int
    tensors: int
    dropout: float | None
    source: str

    @property
    def megabytes(self) -> float:
        """Its gradients in float32, in units of 1e6 bytes."""
        return self.parameters * FLOAT32_BYTES / 1e6

    def build(self, seed: int, dropout: float | None = None) -> nn.Module:
        """The network with weights drawn from ``seed``, and with its usual share of dropout unless one is given."""
        return self.builder(seed, (self.dropout or 0.0) if dropout is None else dropout)


def _imagenet(blocks: tuple[int, ...], bottleneck: bool, parameters: int, tensors: int) -> Model:
    builder = partial(_resnet, blocks, (64, 128, 256, 512), bottleneck, False, 1000)
    return Model(builder, 224, 1, 33, 1000, parameters, tensors, None, _TORCHVISION)


def _cifar(layers: int, parameters: int, tensors: int) -> Model:
    builder = partial(_resnet, ((layers - 2) // 6,) * 3, (16, 32, 64), False, True, 10)
    return Model(builder, 32, 1, 5, 10, parameters, tensors, None, _HE)


def _resnet(
    blocks: tuple[int, ...],
    widths: tuple[int, ...],
    bottleneck: bool,
    cifar: bool,
    classes: int,
    seed: int,
    dropout: float = 0.0,
) -> nn.Module:
    from training.models import resnet  # noqa: PLC0415 - it imports torch, which takes seconds

    return resnet.build(resnet.Plan(blocks, widths, bottleneck, cifar, classes), seed)


def _vgg(seed: int, dropout: float = 0.0) -> nn.Module:
    from training.models import vgg  # noqa: PLC0415 - it imports torch

    return vgg.build(vgg.VGG16, seed, dropout)


def _alexnet(seed: int, dropout: float = 0.0) -> nn.Module:
    from training.models import alexnet  # noqa: PLC0415 - it imports torch

    return alexnet.build(alexnet.USUAL, seed, dropout)


def _inception(auxiliary: bool, seed: int, dropout: float = 0.0) -> nn.Module:
    from training.models import inception  # noqa: PLC0415 - it imports torch

    return inception.build(seed, dropout, auxiliary)


MODELS: Mapping[str, Model] = MappingProxyType({
    "resnet18": _imagenet((2, 2, 2, 2), False, 11_689_512, 62),
    "resnet34": _imagenet((3, 4, 6, 3), False, 21_797_672, 110),
    "resnet50": _imagenet((3, 4, 6, 3), True, 25_557_032, 161),
    "resnet101": _imagenet((3, 4, 23, 3), True, 44_549_160, 314),
    "resnet152": _imagenet((3, 8, 36, 3), True, 60_192_808, 467),
    "resnet20": _cifar(20, 269_722, 59),
    "resnet32": _cifar(32, 464_154, 95),
    "resnet44": _cifar(44, 658_586, 131),
    "resnet56": _cifar(56, 853_018, 167),
    "resnet110": _cifar(110, 1_727_962, 329),
    "vgg16": Model(_vgg, 224, 32, 32, 1000, 138_357_544, 32, 0.5, _TORCHVISION),
    "alexnet": Model(_alexnet, 224, 63, 63, 1000, 61_100_840, 16, 0.5, _TORCHVISION),
    "inception_v3": Model(
        partial(_inception, False), 299, 75, 107, 1000, 23_834_568, 284, 0.2, f"{_TORCHVISION}, without auxiliary head"
    ),
    "inception_v3_aux": Model(
        partial(_inception, True), 299, 299, 347, 1000, 27_161_264, 292, 0.2, _TORCHVISION
    ),
})  # fmt: skip
