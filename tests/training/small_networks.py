"""Networks of the families that are as deep as the usual ones but narrow, and what they are trained on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from torch import nn

from training.data import Loader
from training.data.synthetic import Synthetic
from training.models import MODELS, Model, alexnet, vgg
from training.workload import Workload

SEED, STEPS = 7, 3
CLASSES = 10
WORKLOADS = {
    "resnet20": Workload("resnet20", 4, 16),
    "inception_v3": Workload("inception_v3", 2, 75),
    "vgg": Workload("vgg16", 4, 32, 0.0),
    "alexnet": Workload("alexnet", 4, 63, 0.0),
    "alexnet that drops": Workload("alexnet", 4, 63, 0.5),
}
_STAGES = ((8, 8), (8, 8), (16, 16, 16), (16, 16, 16), (16, 16, 16))


def _vgg(seed: int, dropout: float = 0.0) -> nn.Module:
    return vgg.build(vgg.Plan(_STAGES, 64, CLASSES), seed, dropout)


def _alexnet(seed: int, dropout: float = 0.0) -> nn.Module:
    return alexnet.build(alexnet.Plan((8, 12, 16, 16, 12), 64, CLASSES), seed, dropout)


def network(name: str) -> Model:
    """The network of a workload."""
    narrow = {"vgg": _vgg, "alexnet": _alexnet}.get(name.split(maxsplit=1)[0])
    usual = MODELS[WORKLOADS[name].model]
    return usual if narrow is None else replace(usual, builder=narrow, classes=CLASSES)


def weights(module: nn.Module) -> list[np.ndarray]:
    """Copies of the parameters."""
    return [p.detach().numpy().copy() for p in module.parameters()]


def loader(name: str, rank: int, ranks: int) -> Loader:
    """The images of one of ``ranks``, the same in every step."""
    workload = WORKLOADS[name]
    source = Synthetic(workload.batch * ranks, workload.image_px, network(name).classes, SEED)
    return Loader(source, workload.batch, rank, ranks, SEED, augment=False)
