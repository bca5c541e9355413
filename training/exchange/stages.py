"""A schedule's calls in stages that never block, so that a thread can carry several out and keep their deadlines.

:func:`collectives.native.lower` gives calls that wait as MPI programs do. Here each stage starts what it sends and
receives; whoever carries it out tests the stage's requests, and begins the next when all of them are done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from microbench.engine import CallSpec, Engine, Program, requests, statuses

_LARGE = "_c"


@dataclass(frozen=True)
class Stage:
    """Calls that start something, and the requests that stand for it, one a row; none where nothing is awaited."""

    start: tuple[CallSpec, ...]
    slots: tuple[NDArray[Any], ...]


def staged(calls: Sequence[CallSpec], engine: Engine, tag: int) -> Iterator[Stage]:
    """The stages of a schedule's ``calls``, in order; all its messages have ``tag``.

    Schedules that are under way at once need tags of their own: ranks come to their later stages in any order.
    """
    start: list[CallSpec] = []
    for call in calls:
        begun, slots = _without_waiting(call, engine, tag)
        start += begun
        if slots:
            yield Stage(tuple(start), slots)
            start = []
    if start:
        yield Stage(tuple(start), ())


def _without_waiting(call: CallSpec, engine: Engine, tag: int) -> tuple[list[CallSpec], tuple[NDArray[Any], ...]]:
    """What starts a call, and the requests to await before the next one."""
    name = str(call[0]).removesuffix(_LARGE)
    large = str(call[0])[len(name) :]
    receive, send = f"MPI_Irecv{large}", f"MPI_Isend{large}"
    if name == "MPI_Waitall":
        return [], tuple(call[2])
    if name in ("MPI_Irecv", "MPI_Isend"):
        return [(*call[:5], tag, *call[6:])], ()
    if name == "MPI_Sendrecv":
        comm, (into, out) = call[11], requests(2, engine.MPI)
        return [(receive, *call[6:10], tag, comm, into), (send, *call[1:5], tag, comm, out)], (into, out)
    if name in ("MPI_Recv", "MPI_Send"):
        (slot,) = requests(1, engine.MPI)
        return [(receive if name == "MPI_Recv" else send, *call[1:5], tag, call[6], slot)], (slot,)
    return [call], ()


class Looker:
    """Looks at requests of a stage: ``looks`` times in a row, natively."""

    def __init__(self, engine: Engine, slots: Sequence[NDArray[Any]], looks: int) -> None:
        self._slots, self._null = slots, requests(1, engine.MPI)[0].tobytes()
        status = statuses(1)
        probes = [("probe", slot, status) for slot in slots] * looks
        self._program = engine.program(*probes) if probes else None

    def ended(self) -> bool:
        """Whether all requests have ended; LoopError where MPI says that one failed."""
        if self._program is not None:
            self._program.run(1)
        return all(slot.tobytes() == self._null for slot in self._slots)


class Course:
    """All stages of one bucket's exchange on one rank, to be carried out any number of times."""

    def __init__(self, engine: Engine, stages: Sequence[Stage], looks: int) -> None:
        self._stages: list[tuple[Program, Looker]] = [
            (engine.program(*stage.start), Looker(engine, stage.slots, looks)) for stage in stages
        ]
        self._at = 0

    def begin(self) -> None:
        """Start the first stage."""
        self._at = 0
        if self._stages:
            self._stages[0][0].run(1)

    def ended(self) -> bool:
        """Look; begin what can begin."""
        while self._at < len(self._stages) and self._stages[self._at][1].ended():
            self._at += 1
            if self._at < len(self._stages):
                self._stages[self._at][0].run(1)
        return self._at == len(self._stages)
