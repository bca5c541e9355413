"""A start of ranks that refills first what the last iteration overwrote, before anything that brings them together.

An operation in place leaves its result where its input was: summed again and again, it would grow without end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microbench.engine import CallSpec
from microbench.sync import Again, Run, Sync


class Refilled(Sync):
    """``inner``, after the calls ``refill``, which write no column; outside the timed window, since starts are."""

    def __init__(self, refill: Sequence[CallSpec], inner: Sync) -> None:
        self.name, self.columns = inner.name, inner.columns
        self._refill, self._inner = list(refill), inner

    def calls(self) -> list[CallSpec]:
        """The refill, then what starts the ranks together."""
        return [*self._refill, *self._inner.calls()]

    def settle(self, run: Run) -> None:
        """As without it."""
        self._inner.settle(run)

    def widen(self, margins: NDArray[np.int64], again: Again) -> None:
        """As without it."""
        self._inner.widen(margins, again)

    def widen_unseen(self, each_ns: float) -> None:
        """As without it."""
        self._inner.widen_unseen(each_ns)

    def before_block(self) -> None:
        """As without it."""
        self._inner.before_block()

    def method(self) -> dict[str, Any]:
        """What a record says of the start, and that inputs were written anew."""
        return {**self._inner.method(), "refilled": "before each sample's start"}
