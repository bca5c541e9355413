"""What is trained; torch is not imported here."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from fabrics.errors import UserError
from microbench.sizes import shown
from training.models import MODELS, Model

OPTIONS = ("model", "batch", "image_px", "dropout")
MOST: Mapping[str, int] = MappingProxyType({"batch": 1 << 24, "image_px": 1 << 14})
"""Beyond any machine's memory, and far from what 64 bits hold of the bytes of their activations."""


@dataclass(frozen=True)
class Workload:
    """A model, the images each rank takes per step, the side of an image, and the share of dropout.

    ``dropout`` None stands for the model's usual one.
    """

    model: str
    batch: int
    image_px: int
    dropout: float | None = None

    @property
    def label(self) -> str:
        """As reports name it: ``resnet50 64px batch 16``, with a share of dropout that is not the usual one."""
        dropout = "" if self.dropout is None else f" dropout {self.dropout:g}"
        return f"{self.model} {self.image_px}px batch {self.batch}{dropout}"

    @property
    def options(self) -> dict[str, Any]:
        """What :func:`parse` makes this workload of again."""
        plain = {"model": self.model, "batch": self.batch, "image_px": self.image_px}
        return plain if self.dropout is None else plain | {"dropout": self.dropout}


def parse(options: Mapping[str, Any], models: Mapping[str, Model] = MODELS, others: tuple[str, ...] = ()) -> Workload:
    """The workload of a case's ``options``, each of which has a default; ``others`` are the options that are not its.

    Raises UserError for an option or a model that does not exist, for sizes that are not positive, for images that
    are too small for the model, and for a share of dropout that it cannot have.
    """
    for name in options:
        _known((name,), (*OPTIONS, *others), "option")
    name = str(options.get("model", "resnet50"))
    _known((name,), models, "model")
    model = models[name]
    side = _positive("image_px", options.get("image_px", model.image_px))
    if side < model.least_px:
        raise UserError(f"train: image_px is {side}: {name} needs images of at least {model.least_px} px")
    dropout = _dropout(name, model, options["dropout"]) if "dropout" in options else None
    return Workload(name, _positive("batch", options.get("batch", 16)), side, dropout)


def _known(names: Collection[str], allowed: Collection[str], what: str) -> None:
    for name in names:
        if name not in allowed:
            raise UserError(f"train: unknown {what} {name!r}: one of {', '.join(allowed)}")


def _positive(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise UserError(f"train: {name} is {value!r}: a positive integer is needed")
    if value > MOST[name]:
        raise UserError(f"train: {name} is {shown(str(value))}: at most {MOST[name]}")
    return value


def _dropout(name: str, model: Model, value: object) -> float | None:
    """The share of dropout, None where it is the usual one: one workload has one label."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 1:
        raise UserError(f"train: dropout is {value!r}: a share from 0 to below 1 is needed")
    if value and model.dropout is None:
        raise UserError(f"train: dropout is {value!r}: {name} has no dropout")
    return None if value == (model.dropout or 0.0) else float(value)
