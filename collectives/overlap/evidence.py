"""Did the DPUs do it? Their own tally, and the byte counters of their devices, by mode.

A result that is right proves nothing: a library that falls back to the host gives it as well. An offload counts as
used where every worker's tally is what was asked for, and where the DPUs' devices sent at least what the operation
takes among DPUs. An allreduce of n bytes takes 2 (d-1) n among d DPUs, however it is done; in a broadcast n bytes
reach each of the d-1 others, in an allgather those of each of the h hosts; in an all-to-all each host sends to the
hosts of other DPUs what is for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectives.offload.layout import Layout
from collectives.operands import shares
from fabrics import counters
from microbench.job import Job


def least_bytes(operation: str, count: int, element_bytes: int, layout: Layout) -> int:
    """Bytes that DPUs at least send each other in one operation on ``count`` elements of a host's send buffer."""
    others, hosts = len(layout.dpus) - 1, len(layout.hosts)
    if operation == "alltoall":
        elements = 0
        for served in layout.served:
            for host in served:
                blocks = shares(count, hosts, host)
                elements += int(blocks.sum()) - int(blocks[list(served)].sum())
        return elements * element_bytes
    each = {"allreduce": 2, "broadcast": 1, "allgather": hosts}[operation]
    return each * others * count * element_bytes


@dataclass
class Meter:
    """What a DPU's devices sent in each mode's blocks; reads nothing on other ranks.

    Of the ranks of one machine the first reads, since they share its counters.
    """

    job: Job
    reads: bool
    sent: dict[str, int] = field(default_factory=dict)
    _before: dict[str, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, job: Job, dpus: Sequence[int]) -> Meter:
        """The meter of this rank."""
        mine = job.hosts[job.rank]
        first = next((rank for rank in dpus if job.hosts[rank] == mine), -1)
        return cls(job, first == job.rank and bool(job.fabric.devices.get(mine)))

    def begin(self) -> None:
        """Before a block."""
        if self.reads:
            self._before = counters.read()

    def end(self, mode: str) -> None:
        """After it."""
        if not self.reads:
            return
        rises = counters.delta(self._before, counters.read())
        devices = self.job.fabric.devices.get(self.job.hosts[self.job.rank], ())
        self.sent[mode] = self.sent.get(mode, 0) + sum(rises.get(device, (0, 0))[1] for device in devices)


@dataclass(frozen=True)
class Seen:
    """What is known of one mode: operations asked for, each DPU worker's tally, and bytes sent (None: not counted)."""

    asked: int
    done: tuple[int, ...]
    least_bytes: int
    sent_bytes: int | None

    @property
    def why_unused(self) -> str:
        """What says that the DPUs did not do it, or nothing."""
        if any(done != self.asked for done in self.done):
            return f"{self.asked} operations were asked for, the DPUs did {', '.join(map(str, self.done))}"
        if self.sent_bytes is not None and self.sent_bytes < self.least_bytes:
            return (
                f"{self.asked} operations take {self.least_bytes} B among the DPUs, whose devices sent"
                f" {self.sent_bytes} B"
            )
        return ""

    def as_dict(self) -> dict[str, Any]:
        """What a record keeps."""
        kept: dict[str, Any] = {"asked": self.asked, "done": list(self.done)}
        if self.sent_bytes is not None:
            kept |= {"dpus_sent_bytes": self.sent_bytes, "least_bytes": self.least_bytes}
        return kept | ({"why_unused": self.why_unused} if self.why_unused else {})


def seen(
    modes: Sequence[str], asked: Mapping[str, int], least: int, rows: NDArray[np.float64], dpus: Sequence[int]
) -> dict[str, Seen]:
    """By mode, from every rank's row: a tally and bytes sent, -1 where none were counted, for each mode in turn."""
    found = {}
    for place, mode in enumerate(modes):
        tallies, sent = rows[list(dpus), 2 * place], rows[list(dpus), 2 * place + 1]
        counted = sent[sent >= 0]
        total = int(counted.sum()) if counted.size else None
        found[mode] = Seen(asked[mode], tuple(int(done) for done in tallies), least * asked[mode], total)
    return found
