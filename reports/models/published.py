"""Published steps of networks, as profiles: what a model of steps must get right before it is trusted.

As published of V100s that train with DistributedDataParallel at batch 32: ResNet-50 takes 97 ms a step on one, some 65
ms of it backward, and 104 ms on 16. When buckets are ready follows from the multiply-adds of the layers that come
before them in backward, at 224 x 224 pixels. Of VGG-16 there is no such step time, so it is a parameter.
"""

from __future__ import annotations

from reports.buckets import BUCKETS
from reports.models.step import Exchange, Profile

RESNET50_READY = (0.0, 0.105, 0.190, 0.505, 1.0)  # of backward
VGG16_READY = (0.0, 0.001, 0.008, 0.098, 0.636, 1.0)
RESNET50_STEP_S, RESNET50_BACKWARD_S, RESNET50_STEP_16_S = 0.097, 0.065, 0.104
VGG16_OVER_RESNET50 = 15.5 / 4.1  # multiply-adds of an image: how much longer a step may take at most


def resnet50() -> Profile:
    """A step of ResNet-50 on a V100."""
    return _profile("ResNet-50", RESNET50_READY, RESNET50_STEP_S, RESNET50_BACKWARD_S)


def vgg16(times: float = VGG16_OVER_RESNET50) -> Profile:
    """A step of VGG-16 that takes so many times as long as ResNet-50's."""
    return _profile("VGG-16", VGG16_READY, times * RESNET50_STEP_S, times * RESNET50_BACKWARD_S)


def _profile(model: str, ready: tuple[float, ...], step_s: float, backward_s: float) -> Profile:
    sizes = tuple(float(nbytes) for nbytes in BUCKETS[model])
    return Profile(step_s, step_s - backward_s, sizes, tuple(part * backward_s for part in ready))


def ring(bits_per_s: float, ranks: int = 16, latency_s: float = 10e-6) -> Exchange:
    """A ring at line rate, whose messages take so long; a GPU's own processor computes meanwhile."""

    def time_s(nbytes: float) -> float:
        return 2 * (ranks - 1) * (latency_s + nbytes / ranks * 8 / bits_per_s)

    return Exchange(time_s, apart=True)
