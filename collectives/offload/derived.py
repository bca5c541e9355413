"""Scattered elements as MPI datatypes, made for one channel and given back with it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from collectives.offload.pieces import Block, merged
from microbench.dtypes import DType, mpi_type
from microbench.engine import word

if TYPE_CHECKING:
    from types import ModuleType

Region = tuple[int, int, Any]
"""An address, a count, and the datatype: what MPI calls take."""


class Derived:
    """The element type of a channel and what is derived from it; ``close`` frees the latter."""

    def __init__(self, MPI: ModuleType, kind: DType) -> None:  # noqa: N803 - the module's own name
        self.MPI, self.each, self.element = MPI, kind.nbytes, mpi_type(MPI, kind)
        self._made: list[Any] = []

    def region(self, base: int, blocks: Sequence[Block]) -> Region:
        """Blocks of elements, counted from the address ``base``, as one region; one block needs no derived type."""
        found = merged(blocks)
        if len(found) <= 1:
            start, count = found[0] if found else (0, 0)
            return base + start * self.each, count, self.element
        return base, 1, self.scattered([(start * self.each, length) for start, length in found])

    def scattered(self, blocks: Sequence[Block]) -> Any:
        """A type of blocks of elements at these displacements in bytes."""
        lengths, displacements = [length for _, length in blocks], [at for at, _ in blocks]
        return self._keep(self.element.Create_hindexed(lengths, displacements))

    def spaced(self, length: int, stride: int) -> Any:
        """A type of ``length`` elements, the next of which begins ``stride`` elements after it."""
        row = self.element.Create_contiguous(length)
        self._made.append(row)
        return self._keep(row.Create_resized(0, stride * self.each))

    def _keep(self, made: Any) -> Any:
        self._made.append(made.Commit())
        return made

    def handles(self, types: Sequence[Any]) -> NDArray[np.uint8]:
        """The types as an array of MPI_Datatype."""
        size = self.MPI._sizeof(self.MPI.Datatype)
        return np.frombuffer(b"".join(word(kind).to_bytes(8, sys.byteorder)[:size] for kind in types), "u1").copy()

    def close(self) -> None:
        """Free what was made; nothing under way may use it."""
        while self._made:
            self._made.pop().Free()
