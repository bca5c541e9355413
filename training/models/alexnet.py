"""AlexNet in its form for one device (Krizhevsky, arXiv:1404.5997): five convolutions and three linear layers.

No batch normalisation, and none of the first form's normalisation across channels. Its last feature map is pooled to
6 x 6 whatever the image's size, as torchvision does it: at 224 pixels it has that size anyway.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from training.models.layers import draw_convolutions, draw_linear, seeded

_POOLED_PX = 6


@dataclass(frozen=True)
class Plan:
    """Widths of the five convolutions and of the linear layers, and classes."""

    widths: tuple[int, int, int, int, int]
    hidden: int
    classes: int


USUAL = Plan((64, 192, 384, 256, 256), 4096, 1000)


class AlexNet(nn.Module):
    """A network after ``plan``, images (n, 3, h, w) -> logits (n, classes); ``dropout`` is a share, 0 for none."""

    def __init__(self, plan: Plan, dropout: float) -> None:
        super().__init__()
        a, b, c, d, e = plan.widths
        self.features = nn.Sequential(
            *_conv(3, a, 11, stride=4, padding=2),
            nn.MaxPool2d(3, stride=2),
            *_conv(a, b, 5, padding=2),
            nn.MaxPool2d(3, stride=2),
            *_conv(b, c, 3, padding=1),
            *_conv(c, d, 3, padding=1),
            *_conv(d, e, 3, padding=1),
            nn.MaxPool2d(3, stride=2),
            nn.AdaptiveAvgPool2d(_POOLED_PX),
            nn.Flatten(),
        )
        self.classifier = nn.Sequential(
            *_hidden(e * _POOLED_PX**2, plan.hidden, dropout),
            *_hidden(plan.hidden, plan.hidden, dropout),
            nn.Linear(plan.hidden, plan.classes),
        )
        draw_convolutions(self)
        draw_linear(self)

    def forward(self, images: Tensor) -> Tensor:
        """Logits (n, classes)."""
        logits: Tensor = self.classifier(self.features(images))
        return logits


def build(plan: Plan, seed: int, dropout: float) -> AlexNet:
    """The network of ``plan``, with weights drawn from ``seed``."""
    return seeded(seed, lambda: AlexNet(plan, dropout))


def _conv(inputs: int, outputs: int, kernel: int, stride: int = 1, padding: int = 0) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, kernel, stride, padding), nn.ReLU(inplace=True)]


def _hidden(inputs: int, outputs: int, dropout: float) -> list[nn.Module]:
    return [nn.Dropout(dropout), nn.Linear(inputs, outputs), nn.ReLU(inplace=True)]
