"""What a case of ``train`` sets beside its workload, checked: pure, without MPI and without torch.

What differs from the usual is part of the label, and so of the case's id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from collectives.overlap.options import AUTO, NODE, SPLIT
from fabrics.errors import UserError
from microbench.device import CPU, CUDA
from training import workload
from training.data import choice
from training.exchange.modes import DPU, GLOO, MPI, NCCL, Mode, modes
from training.models import MODELS, Model
from training.workload import Workload

SINGLE, MULTIPLE = "single", "multiple"
WEAK, STRONG = SCALINGS = ("weak", "strong")
FLOAT32, BFLOAT16 = DTYPES = ("float32", "bfloat16")
COMPUTES, REPLAYED = PEERS = ("computes", "replayed")
PLACEMENTS = (AUTO, NODE, SPLIT)
USUAL_EXCHANGES = ("gloo",)
OPTIONS = ("exchanges", "scaling", "dtype", "data", "augment", "placement", "peer")


@dataclass(frozen=True)
class Setup:
    """A workload, and how it is trained.

    ``exchanges`` name the ways to exchange gradients (:mod:`training.exchange.modes`), compared step by step. With
    ``weak`` scaling the batch is each rank's, with ``strong`` that of all together. ``placement`` ``split`` gives the
    first host a core of its own; a ``peer`` that is ``replayed`` sleeps for the compute's time and hands over
    gradients of equal size.
    """

    workload: Workload
    exchanges: tuple[str, ...] = USUAL_EXCHANGES
    scaling: str = WEAK
    dtype: str = FLOAT32
    data: str = choice.SYNTHETIC
    augment: bool = False
    placement: str = AUTO
    peer: str = COMPUTES

    @classmethod
    def of(cls, options: Mapping[str, Any], models: Mapping[str, Model] = MODELS) -> Setup:
        """The setup of a case's ``options``, each of which has a default. UserError says which cannot be meant."""
        own = {name: options[name] for name in OPTIONS if name in options}
        rest = {name: value for name, value in options.items() if name not in own}
        trained = workload.parse(rest, models, OPTIONS)
        if "exchanges" in own:
            own["exchanges"] = _exchanges(own["exchanges"])
        for name, allowed in (("scaling", SCALINGS), ("dtype", DTYPES), ("placement", PLACEMENTS), ("peer", PEERS)):
            _one_of(name, own.get(name, allowed[0]), allowed)
        if not isinstance(own.get("augment", False), bool):
            raise UserError(f"train: augment is {own['augment']!r}: true or false")
        if "data" in own:
            own["data"] = choice.parse(own["data"]).text
        found = cls(trained, **own)
        if found.replayed and found.placement == NODE:
            raise UserError("train: a replayed peer leaves the first host its core alone: placement split, not node")
        if len({mode.primitive == NCCL for mode in found.modes}) > 1:
            raise UserError("train: nccl takes device memory, other exchanges the host's: a case has one of both")
        return found

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The exchanges, parsed."""
        return modes(self.exchanges)

    @property
    def backend(self) -> str:
        """The library that forms the group of DDP's own messages, and exchanges gradients where no other does."""
        return NCCL if self.modes[0].primitive == NCCL else GLOO

    @property
    def device(self) -> str:
        """Where the network is; a CUDA device's memory only for nccl, which is not verified on hardware."""
        return CUDA if self.backend == NCCL else CPU

    @property
    def replayed(self) -> bool:
        """Whether only the first host trains."""
        return self.peer == REPLAYED

    @property
    def with_dpus(self) -> bool:
        """Whether DPUs take part."""
        return any(mode.primitive == DPU for mode in self.modes)

    @property
    def thread_level(self) -> str:
        """The thread level that MPI has to be started at: a thread of ours completes what the hook has started."""
        return MULTIPLE if any(mode.primitive in (MPI, DPU) for mode in self.modes) else SINGLE

    @property
    def placed(self) -> str:
        """``split``, ``node``, or empty where ranks go round the cores."""
        if self.placement == AUTO:
            return SPLIT if self.replayed else NODE if self.with_dpus else ""
        return self.placement

    @property
    def label(self) -> str:
        """The workload's, with what is not usual."""
        told = [
            "/".join(self.exchanges) if self.exchanges != USUAL_EXCHANGES else "",
            "strong scaling" if self.scaling == STRONG else "",
            self.dtype if self.dtype != FLOAT32 else "",
            choice.parse(self.data).kind if self.data != choice.SYNTHETIC else "",
            "augmented" if self.augment else "",
            self.placement if self.placement != AUTO else "",
            "peer replayed" if self.replayed else "",
        ]
        return ", ".join([self.workload.label, *filter(None, told)])

    @property
    def options(self) -> dict[str, Any]:
        """What :meth:`of` makes this setup of again, as plain JSON data; only what is not usual."""
        usual = Setup(self.workload)
        own = {name: getattr(self, name) for name in OPTIONS if getattr(self, name) != getattr(usual, name)}
        return self.workload.options | own | ({"exchanges": list(self.exchanges)} if "exchanges" in own else {})

    def batch_of(self, ranks: int) -> int:
        """The images that each of ``ranks`` takes in a step. UserError where they do not divide the batch of all."""
        batch = self.workload.batch
        if self.scaling == WEAK:
            return batch
        if batch % ranks:
            raise UserError(f"train: strong scaling: {ranks} ranks do not divide the batch of {batch}")
        return batch // ranks


def _exchanges(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise UserError(f'train: exchanges are {value!r}: a list such as ["gloo", "mpi"] is needed')
    return tuple(mode.name for mode in modes(value))


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise UserError(f"train: {name} is {value!r}: one of {', '.join(allowed)}")
