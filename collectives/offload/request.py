"""The hosts' side of offloaded requests: start, test and wait, as a training step needs them.

Every host has an :class:`Offload` while the DPUs' workers are in :func:`collectives.offload.service.serve`, and all
hosts start the same operations in the same order. A channel is made when a size first comes, and kept.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectives.offload.channel import Channel
from collectives.offload.party import Crew
from collectives.offload.service import MAKE, RUN, STOP, TAGS, WORDS, Order
from collectives.offload.waiting import CAP_MS
from fabrics.errors import CannotRun, UserError
from microbench.dtypes import DTYPES, DType
from microbench.engine import LoopError, Program

DEADLINE_S = 60.0
_WHO_IS_LATE = "it is held up, or another host has not started this"  # a DPU waits for all hosts, and tells nobody
_TESTS = 4  # between two sleeps, as in test_until


@dataclass
class _Line:
    """A channel, its programs, and the request that is under way on it."""

    channel: Channel
    begin: Program
    handed: Program
    probe: Program
    wait: Program
    flag: NDArray[np.int32]
    number: int
    request: Request | None = None


class Offload:
    """A host's client of the DPUs; made by all hosts while all workers serve.

    ``deadline_s`` bounds every wait for a DPU. Operations on one ``slot``, type and size wait for each other: arrays of
    one size that shall be under way together are given slots of their own. After an error it is of no further use.
    """

    def __init__(
        self,
        crew: Crew,
        transport: str = "staged",
        *,
        chunk_bytes: int | None = None,
        memory_bytes: int | None = None,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self.crew, self.deadline_s = crew, deadline_s
        self._made = Order(MAKE, transport=transport, chunk_bytes=chunk_bytes, memory_bytes=memory_bytes)
        self._tag = crew.tags(TAGS)
        self._lines: dict[tuple[str, int, int], _Line] = {}
        self._orders: list[tuple[Any, NDArray[np.int64]]] = []
        self._pause = Pause(crew)

    def allreduce(
        self, array: NDArray[Any], out: NDArray[Any] | None = None, *, kind: DType | None = None, slot: int = 0
    ) -> Request:
        """Start the sum of ``array`` over all hosts; it may change once this returns.

        The sum goes to ``out``, which may be ``array``, when the request has ended: of the same shape and type, in any
        memory layout; a new array in C order where none is given. ``kind`` is only needed for bfloat16, which numpy
        has not. Raises UserError for arrays that do not fit, CannotRun where a DPU does not take the data in time.
        """
        kind = fitting(array, out, kind)
        line = self._line(kind, array.size, slot)
        if line.request is not None:
            line.request.wait()
        line.channel.send.view(kind.numpy)[:] = array.reshape(-1)
        self._order(Order(RUN, line.number))
        line.request = Request(self, line, np.empty(array.shape, array.dtype) if out is None else out, kind)
        self._run(line.begin)
        self._until(lambda: self._gone(line), line, "take")
        return line.request

    def _gone(self, line: _Line) -> list[bool]:
        """Whether the data is handed over; not told by lanes."""
        self._run(line.handed)
        return [bool(line.flag[0])] * len(line.channel.plan.used)

    def close(self) -> None:
        """Wait for what is under way, and stop the DPUs. All hosts together."""
        for line in self._lines.values():
            if line.request is not None:
                line.request.wait()
        self._say(Order(STOP), "stop")
        for line in self._lines.values():
            line.channel.close()
        self._lines = {}

    def _line(self, kind: DType, count: int, slot: int) -> _Line:
        key = (kind.name, count, slot)
        if key not in self._lines:
            made, engine = self._made, self.crew.job.engine
            order = Order(MAKE, 0, kind.name, count, made.transport, made.chunk_bytes, made.memory_bytes)
            self._say(order, "begin")
            channel, flag = order.channel(self.crew), np.zeros(1, "i4")
            begin, handed, probe, wait = (
                engine.program(*calls)
                for calls in (channel.begin(), channel.handed(flag), channel.probe(), channel.wait())
            )
            self._lines[key] = _Line(channel, begin, handed, probe, wait, flag, len(self._lines))
        return self._lines[key]

    def _order(self, order: Order) -> None:
        """Send an order to every worker of the DPU."""
        words = order.words()
        self._orders = [(sent, kept) for sent, kept in self._orders if not sent.Test()]
        self._orders += [(self.crew.comm.Isend(words, rank, self._tag), words) for rank in self.crew.partners]

    def _say(self, order: Order, what: str) -> None:
        """An order that is answered, and the answers."""
        answers = [np.zeros(WORDS, "i8") for _ in self.crew.partners]
        ends = zip(answers, self.crew.partners, strict=True)
        awaited = [self.crew.comm.Irecv(answer, rank, self._tag + 1) for answer, rank in ends]
        self._order(order)
        here = [False] * len(awaited)

        def look() -> list[bool]:
            here[:] = [known or bool(one.Test()) for known, one in zip(here, awaited, strict=True)]
            return here

        self._pause.until(look, self.deadline_s, self.crew.partners, f"{what} serving")

    def _until(self, look: Callable[[], list[bool]], line: _Line, what: str, deadline_s: float | None = None) -> None:
        lanes, task = line.channel.plan.used, line.channel.task
        ranks = [self.crew.partners[lane] for lane in lanes]
        told = f"{what} an {task.operation} of {task.count} elements"
        deadline_s = self.deadline_s if deadline_s is None else deadline_s
        self._pause.until(look, deadline_s, ranks, told, line.channel.answers)

    def _run(self, program: Program) -> None:
        try:
            program.run(1)
        except LoopError as error:
            names = ", ".join(self.crew.name(rank) for rank in self.crew.partners)
            raise CannotRun(f"the offload to {names} failed: {error}") from None

    def _ended(self, line: _Line) -> list[bool]:
        self._run(line.probe)
        return line.channel.finished()


@dataclass(eq=False)
class Request:
    """One operation under way; ``out`` has the result once it has ended."""

    offload: Offload
    line: _Line = field(repr=False)
    out: NDArray[Any]
    kind: DType

    @property
    def ended(self) -> bool:
        """Whether ``out`` has the result."""
        return self.line.request is not self

    @property
    def answers(self) -> list[int]:
        """Pipes that become readable when it is done, and when a DPU has ended; none but through a window."""
        return [] if self.ended else self.line.channel.answers

    def test(self) -> bool:
        """Look once; where the DPU is done, the result is fetched."""
        if not self.ended and all(self.offload._ended(self.line)):
            self._fetch()
        return self.ended

    def wait(self, deadline_s: float | None = None) -> NDArray[Any]:
        """The result, once it is there; CannotRun names the DPU that has not answered in time."""
        if not self.ended:
            self.offload._until(lambda: self.offload._ended(self.line), self.line, "finish", deadline_s)
            self._fetch()
        return self.out

    def _fetch(self) -> None:
        self.offload._run(self.line.wait)
        found = self.line.channel.receive.view(self.kind.numpy)
        self.out[...] = found.reshape(self.out.shape)  # which of a transposed array, unlike its reshape(-1), is no copy
        self.line.request = None


class Pause:
    """Waiting with a deadline, by the crew's strategy: a few looks, then sleep until something comes."""

    def __init__(self, crew: Crew) -> None:
        self.crew = crew
        self._polled = [int(fd) for fd in crew.waiting.descriptors["fd"]]

    def until(
        self,
        look: Callable[[], Sequence[bool]],
        deadline_s: float,
        ranks: Sequence[int],
        what: str,
        pipes: Sequence[int] = (),
    ) -> None:
        """Until ``look`` says yes for each of ``ranks``; CannotRun names those that did not ``what`` in time.

        ``pipes`` of the same ranks wake it too, and tell when a rank has ended.
        """
        due = time.monotonic() + deadline_s
        while True:
            for _ in range(_TESTS):
                found = look()
                if all(found):
                    return
            late = [rank for rank, known in zip(ranks, found, strict=True) if not known]
            names = ", ".join(map(self.crew.name, late))
            if self._sleep([pipe for pipe, known in zip(pipes, found, strict=False) if not known]):
                raise CannotRun(f"{names} has ended: it did not {what}")
            if time.monotonic() > due:
                raise CannotRun(f"{names} did not {what} within {deadline_s:g} s: {_WHO_IS_LATE}")

    def _sleep(self, pipes: Sequence[int]) -> bool:
        """Sleep until something comes, at most the cap; whether nobody can write to one of the pipes any more."""
        poll = select.poll()
        for descriptor in (*self._polled, *pipes):
            poll.register(descriptor, select.POLLIN)
        closed = select.POLLHUP | select.POLLERR
        found = poll.poll(CAP_MS if self._polled else 0)
        return any(fd in pipes and events & closed and not events & select.POLLIN for fd, events in found)


def fitting(array: NDArray[Any], out: NDArray[Any] | None = None, kind: DType | None = None) -> DType:
    """The type of what is summed; UserError, before anything is sent, for arrays that do not fit it or each other."""
    found = kind or _kind_of(array)
    if array.dtype != found.numpy:
        raise UserError(f"array is of {array.dtype}: {found.name} is held in {np.dtype(found.numpy)}")
    wanted = f"{array.dtype} of shape {array.shape}, as array is, and writeable"
    if out is None or (out.dtype == array.dtype and out.shape == array.shape and out.flags.writeable):
        return found
    told = f"{out.dtype} of shape {out.shape}{'' if out.flags.writeable else ', read-only'}"
    raise UserError(f"out is {told}: it has to be {wanted}")


def _kind_of(array: NDArray[Any]) -> DType:
    """The type of an array's elements."""
    for kind in DTYPES.values():
        if kind.code and array.dtype == kind.numpy:
            return kind
    names = ", ".join(name for name, kind in DTYPES.items() if kind.code)
    raise UserError(f"an array of {array.dtype} cannot be reduced: one of {names}")
