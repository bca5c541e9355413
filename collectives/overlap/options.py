"""What a case of the overlap bench may set, checked: pure, without MPI and without torch.

A case's options are those of ``Options``; what differs from the usual is its label, and so part of the case's id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

from fabrics.errors import UserError

OPERATIONS = ("allreduce", "alltoall", "broadcast", "allgather")
PROBES = {"host": 0, "probes4": 4, "probes16": 16, "probes64": 64}
HOST_MODES = (*PROBES, "thread", "gloo")
OFFLOAD_MODES = ("staged", "window", "rma")
BLOCKING = "blocking"  # derived from host's times: always told
MODES = (*HOST_MODES, *OFFLOAD_MODES)
REGISTERS, MEMORY = COMPUTE = ("registers", "memory")
SPLIT, NODE, ACCEL = PLACEMENTS = ("split", "node", "accel")
AUTO = "auto"
WAITING = (AUTO, "spin")
USUAL_HOST = ("host", "probes16", "probes64")
USUAL_OFFLOAD = (*USUAL_HOST, "staged", "window")

_LARGEST_FRACTION, _LARGEST_SKEW, _MOST_OUTSTANDING, _MOST_WORKERS = 100.0, 100.0, 4, 64
_ALIGNED = 64  # a chunk holds whole elements of every type


@dataclass(frozen=True)
class Options:
    """How a collective is overlapped.

    ``compare`` names the modes. ``fraction`` sizes the compute by the hosts' own time of the collective; ``skew``
    makes each host late by up to so many of those times, drawn per iteration; ``outstanding`` is how many requests are
    under way at once. ``compute`` works in registers or on memory. ``workers`` ranks make a DPU; ``chunk`` and
    ``dpu_memory`` are bytes, a chunk being tuned where none is given. ``waiting`` is how emulated DPUs wait.
    """

    compare: tuple[str, ...] = USUAL_HOST
    fraction: float = 1.0
    skew: float = 0.0
    outstanding: int = 1
    compute: str = REGISTERS
    placement: str = AUTO
    workers: int = 1
    chunk: int | None = None
    dpu_memory: int | None = None
    waiting: str = AUTO

    @classmethod
    def of(cls, data: Mapping[str, Any], offload: bool) -> Options:
        """The options of a case of ``offload_*``, or of ``overlap_*`` where nothing is offloaded.

        Raises UserError for an unknown name, and for a value that cannot be.
        """
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(data) - known):
            raise UserError(f"unknown option {unknown[0]!r} of overlap: one of {', '.join(sorted(known))}")
        if not offload and (misplaced := sorted(set(data) & {"workers", "chunk", "dpu_memory"})):
            raise UserError(f"{misplaced[0]}: only offload_* has DPUs")
        usual = USUAL_OFFLOAD if offload else USUAL_HOST
        return cls(
            compare=_modes(data.get("compare", usual), offload),
            fraction=_number("fraction", data.get("fraction", 1), _LARGEST_FRACTION, "times the collective's own time"),
            skew=_number("skew", data.get("skew", 0), _LARGEST_SKEW, "times the collective's own time"),
            outstanding=_whole("outstanding", data.get("outstanding", 1), _MOST_OUTSTANDING),
            compute=_one_of("compute", data.get("compute", REGISTERS), COMPUTE),
            placement=_one_of("placement", data.get("placement", AUTO), (*PLACEMENTS, AUTO)),
            workers=_whole("workers", data.get("workers", 1), _MOST_WORKERS),
            chunk=_bytes("chunk", data.get("chunk")),
            dpu_memory=_bytes("dpu_memory", data.get("dpu_memory")),
            waiting=_one_of("waiting", data.get("waiting", AUTO), WAITING),
        )

    @property
    def label(self) -> str:
        """What differs from the usual, the modes apart: ``compute 2x, skew 0.5, 2 outstanding, memory, node``."""
        parts = [
            f"compute {self.fraction:g}x" if self.fraction != 1 else "",
            f"skew {self.skew:g}" if self.skew else "",
            f"{self.outstanding} outstanding" if self.outstanding > 1 else "",
            self.compute if self.compute != REGISTERS else "",
            self.placement if self.placement != AUTO else "",
            f"{self.workers} workers" if self.workers > 1 else "",
            f"chunk {self.chunk} B" if self.chunk is not None else "",
            f"DPU memory {self.dpu_memory} B" if self.dpu_memory is not None else "",
            f"waiting {self.waiting}" if self.waiting != AUTO else "",
        ]
        return ", ".join(part for part in parts if part)

    @property
    def offloads(self) -> tuple[str, ...]:
        """The modes that DPUs carry."""
        return tuple(mode for mode in self.compare if mode in OFFLOAD_MODES)

    @property
    def thread_level(self) -> str:
        """The thread level that MPI has to be started at."""
        return "multiple" if "thread" in self.compare else "single"

    def placed(self, emulated: bool) -> str:
        """``split``, ``node`` or ``accel``: where nothing is said, split on one machine's cores, else node."""
        if self.placement != AUTO:
            return self.placement
        return SPLIT if emulated else NODE


def usual(benchmark: str) -> Options:
    """The options of a case of ``offload_*`` or ``overlap_*`` that sets none."""
    return Options.of({}, benchmark.startswith("offload_"))


def operation(benchmark: str) -> str:
    """The collective of ``offload_allreduce`` or ``overlap_allreduce``."""
    return benchmark.partition("_")[2]


def _modes(value: Any, offload: bool) -> tuple[str, ...]:
    """Each once, in the usual order: ``blocking`` is derived, and needs no asking."""
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(mode, str) for mode in value):
        raise UserError(f"compare {value!r}: a list of modes")
    there = MODES if offload else HOST_MODES
    for mode in value:
        if mode not in (*there, BLOCKING):
            why = "only offload_* has DPUs" if mode in OFFLOAD_MODES else f"one of {', '.join(there)}"
            raise UserError(f"compare: unknown mode {mode!r}: {why}" if mode not in MODES else f"compare {mode}: {why}")
    modes = tuple(mode for mode in there if mode in value)
    if not modes:
        raise UserError(f"compare: no mode to measure: one or more of {', '.join(there)}")
    return modes


def _number(name: str, value: Any, most: float, unit: str) -> float:
    """A number from 0 on, which may be written as a fraction (``"1/4"``)."""
    try:
        number = float(Fraction(value)) if not isinstance(value, bool) else -1.0
    except (ValueError, TypeError, OverflowError, ZeroDivisionError):
        number = -1.0
    if not 0 <= number <= most:
        raise UserError(f"{name} {value!r}: 0 to {most:g} {unit}")
    return number


def _whole(name: str, value: Any, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise UserError(f"{name} {value!r}: a whole number from 1 to {most}")
    return value


def _bytes(name: str, value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < _ALIGNED or value % _ALIGNED:
        raise UserError(f"{name} {value!r}: bytes, a multiple of {_ALIGNED}")
    return value


def _one_of(name: str, value: Any, choices: Sequence[str]) -> str:
    if value not in choices:
        raise UserError(f"{name} {value!r}: one of {', '.join(choices)}")
    return str(value)
