"""Inception V3 (Szegedy et al., arXiv:1512.00567), with the widths of its authors' own program.

Blocks of parallel branches at three resolutions, 35, 17 and 8 pixels of an image of 299: squares of 5x5 and 3x3, then
7x7 factored into 1x7 and 7x1, then outputs of 1x3 and 3x1 side by side. The auxiliary head sits on the second
resolution, which it needs whole: it counts in training alone.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from training.models.layers import Size, conv_bn, draw_convolutions, draw_linear, seeded

CLASSES = 1000
_EPS = 1e-3  # of batch normalisation, the authors' own
_SEVENS = (128, 160, 160, 192)  # widths of the factored 7x7 convolutions, block by block


class Branches(nn.Module):
    """Branches side by side on one input, joined along the channels."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: Tensor) -> Tensor:
        """(n, c, h, w) -> (n, sum of the branches' channels, h', w')."""
        return torch.cat([branch(x) for branch in self.branches], dim=1)


class InceptionV3(nn.Module):
    """Images (n, 3, h, w) -> logits (n, classes); in training with ``auxiliary``, that head's logits too."""

    def __init__(self, dropout: float, auxiliary: bool) -> None:
        super().__init__()
        self.stem = _stem()
        self.fine = nn.Sequential(_squares(192, 32), _squares(256, 64), _squares(288, 64), _to_middle(288))
        self.middle = nn.Sequential(*(_sevens(width) for width in _SEVENS))
        self.coarse = nn.Sequential(_to_coarse(768), _spread(1280), _spread(2048))
        self.head = nn.Sequential(_flat_mean(), nn.Dropout(dropout), nn.Linear(2048, CLASSES))
        self.auxiliary = _auxiliary_head() if auxiliary else None
        draw_convolutions(self)
        draw_linear(self)

    def forward(self, images: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """Logits (n, classes), in training with those of the auxiliary head behind them."""
        middle = self.middle(self.fine(self.stem(images)))
        logits: Tensor = self.head(self.coarse(middle))
        if self.auxiliary is None or not self.training:
            return logits
        return logits, self.auxiliary(middle)


def build(seed: int, dropout: float, auxiliary: bool) -> InceptionV3:
    """The network with weights drawn from ``seed``."""
    return seeded(seed, lambda: InceptionV3(dropout, auxiliary))


def _conv(inputs: int, outputs: int, kernel: Size, stride: int = 1, padding: Size = 0) -> nn.Sequential:
    return nn.Sequential(*conv_bn(inputs, outputs, kernel, stride, padding, _EPS), nn.ReLU(inplace=True))


def _chain(inputs: int, *steps: tuple[int, Size]) -> nn.Sequential:
    """Convolutions of (outputs, kernel) one after the other, padded so that the image keeps its size."""
    layers: list[nn.Module] = []
    for outputs, kernel in steps:
        padding = kernel // 2 if isinstance(kernel, int) else (kernel[0] // 2, kernel[1] // 2)
        layers.append(_conv(inputs, outputs, kernel, padding=padding))
        inputs = outputs
    return nn.Sequential(*layers)


def _pooled(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.AvgPool2d(3, stride=1, padding=1), _chain(inputs, (outputs, 1)))


def _flat_mean() -> nn.Sequential:
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())


def _stem() -> nn.Sequential:
    """3 -> 192 channels, an eighth of the image's side."""
    return nn.Sequential(
        _conv(3, 32, 3, stride=2),
        _conv(32, 32, 3),
        _conv(32, 64, 3, padding=1),
        nn.MaxPool2d(3, stride=2),
        _conv(64, 80, 1),
        _conv(80, 192, 3),
        nn.MaxPool2d(3, stride=2),
    )


def _squares(inputs: int, pooled: int) -> Branches:
    return Branches(
        _chain(inputs, (64, 1)),
        _chain(inputs, (48, 1), (64, 5)),
        _chain(inputs, (64, 1), (96, 3), (96, 3)),
        _pooled(inputs, pooled),
    )


def _to_middle(inputs: int) -> Branches:
    """288 -> 768 channels at half the side."""
    return Branches(
        _conv(inputs, 384, 3, stride=2),
        nn.Sequential(_chain(inputs, (64, 1), (96, 3)), _conv(96, 96, 3, stride=2)),
        nn.MaxPool2d(3, stride=2),
    )


def _sevens(width: int) -> Branches:
    row, column = (1, 7), (7, 1)
    return Branches(
        _chain(768, (192, 1)),
        _chain(768, (width, 1), (width, row), (192, column)),
        _chain(768, (width, 1), (width, column), (width, row), (width, column), (192, row)),
        _pooled(768, 192),
    )


def _to_coarse(inputs: int) -> Branches:
    """768 -> 1280 channels at half the side."""
    return Branches(
        nn.Sequential(_chain(inputs, (192, 1)), _conv(192, 320, 3, stride=2)),
        nn.Sequential(_chain(inputs, (192, 1), (192, (1, 7)), (192, (7, 1))), _conv(192, 192, 3, stride=2)),
        nn.MaxPool2d(3, stride=2),
    )


def _spread(inputs: int) -> Branches:
    return Branches(
        _chain(inputs, (320, 1)),
        nn.Sequential(_chain(inputs, (384, 1)), _row_and_column()),
        nn.Sequential(_chain(inputs, (448, 1), (384, 3)), _row_and_column()),
        _pooled(inputs, 192),
    )


def _row_and_column() -> Branches:
    return Branches(_chain(384, (384, (1, 3))), _chain(384, (384, (3, 1))))


def _auxiliary_head() -> nn.Sequential:
    pool = nn.AvgPool2d(5, stride=3)
    return nn.Sequential(pool, _chain(768, (128, 1)), _conv(128, 768, 5), _flat_mean(), nn.Linear(768, CLASSES))
