"""VGG-16: thirteen 3x3 convolutions and three linear layers (Simonyan and Zisserman, arXiv:1409.1556, table 1, D).

No batch normalisation, so that an image's gradient does not depend on the others of its batch. Its last feature map
is pooled to 7 x 7 whatever the image's size, as torchvision does it: at 224 pixels it has that size anyway.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from training.models.layers import draw_convolutions, draw_linear, seeded

_POOLED_PX = 7


@dataclass(frozen=True)
class Plan:
    """Widths of the convolutions of each stage, at whose end the image is halved; of the linear layers; classes."""

    stages: tuple[tuple[int, ...], ...]
    hidden: int
    classes: int


VGG16 = Plan(((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512)), 4096, 1000)


class VGG(nn.Module):
    """A network after ``plan``, images (n, 3, h, w) -> logits (n, classes); ``dropout`` is a share, 0 for none."""

    def __init__(self, plan: Plan, dropout: float) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = 3
        for stage in plan.stages:
            for width in stage:
                layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU(inplace=True)]
                channels = width
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(_POOLED_PX), nn.Flatten())
        self.classifier = nn.Sequential(
            *_hidden(channels * _POOLED_PX**2, plan.hidden, dropout),
            *_hidden(plan.hidden, plan.hidden, dropout),
            nn.Linear(plan.hidden, plan.classes),
        )
        draw_convolutions(self)
        draw_linear(self)

    def forward(self, images: Tensor) -> Tensor:
        """Logits (n, classes)."""
        logits: Tensor = self.classifier(self.features(images))
        return logits


def build(plan: Plan, seed: int, dropout: float) -> VGG:
    """The network of ``plan``, with weights drawn from ``seed``."""
    return seeded(seed, lambda: VGG(plan, dropout))


def _hidden(inputs: int, outputs: int, dropout: float) -> list[nn.Module]:
    return [nn.Linear(inputs, outputs), nn.ReLU(inplace=True), nn.Dropout(dropout)]
