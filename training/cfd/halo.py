"""The halos of a block between MPI ranks: persistent requests on packed faces, run natively."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from microbench.engine import CallSpec, requests, statuses, word
from training.cfd.blocks import GHOSTS, Block
from training.cfd.gas import Field, N

if TYPE_CHECKING:
    from microbench.engine import Engine

_G = GHOSTS
_UP, _DOWN = 41, 42  # tags: two neighbours may be one rank, and a message up is none down

Where = tuple[slice, ...]


@dataclass(frozen=True)
class Face:
    """One side of a block: the neighbour there, what of the block it needs, and where its own cells go."""

    peer: int
    sent: Where
    ghosts: Where
    shape: tuple[int, ...]
    send_tag: int
    receive_tag: int


def faces(block: Block) -> Iterator[Face]:
    """Those sides of a block that have a neighbour."""
    for axis in (0, 1):
        below, above, n = block.below[axis], block.above[axis], block.cells[axis]
        if below is None or above is None:
            continue
        lowest, low, high, highest = (slice(at, at + _G) for at in (0, _G, n, n + _G))
        shape = (N, *(_G if i == axis else cells for i, cells in enumerate(block.cells)))
        yield Face(below, _along(axis, low), _along(axis, lowest), shape, _DOWN, _UP)
        yield Face(above, _along(axis, high), _along(axis, highest), shape, _UP, _DOWN)


def _along(axis: int, cells: slice) -> Where:
    """Some layers along an axis, without ghosts along the others."""
    own = slice(_G, -_G)
    return (slice(None), *(cells if i == axis else own for i in range(3)))


class Halo:
    """An exchange with the neighbours of ``block`` in ``comm``; persistent until :meth:`close`.

    Every method raises LoopError where MPI fails.
    """

    def __init__(self, engine: Engine, comm: Any, block: Block) -> None:
        self._faces = tuple(faces(block))
        self._out = [np.zeros(face.shape) for face in self._faces]
        self._in = [np.zeros(face.shape) for face in self._faces]
        count = 2 * len(self._faces)
        self._requests, self._flag = requests(count, engine.MPI), np.zeros(1, "i4")
        status = statuses(count)
        engine.program(*self._inits(comm, word(engine.MPI.DOUBLE))).run(1)
        self._start = engine.program(("MPI_Startall", count, self._requests))
        self._probe = engine.program(("MPI_Testall", count, self._requests, self._flag, status))
        self._wait = engine.program(("MPI_Waitall", count, self._requests, status))
        self._free = engine.program(*(("MPI_Request_free", slot) for slot in self._requests))

    @property
    def sent_bytes(self) -> int:
        """What one exchange sends."""
        return sum(buffer.nbytes for buffer in self._out)

    def start(self, state: Field) -> None:
        """Pack what neighbours need of ``state``, and begin to send and to receive."""
        for face, buffer in zip(self._faces, self._out, strict=True):
            np.copyto(buffer, state[face.sent])
        self._start.run(1)

    def probe(self) -> None:
        """Test all requests once, which lets them progress."""
        self._probe.run(1)

    def finish(self, state: Field) -> None:
        """Wait for all, and put the neighbours' cells into the ghosts of ``state``."""
        self._wait.run(1)
        for face, buffer in zip(self._faces, self._in, strict=True):
            np.copyto(state[face.ghosts], buffer)

    def close(self) -> None:
        """Free the requests; the object is of no use then."""
        self._free.run(1)

    def _inits(self, comm: Any, double: int) -> Iterator[CallSpec]:
        slots = iter(self._requests)
        for face, buffer in zip(self._faces, self._in, strict=True):
            yield ("MPI_Recv_init", buffer, buffer.size, double, face.peer, face.receive_tag, comm, next(slots))
        for face, buffer in zip(self._faces, self._out, strict=True):
            yield ("MPI_Send_init", buffer, buffer.size, double, face.peer, face.send_tag, comm, next(slots))
