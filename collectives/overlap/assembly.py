"""The modes of a case, made by all ranks together, and why those are left out that cannot be."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from collectives.offload.channel import Channel, why_not
from collectives.offload.party import Crew
from collectives.offload.tune import choose_chunk
from collectives.overlap import threads
from collectives.overlap.cargo import Cargo, row_of
from collectives.overlap.modes import Hosted, Mode, Offloaded
from collectives.overlap.options import OFFLOAD_MODES, Options
from collectives.overlap.ranks import Ranks
from fabrics.errors import CannotRun
from microbench.case import Case
from microbench.dtypes import DType, dtype, elements
from microbench.job import Job

HOST, THREAD, GLOO = "host", "thread", "gloo"
_TUNING_SHARE = 0.1  # of the budget, for each offload mode


@dataclass
class Assembly:
    """The modes by name (``host`` is there in any case), those to compare, and what is left out and why.

    ``chunks`` is, by mode, what was tried to find the size of its pieces.
    """

    modes: dict[str, Mode] = field(default_factory=dict)
    compare: tuple[str, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)
    chunks: dict[str, Any] = field(default_factory=dict)

    @property
    def offloaded(self) -> dict[str, Offloaded]:
        """The modes that DPUs carry."""
        return {name: mode for name, mode in self.modes.items() if isinstance(mode, Offloaded)}

    def close(self) -> None:
        """Give back what the modes hold, the last first."""
        for mode in reversed(self.modes.values()):
            mode.close()


class Assembler:
    """Makes the modes of one case. Every method is collective."""

    def __init__(self, ranks: Ranks, case: Case, options: Options, operation: str) -> None:
        self.ranks, self.case, self.options, self.operation = ranks, case, options, operation
        here, numbers = ranks.here, range(options.outstanding)
        self.cargo = [] if here is None else [Cargo.of(here, case, operation, number) for number in numbers]
        self.made = Assembly({HOST: Hosted(HOST, ranks, self.cargo)})

    def assemble(self) -> Assembly:
        """Every mode that is asked for and can be."""
        for name in self.options.compare:
            if name == HOST:
                continue
            mode, reason = self._make(name)
            if mode is None:
                self.made.left_out[name] = reason
            else:
                self.made.modes[name] = mode
        self.made.compare = tuple(name for name in self.options.compare if name in self.made.modes)
        return self.made

    def _make(self, name: str) -> tuple[Mode | None, str]:
        if name == THREAD:
            return self._threaded()
        if name == GLOO:
            return self._gloo()
        if name in OFFLOAD_MODES and self.ranks.crew is not None:
            return self._offloaded(name, self.ranks.crew)
        return Hosted(name, self.ranks, self.cargo), ""

    def _threaded(self) -> tuple[Mode | None, str]:
        engine = self.ranks.job.engine
        if reason := common_fault(self.ranks.job, threads.why_not(engine)):
            return None, reason
        thread = threads.ProgressThread(engine) if self.ranks.here is not None else None
        return Hosted(THREAD, self.ranks, self.cargo, thread), ""

    def _gloo(self) -> tuple[Mode | None, str]:
        if self.ranks.job.fabric.kind == "shm":
            return None, "gloo has no shared-memory transport"
        if reason := common_fault(self.ranks.job, _why_no_torch()):
            return None, reason
        from collectives.overlap.gloo import form  # noqa: PLC0415 - it imports torch

        mode, fault = form(self.ranks, self.case, self.cargo)
        reason = common_fault(self.ranks.job, fault.removeprefix("gloo: "))
        return (None, reason) if reason else (mode, "")

    def _offloaded(self, name: str, crew: Crew) -> tuple[Mode | None, str]:
        if reason := why_not(crew, name):
            return None, reason
        try:
            chunk = self._chunk(name, crew)
            channels = [self._channel(name, crew, chunk) for _ in range(self.options.outstanding)]
        except CannotRun as error:  # by the plan of the pieces, which all ranks make alike
            return None, str(error)
        return Offloaded(name, crew, channels, self._carried(channels)), ""

    def _chunk(self, name: str, crew: Crew) -> int | None:
        """The size of pieces that was asked for, or the best of those tried; None for the whole."""
        if self.options.chunk is not None:
            return self.options.chunk
        kind, count = self._elements()
        budget_s, memory_bytes = _TUNING_SHARE * self.case.budget_s, self.options.dpu_memory
        tuned = choose_chunk(
            crew, self.operation, kind, count, name, memory_bytes=memory_bytes, budget_s=budget_s
        )  # fmt: skip
        self.made.chunks[name] = list(tuned.table)
        return tuned.chunk_bytes

    def _elements(self) -> tuple[DType, int]:
        kind = dtype(self.case.dtype or "float32")
        return kind, elements(self.case.nbytes or 0, kind)

    def _channel(self, name: str, crew: Crew, chunk: int | None) -> Channel:
        kind, count = self._elements()
        return Channel(
            crew, self.operation, kind, count, name, chunk_bytes=chunk, memory_bytes=self.options.dpu_memory
        )  # fmt: skip

    def _carried(self, channels: Sequence[Channel]) -> list[Cargo]:
        """The channels' buffers as operands of their own, filled."""
        found = []
        for like, channel in zip(self.cargo, channels, strict=False):  # no operands on DPUs
            found.append(like.on(channel.send, channel.receive))
            found[-1].fill()
        return found


def _why_no_torch() -> str:
    return "" if importlib.util.find_spec("torch") else "torch is not installed"


def common_fault(job: Job, fault: str) -> str:
    """What keeps any rank from something, the same on all: of one rank alone with its number. Collective."""
    told: list[str] = job.comm.allgather(fault)
    if told.count(told[0]) == len(told):
        return told[0]
    rank, text = next((rank, text) for rank, text in enumerate(told) if text)
    return text if text.startswith("rank ") else f"rank {rank}: {text}"


def bytes_held(case: Case, options: Options, hosts: int, operation: str) -> int:
    """The largest buffers of a rank together, as if they were one: of every operation under way, and each offload."""
    largest = row_of(operation).largest_buffer(hosts) * (case.nbytes or 0)
    return largest * options.outstanding * (1 + len(options.offloads))
