"""What is trained, and what training asks of the job that it runs in; torch is not imported here."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from collectives.backends.member import Member
from fabrics.errors import UserError

OPTIONS = ("model", "batch", "image_px")
_IMAGENET = ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152")
_CIFAR = ("resnet20", "resnet32", "resnet44", "resnet56", "resnet110")
IMAGE_PX: Mapping[str, int] = MappingProxyType(dict.fromkeys(_IMAGENET, 224) | dict.fromkeys(_CIFAR, 32))


Job = Member  # what training asks of the job that it runs in


@dataclass(frozen=True)
class Workload:
    """A model, the images each rank takes per step, and the side of an image."""

    model: str
    batch: int
    image_px: int

    @property
    def label(self) -> str:
        """As reports name it: ``resnet50 64px batch 16``."""
        return f"{self.model} {self.image_px}px batch {self.batch}"


def parse(options: Mapping[str, Any], image_px: Mapping[str, int]) -> Workload:
    """The workload of a case's ``options``; ``image_px`` maps each known model to its usual image side.

    Raises UserError for an option or a model that does not exist, and for sizes that are not positive.
    """
    _known(options, OPTIONS, "option")
    model = str(options.get("model", "resnet50"))
    _known((model,), image_px, "model")
    batch, side = options.get("batch", 16), options.get("image_px", image_px[model])
    return Workload(model, _positive("batch", batch), _positive("image_px", side))


def _known(names: Collection[str], allowed: Collection[str], what: str) -> None:
    for name in names:
        if name not in allowed:
            raise UserError(f"train: unknown {what} {name!r}: one of {', '.join(allowed)}")


def _positive(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise UserError(f"train: {name} is {value!r}: a positive integer is needed")
    return value
