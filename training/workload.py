"""What is trained, and what training asks of the job that it runs in; torch is not imported here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from fabrics.errors import CannotRun, UserError
from fabrics.model import Fabric, Proof

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

OPTIONS = ("model", "batch", "image_px")
_IMAGENET = ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152")
_CIFAR = ("resnet20", "resnet32", "resnet44", "resnet56", "resnet110")
IMAGE_PX: Mapping[str, int] = MappingProxyType(dict.fromkeys(_IMAGENET, 224) | dict.fromkeys(_CIFAR, 32))


class Job(Protocol):
    """The part of the worker's job that training uses."""

    @property
    def comm(self) -> Intracomm:
        """The ranks that take part."""

    @property
    def rank(self) -> int:
        """The rank of the process in ``comm``."""

    @property
    def size(self) -> int:
        """How many ranks ``comm`` has."""

    @property
    def fabric(self) -> Fabric:
        """The fabric under test."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """The host of each rank."""

    @property
    def seed(self) -> int:
        """The same on every rank."""

    def prove(self, traffic: Callable[[], None], sent_bytes: int, received_bytes: int) -> Proof:
        """What the counters of all hosts say of ``traffic``, in which each rank moves at least so much."""


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


def raise_together(comm: Intracomm, fault: str) -> None:
    """Raise CannotRun on every rank, with the lowest rank's fault, where any rank has one."""
    faults: list[str] = comm.allgather(fault)
    for rank, text in enumerate(faults):
        if text:
            raise CannotRun(f"train: rank {rank}: {text}")
