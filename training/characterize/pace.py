"""How many blocks are measured, and how long each is. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from microbench.stats import samples_needed

USUAL_BLOCKS, FEWEST_BLOCKS = 8, samples_needed()
FREE_S = 0.02  # a block, at least
HELD_S = 0.12  # of a rank that is held to a quota, 12 of its periods: where in a period it begins then matters little
_SIZING = 3  # blocks' worth of time goes into finding how many calls a block has
_LONGEST = 5  # times as long, where the budget has room
START_S = 5.0  # to import torch, and to write what kernels work on
_SLOW_START = 4  # times as long, under a quota
LINKS_S = 3.0


@dataclass(frozen=True)
class Pace:
    """``blocks`` of every kernel, each of ``free_s``, or ``held_s`` under a quota, about."""

    blocks: int
    free_s: float
    held_s: float

    def block_s(self, held: bool) -> float:
        """How long a block of a rank is."""
        return self.held_s if held else self.free_s


def pace(budget_s: float, kernels: int, turns: Sequence[bool]) -> Pace:
    """What fits ``budget_s``, and at least six blocks of the least length; ``turns`` tell which are under a quota."""
    round_s = kernels * sum(HELD_S if held else FREE_S for held in turns)
    blocks = USUAL_BLOCKS if budget_s >= (USUAL_BLOCKS + 1) * round_s else FEWEST_BLOCKS
    factor = min(_LONGEST, max(1.0, budget_s / max((blocks + 1) * round_s, 1e-9)))
    return Pace(blocks, factor * FREE_S, factor * HELD_S)


def at_most_s(budget_s: float, kernels: int, ranks: int, emulated: bool) -> float:
    """About how long a case takes: its start, its blocks and the sizing before them, its links.

    Half of the ranks are taken for DPUs, and emulated ones for held to a quota. A call of a kernel may be longer than
    the shortest block; twice the time allows for it.
    """
    each = max(1, ranks // 2) if emulated else 1  # real machines measure at the same time
    turns = [False] * each + [emulated] * each
    chosen = pace(budget_s, kernels, turns)
    rounds_s = (chosen.blocks + _SIZING) * kernels * sum(chosen.block_s(held) for held in turns)
    return START_S * (_SLOW_START if emulated else 1) + 2 * rounds_s + LINKS_S
