"""Which ways of exchanging gradients there are, by name: pure, without MPI and without torch.

A name is a primitive (``gloo``, ``mpi``, ``dpu``), with an algorithm of ours (``mpi-ring``) or a transport
(``dpu-staged``) where it is not the usual one, and with a fusion where that is not DDP's usual one: ``gloo+64M`` closes
a bucket at 64 MiB, ``gloo+unfused`` gives every tensor a bucket of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from collectives.offload.channel import TRANSPORTS
from collectives.schedules import ALGORITHMS
from fabrics.errors import UserError
from microbench.sizes import parse_size, shown

GLOO, MPI, DPU, NCCL = PRIMITIVES = ("gloo", "mpi", "dpu", "nccl")
USUAL_CAP_BYTES = 25 << 20
"""At which DDP closes a bucket by default; its first one it closes at 1 MiB."""
UNFUSED = "unfused"
NOOP = "noop"
_MIB = 1 << 20
_FUSED = f"behind the + stands {UNFUSED} or one size such as 64M"


@dataclass(frozen=True)
class Mode:
    """One way to exchange gradients.

    ``algorithm`` is a schedule of ours or a transport to DPUs, empty for the usual one; ``cap_bytes`` closes a bucket,
    0 gives every tensor its own.
    """

    name: str
    primitive: str
    algorithm: str = ""
    cap_bytes: int = USUAL_CAP_BYTES

    @classmethod
    def of(cls, name: str) -> Mode:
        """The mode of that name. UserError says which part of it cannot be meant."""
        base, plus, fusion = name.partition("+")
        primitive, dash, algorithm = base.partition("-")
        if primitive not in PRIMITIVES:
            raise UserError(f"train: unknown exchange {name!r}: it begins with one of {', '.join(PRIMITIVES)}")
        if dash and algorithm not in algorithms(primitive):
            known = ", ".join(f"{primitive}-{each}" for each in algorithms(primitive)) or primitive
            raise UserError(f"train: unknown exchange {name!r}: {primitive} or {known}")
        cap = _cap(name, fusion) if plus else USUAL_CAP_BYTES
        return cls(base if cap == USUAL_CAP_BYTES else name, primitive, algorithm, cap)

    @property
    def fusion(self) -> str:
        """What closes a bucket, in words."""
        return fusion(self.cap_bytes)


def algorithms(primitive: str) -> tuple[str, ...]:
    """What may follow a primitive's name."""
    if primitive == MPI:
        return tuple(name for operation, name in ALGORITHMS if operation == "allreduce")
    return TRANSPORTS if primitive == DPU else ()


def _cap(name: str, fusion: str) -> int:
    if fusion == UNFUSED:
        return 0
    try:
        nbytes = parse_size(fusion)
    except UserError as error:
        raise UserError(f"train: exchange {shown(name)}: {_FUSED}: {str(error).partition(': ')[0]}") from None
    if nbytes < 1:
        raise UserError(f"train: exchange {shown(name)}: {_FUSED}")
    return nbytes


def fusion(cap_bytes: int) -> str:
    """A cap in words."""
    if not cap_bytes:
        return "a bucket per tensor"
    return f"{cap_bytes / _MIB:g} MiB" + (" (the first 1 MiB)" if cap_bytes == USUAL_CAP_BYTES else "")


def bucket_cap_mb(cap_bytes: int) -> float | None:
    """What DDP is given: MiB, None for its usual ones; a byte closes a bucket with every tensor."""
    return None if cap_bytes == USUAL_CAP_BYTES else max(1, cap_bytes) / _MIB


def modes(names: Sequence[str]) -> tuple[Mode, ...]:
    """The modes of these names, in order. UserError for none, for one that stands twice, and for two transports."""
    found = tuple(map(Mode.of, names))
    if not found:
        raise UserError(f"train: exchanges are empty: name some of {', '.join(PRIMITIVES)}")
    for place, mode in enumerate(found):
        if mode in found[:place]:
            raise UserError(f"train: exchange {mode.name!r} stands twice")
    if len({mode.algorithm for mode in found if mode.primitive == DPU}) > 1:
        raise UserError("train: a case has one transport to DPUs: measure another in a case of its own")
    return found
