"""The ways to have a collective under way while a host computes, each as the calls of its parts on one rank.

*Host* modes post MPI's own non-blocking call; what differs is who makes it progress: nobody, a number of probes
(MPI_Test) in the compute, or a progress thread. *Offload* modes hand it to DPUs by a channel of the offload engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from collectives.overlap.cargo import Cargo
from collectives.overlap.options import PROBES
from collectives.overlap.ranks import Calls, Ranks
from microbench.engine import requests, statuses

if TYPE_CHECKING:
    from collectives.offload.channel import Channel
    from collectives.offload.party import Crew
    from collectives.overlap.threads import ProgressThread


class Mode(Protocol):
    """One way, with all operations that are under way at once; on a rank that is no host only ``serve`` counts."""

    name: str
    cargo: Sequence[Cargo]

    def begin(self) -> None:
        """What is done before each block of its steps."""

    def end(self) -> None:
        """What is done after it, when all ranks are through."""

    def poison(self) -> None:
        """Spoil what an iteration writes; on every rank."""

    def start(self) -> Calls:
        """What precedes an iteration: input is written anew where a result replaced it, and the hosts meet."""

    def post(self) -> Calls:
        """Start every operation."""

    def probe(self) -> Calls:
        """Look once at every operation."""

    def wait(self) -> Calls:
        """Until every operation is done."""

    def serve(self) -> Calls:
        """A DPU's part of an iteration; nothing where hosts do it themselves."""

    def method(self) -> dict[str, Any]:
        """What a record says of it."""

    def close(self) -> None:
        """Give back what it holds."""


class Hosted:
    """MPI's own non-blocking call, made to progress as ``name`` says."""

    def __init__(self, name: str, ranks: Ranks, cargo: Sequence[Cargo], thread: ProgressThread | None = None) -> None:
        self.name, self.cargo, self._ranks, self._thread = name, cargo, ranks, thread
        self._slots, self._status = requests(len(cargo), ranks.job.engine.MPI), statuses(1)

    def begin(self) -> None:
        """Start the progress thread, where there is one."""
        if self._thread is not None and self.cargo:
            self._thread.start()

    def end(self) -> None:
        """Stop it."""
        if self._thread is not None and self.cargo:
            self._thread.stop()

    def poison(self) -> None:
        """Spoil the results."""
        for one in self.cargo:
            one.poison()

    def start(self) -> Calls:
        """The hosts meet as MPI programs do."""
        return [("MPI_Barrier", self._ranks.comm)]

    def post(self) -> Calls:
        """The library's call for each operation."""
        return [(*one.row.call(one.o), slot) for one, slot in zip(self.cargo, self._slots, strict=True)]

    def probe(self) -> Calls:
        """MPI_Test of each."""
        return [("probe", slot, self._status) for slot in self._slots]

    def wait(self) -> Calls:
        """MPI_Wait for each."""
        return [("MPI_Wait", slot, self._status) for slot in self._slots]

    def serve(self) -> Calls:
        """Nothing."""
        return []

    def method(self) -> dict[str, Any]:
        """How it progresses."""
        if self._thread is not None:
            return {"progress": self._thread.method()}
        call = str(self.cargo[0].row.call(self.cargo[0].o)[0]) if self.cargo else ""
        return {"call": call, "probes": PROBES[self.name]}

    def close(self) -> None:
        """Nothing is held."""


class Offloaded:
    """Channels to the DPUs, one for each operation."""

    def __init__(self, name: str, crew: Crew, channels: Sequence[Channel], cargo: Sequence[Cargo]) -> None:
        self.name, self.cargo, self.channels, self._crew = name, cargo, channels, crew

    def begin(self) -> None:
        """Nothing: DPUs serve by their own programs."""

    def end(self) -> None:
        """Nothing."""

    def poison(self) -> None:
        """Spoil the results, and what DPUs stage."""
        for channel in self.channels:
            channel.poison()

    def start(self) -> Calls:
        """The hosts meet, each leaving its core to the DPUs where it has to."""
        return self._crew.meet()

    def post(self) -> Calls:
        """Hand over every operation."""
        return [call for channel in self.channels for call in channel.post()]

    def probe(self) -> Calls:
        """Look at every operation."""
        return [call for channel in self.channels for call in channel.probe()]

    def wait(self) -> Calls:
        """Until every result is here."""
        return [call for channel in self.channels for call in channel.wait(gentle=not self._crew.is_busy)]

    def serve(self) -> Calls:
        """All of every operation."""
        return [call for channel in self.channels for call in channel.serve()]

    def tally(self) -> int:
        """Operations that this DPU worker finished, by its own count; 0 on a host."""
        return sum(int(channel.tally.sum()) for channel in self.channels)

    def method(self) -> dict[str, Any]:
        """What the engine says of the way that data takes."""
        return self.channels[0].method()

    def close(self) -> None:
        """Give the channels back, the last first."""
        for channel in reversed(self.channels):
            channel.close()
