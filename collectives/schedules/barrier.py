"""Barrier: no rank leaves before every rank has come; its messages carry nothing."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from collectives.schedule import Round, Rounds, Schedule, messages, sizes
from collectives.schedules.phases import steps


def dissemination(ranks: int, count: int = 0) -> Schedule:
    """In round k rank r tells r + 2^k: ceil(lg p) a (Hensgen, Finkel and Manber 1988). ``count`` must be 0."""
    if count:
        raise ValueError(f"a barrier carries no data: {count} elements given")
    return Schedule("barrier", "dissemination", ranks, 0, sizes(ranks, 0, 0), Rounds(partial(_dissemination, ranks)))


def _dissemination(ranks: int) -> Iterator[Round]:
    rank = np.arange(ranks)
    for step in steps(ranks):
        yield messages(rank, (rank + step) % ranks, 0, 0, empty=True)
