"""The window transport: a DPU's workers map the host's own buffers, which both see at once.

It is a model of hardware that lets a DPU reach host memory (GVMI, XPMEM), and works only where both run under one
kernel. A bell, a pipe from each host to each worker and one back, tells that there is work, and that it is done; a
word of the window tells the latter to whoever looks.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectives.offload.derived import Derived
from collectives.offload.exchange import Exchange, Places
from collectives.offload.party import Calls, Crew
from collectives.offload.pieces import Block, Plan, Task, pipeline
from collectives.offload.waiting import CAP_MS
from fabrics.errors import CannotRun
from microbench.engine import CallSpec, requests
from microbench.job import lowest_fault

_TOKEN_WORDS, _LINE_WORDS = 4, 8  # a done word has a cache line for itself, after that of the token
_WORD_BYTES = 8
_SILENT_TAG = 32001  # no message of the engine has it
_MEMORY_NAME = "fabricbench-window"
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


@dataclass(frozen=True)
class Offer:
    """What a host tells its DPU's workers: where its memory and bells are found, and how they are known.

    ``bells`` and ``answers`` are, by worker, an end of a pipe and its inode; ``token`` is what the memory begins with.
    """

    pid: int
    memory: int
    sizes: tuple[int, int]
    token: bytes
    bells: tuple[tuple[int, int], ...]
    answers: tuple[tuple[int, int], ...]


def _pages(nbytes: int) -> int:
    return -(-max(nbytes, 1) // mmap.PAGESIZE) * mmap.PAGESIZE


class View:
    """The memory as one process sees it: the token, each worker's done word, and the two buffers."""

    def __init__(self, area: mmap.mmap, sizes: tuple[int, int], workers: int) -> None:
        self._area = area
        whole = np.frombuffer(area, "u1")
        first = _pages((1 + workers) * _LINE_WORDS * _WORD_BYTES)
        second = first + _pages(sizes[0])
        self.token = whole[: _TOKEN_WORDS * _WORD_BYTES]
        self.send: NDArray[np.uint8] = whole[first : first + sizes[0]]
        self.receive: NDArray[np.uint8] = whole[second : second + sizes[1]]
        words = whole[: (1 + workers) * _LINE_WORDS * _WORD_BYTES].view("i8")
        self.done: NDArray[np.int64] = words[_LINE_WORDS::_LINE_WORDS]

    @staticmethod
    def room(sizes: tuple[int, int], workers: int) -> int:
        """How many bytes the memory has."""
        return _pages((1 + workers) * _LINE_WORDS * _WORD_BYTES) + sum(map(_pages, sizes))


class Window:
    """One rank's end of the windows between hosts and their DPUs. Raises CannotRun on all ranks alike.

    ``views`` are its own on a host, and one of every host served on a worker; ``bells`` and ``answers`` the pipes,
    to or from its partners in their order. Collective.
    """

    def __init__(self, crew: Crew, plan: Plan | None, sizes: tuple[int, int]) -> None:
        self.crew, self.used = crew, plan.used if plan else tuple(range(crew.layout.workers))
        self.views: list[View] = []
        self.bells: list[int] = []
        self.answers: list[int] = []
        self._given: list[int] = []
        offers: list[Offer | str] = crew.comm.allgather("" if crew.is_dpu else self._offered(sizes))
        fault = lowest_fault(crew.comm, self._accept(offers) if crew.is_dpu else "")
        self._give_away()
        if fault:
            self.close()
            raise CannotRun(f"host and DPU do not share a kernel: {fault}")

    @property
    def send(self) -> NDArray[np.uint8]:
        """A host's send buffer; empty on a worker."""
        return np.zeros(0, "u1") if self.crew.is_dpu else self.views[0].send

    @property
    def receive(self) -> NDArray[np.uint8]:
        """A host's receive buffer; empty on a worker."""
        return np.zeros(0, "u1") if self.crew.is_dpu else self.views[0].receive

    def _offered(self, sizes: tuple[int, int]) -> Offer | str:
        """The offer, or why there is none."""
        try:
            return self._offer(sizes)
        except OSError as error:
            return str(error)

    def _offer(self, sizes: tuple[int, int]) -> Offer:
        """Make the memory, and two pipes for every worker."""
        workers, token = self.crew.layout.workers, secrets.token_bytes(_TOKEN_WORDS * _WORD_BYTES)
        memory = os.memfd_create(_MEMORY_NAME, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(memory, View.room(sizes, workers))
        fcntl.fcntl(memory, fcntl.F_ADD_SEALS, _SEALS)  # so that no process can be left with less than it mapped
        view = View(mmap.mmap(memory, 0, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE), sizes, workers)
        view.token[:] = np.frombuffer(token, "u1")
        self.views.append(view)
        self._given.append(memory)
        pairs = [(os.pipe(), os.pipe()) for _ in range(workers)]
        for (heard, rung), (answer, answered) in pairs:
            self.bells.append(rung)
            self.answers.append(answer)
            self._given += [heard, answered]
        bells = tuple((heard, os.fstat(heard).st_ino) for (heard, _), _ in pairs)
        answers = tuple((answered, os.fstat(answered).st_ino) for _, (_, answered) in pairs)
        return Offer(os.getpid(), memory, sizes, token, bells, answers)

    def _accept(self, offers: list[Offer | str]) -> str:
        """Open what the hosts that this worker serves have offered; what is wrong, or nothing."""
        for rank in self.crew.partners:
            offer = offers[rank]
            if isinstance(offer, str):
                return f"{self.crew.name(rank)} can make no window ({offer})"
            try:
                self._open(offer)
            except (OSError, ValueError) as error:
                return f"the memory of {self.crew.name(rank)} is not found here ({error})"
        return ""

    def _open(self, offer: Offer) -> None:
        worker, workers = self.crew.worker, self.crew.layout.workers
        memory = _found(offer.pid, offer.memory, f"/memfd:{_MEMORY_NAME}", os.O_RDWR)
        try:
            area = mmap.mmap(memory, 0, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)
        finally:
            os.close(memory)
        if len(area) != View.room(offer.sizes, workers):
            raise ValueError("it is of another size")
        view = View(area, offer.sizes, workers)
        if view.token.tobytes() != offer.token:
            raise ValueError("another process has its number")
        self.views.append(view)
        for ends, pipes, flags in (
            (self.bells, offer.bells, os.O_RDONLY | os.O_NONBLOCK),
            (self.answers, offer.answers, os.O_WRONLY),
        ):
            number, inode = pipes[worker]
            ends.append(_found(offer.pid, number, f"pipe:[{inode}]", flags))

    def _give_away(self) -> None:
        """Keep no end that is a partner's: a pipe whose other end is gone then says so."""
        while self._given:
            os.close(self._given.pop())

    def waits(self, pipes: list[int], gentle: bool) -> Calls:
        """The calls that wait until each of these bells has been rung, and let MPI make progress meanwhile."""
        engine, comm = self.crew.job.engine, self.crew.comm
        polled = self.crew.waiting.descriptors if gentle else self.crew.waiting.descriptors[:0]
        cap_ms = CAP_MS if polled.size else 0
        calls: Calls = []
        for pipe in pipes:
            rows = np.concatenate([np.array([(pipe, 1, 0)], polled.dtype), polled])
            progress = (engine.function("MPI_Iprobe"), engine.MPI.ANY_SOURCE, _SILENT_TAG, comm)
            calls.append(("hear", *progress, rows, rows.size, cap_ms))
        return calls

    def close(self) -> None:
        """Close the pipes; the memory goes with the last array that is in it."""
        self._give_away()
        for pipes in (self.bells, self.answers):
            while pipes:
                os.close(pipes.pop())
        self.views = []


def _found(pid: int, number: int, name: str, flags: int) -> int:
    """A descriptor of another process, opened here; ValueError where it is not what its name says."""
    path = Path(f"/proc/{pid}/fd/{number}")
    if not str(path.readlink()).startswith(name):
        raise ValueError(f"descriptor {number} of process {pid} is {path.readlink()}")
    return os.open(path, flags | os.O_CLOEXEC)


class WindowHost:
    """A host's side."""

    def __init__(self, plan: Plan, window: Window) -> None:
        self._window = window
        self._posted, self.handed = np.zeros(1, "i8"), requests(0, window.crew.job.engine.MPI)
        self._bells = [window.bells[lane] for lane in plan.used]
        self.answers = [window.answers[lane] for lane in plan.used]
        self._done = [window.views[0].done[lane : lane + 1] for lane in plan.used]

    def begin(self) -> Calls:
        """Ring for every worker."""
        count: CallSpec = ("stream", self._posted, 1, 1)
        return [count, *(("ring", bell) for bell in self._bells)]

    def probe(self) -> Calls:
        """Look at every worker's word."""
        return [("look", word) for word in self._done]

    def wait(self, gentle: bool) -> Calls:
        """Until every worker has answered."""
        return self._window.waits(self.answers, gentle)

    def finished(self) -> list[bool]:
        """Of every lane in use whether its word says that all that was posted is done."""
        return [int(word[0]) >= int(self._posted[0]) for word in self._done]

    def close(self) -> None:
        """Nothing is left to give back."""
        self._done = []


class WindowDpu:
    """A worker's side: its collectives work on the hosts' memory itself."""

    def __init__(self, crew: Crew, task: Task, plan: Plan, derived: Derived, window: Window) -> None:
        self.crew, self._task, self._window, self._each = crew, task, window, derived.each
        self._pieces = plan.lanes[crew.worker]
        self._exchange = Exchange(crew, task, derived)
        self._running = requests(max(1, len(self._pieces)), crew.job.engine.MPI)

    def serve(self) -> Calls:
        """Wait for the hosts' bells, do all pieces, two under way at a time, and answer."""
        if not self._pieces:
            return []
        calls = self._window.waits(self._window.bells, gentle=True)
        for step, index in pipeline(len(self._pieces), len(self._pieces)):
            places, request = self._places(index), self._running[index : index + 1]
            if step == "take":
                calls += self._exchange.begin(places, request)
            elif step == "give":
                calls += [*self.crew.waits(request, gentle=True), *self._exchange.end(places)]
        return [*calls, *self._answers()]

    def _answers(self) -> Iterator[CallSpec]:
        for view, pipe in zip(self._window.views, self._window.answers, strict=True):
            yield ("stream", view.done[self.crew.worker : self.crew.worker + 1], 1, 1)
            yield ("ring", pipe)

    def _places(self, index: int) -> Places:
        piece, hosts = self._pieces[index], list(zip(self.crew.served, self._window.views, strict=True))
        inputs = tuple(self._at(view.send, self._task.sends(host, piece)) for host, view in hosts)
        outputs = tuple(self._at(view.receive, self._task.receives(host, piece)) for host, view in hosts)
        return Places(piece[1], inputs, outputs)

    def _at(self, buffer: Any, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        return tuple((int(buffer.ctypes.data) + start * self._each, length) for start, length in blocks)

    def close(self) -> None:
        """Nothing is left to give back."""


def trial(crew: Crew) -> str:
    """Why windows cannot be made here, or nothing; the same on all ranks. Collective."""
    try:
        Window(crew, None, (_WORD_BYTES, _WORD_BYTES)).close()
    except CannotRun as error:
        return str(error)
    return ""
