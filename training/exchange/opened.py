"""All exchanges of a case on one host, made and ended together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from collectives.backends.table import why_not
from collectives.offload.request import Offload
from collectives.offload.tune import Tuned
from fabrics.errors import CannotRun
from microbench.case import Unsupported
from microbench.dtypes import dtype, mpi_type
from microbench.engine import LoopError
from microbench.job import lowest_fault
from training.cast import Cast
from training.exchange.modes import DPU, GLOO, MPI, NCCL, Mode
from training.exchange.progress import Progress
from training.exchange.ways import Average, ByDpu, ByMpi, ByTorch, Exchange
from training.offloaded import tuned


@dataclass
class Ways:
    """The exchanges by mode; ``progress`` is the thread that completes those of MPI and of DPUs, None without them."""

    by_mode: Mapping[str, Exchange]
    progress: Progress | None = None
    closing: list[Any] = field(default_factory=list)

    @property
    def asked(self) -> int:
        """How many operations the DPUs were asked for."""
        return sum(way.asked for way in self.by_mode.values() if isinstance(way, ByDpu))

    def explain(self, error: Exception) -> Exception:
        """What a step raised, in the words of the exchange that failed where one did."""
        cause = error if self.progress is None or self.progress.error is None else self.progress.error
        if isinstance(cause, CannotRun):
            return cause
        text = str(cause).strip().partition("\n")[0]
        if cause is error and not isinstance(error, LoopError) and GLOO not in text.lower():
            return error
        return CannotRun(f"an exchange of gradients failed: {text}")


def lacking(cast: Cast) -> str:
    """Why an exchange cannot be here, the same on all hosts, or nothing. Collective over the hosts."""
    if cast.here is None:
        raise ValueError("DPUs exchange no gradients of their own")
    setup, said = cast.setup, ""
    for mode in setup.modes:
        if reason := why_not(mode.primitive, setup.device) if mode.primitive in (GLOO, NCCL) else "":
            said = f"{mode.name}: {reason}"
        try:
            if mode.primitive in (MPI, DPU):
                mpi_type(cast.here.engine.MPI, dtype(setup.dtype))
        except Unsupported as error:
            said = f"{mode.name}: {error}"
    return lowest_fault(cast.here.comm, said)


@contextmanager
def opened(cast: Cast, average: Average, deadline_s: float) -> Iterator[Ways]:
    """The exchanges of a case, on a host; ``average`` is torch's, ``deadline_s`` bounds each operation of the others.

    They are ended in order where nothing went wrong; after an error the job is of no further use.
    """
    ways = _made(cast, average, deadline_s)
    yield ways
    if ways.progress is not None:
        ways.progress.close()
    for each in ways.closing:
        each.close()


def _made(cast: Cast, average: Average, deadline_s: float) -> Ways:
    here, setup, kind = cast.here, cast.setup, dtype(cast.setup.dtype)
    if here is None:
        raise ValueError("DPUs exchange no gradients of their own")
    threaded = any(mode.primitive in (MPI, DPU) for mode in setup.modes)
    progress = Progress(cast.waiting, deadline_s) if threaded else None
    dpus = _dpus(cast, deadline_s)
    closing: list[Any] = [] if dpus is None else [dpus[0]]

    def way(mode: Mode) -> Exchange:
        if mode.primitive in (GLOO, NCCL) or progress is None:
            return ByTorch(average, mode.primitive)
        if mode.primitive == DPU and dpus is not None:
            return ByDpu(*dpus, kind, here.size, progress)
        made = ByMpi(here, mode, kind, progress, cast.looks)
        closing.append(made)
        return made

    return Ways({mode.name: way(mode) for mode in setup.modes}, progress, closing)


def _dpus(cast: Cast, deadline_s: float) -> tuple[Offload, Tuned] | None:
    """What DPUs are asked through, and how the size of its pieces was found; None in a case without them."""
    if cast.crew is None:
        return None
    found = tuned(cast)
    return Offload(cast.crew, cast.transport, chunk_bytes=found.chunk_bytes, deadline_s=deadline_s), found
