"""What an operation carries: one rank's operands of it, filled, spoiled and compared as a library's own are.

Several operations under way carry different data, so that none can pass for another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectives.library import TABLE, Collective
from collectives.operands import NONBLOCKING, Operands, operands
from microbench import check
from microbench.case import Case
from microbench.device import CPU
from microbench.job import Job


def row_of(operation: str) -> Collective:
    """The library's row of an operation."""
    return next(row for row in TABLE if row.name == operation)


@dataclass(frozen=True)
class Cargo:
    """The operands of one operation, the ``number``-th of those under way."""

    o: Operands
    row: Collective
    number: int = 0

    @classmethod
    def of(cls, here: Job, case: Case, operation: str, number: int) -> Cargo:
        """Buffers of its own on a host, filled."""
        row = row_of(operation)
        made = cls(operands(here, replace(case, mode=NONBLOCKING, device=CPU), row.received), row, number)
        made.fill()
        return made

    def on(self, send: NDArray[np.uint8], receive: NDArray[np.uint8]) -> Cargo:
        """The same operation on other buffers."""
        return Cargo(replace(self.o, send=send, receive=receive), self.row, self.number)

    def fill(self) -> None:
        """Write what is sent: sums are of rolled elements, bytes that only move are changed by the number."""
        if self.row.fill is not None:
            self.row.fill(self.o)
        if self.row.sums is not None:
            self.o.values[:] = np.roll(self.o.values, self.number)
        else:
            self.o.send ^= np.uint8(self.number)

    def poison(self) -> None:
        """Spoil the result, so that an earlier one cannot pass."""
        check.poison(self.o.receive)

    def expected(self) -> NDArray[Any] | None:
        """What the receive buffer must begin with; None where nothing is defined."""
        result = self.row.result(self.o)
        if result is None:
            return None
        if self.row.sums is not None:
            return np.roll(result, self.number)
        return result.view("u1") ^ np.uint8(self.number)

    def verify(self, agree: Callable[[int], int], seed: int) -> dict[str, Any]:
        """Compare on every host, the others agreeing by :func:`nothing`; raises Invalid on every rank alike."""
        expected = self.expected()
        size = 0 if expected is None else expected.nbytes
        return check.verify(self.o.receive[:size], expected, agree, seed)


def nothing(agree: Callable[[int], int], seed: int) -> dict[str, Any]:
    """A rank's part of the comparison that has no operands."""
    return check.verify(np.zeros(0, "u1"), None, agree, seed)
