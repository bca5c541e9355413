"""What is timed, in which order and how often. Pure arithmetic.

A round runs each part once, as a block of steps: every mode, the same steps without messages (``silent``), and what the
modes are set beside, rank 0 by itself while all others sleep: with its share as a box of its own (``alone``), and with
the whole grid (``one``). The order is drawn anew for each round, so that drift of the machine meets all alike. The
first step of a block is left out: caches hold another part's cells.
"""

from __future__ import annotations

import numpy as np

from microbench import pacing
from microbench.case import Case
from training.cfd import blocks
from training.cfd.options import Options

SILENT, ALONE, ONE = "silent", "alone", "one"
LEAD_IN = 1
STAGES = 2  # of a step: an exchange each
FEWEST_ROUNDS = 2
_CHECKED = 2  # steps of every mode that are compared with one rank's
_SECONDS_PER_CELL = 8e-7  # a step, on a slow core: what is known before anything is measured
_CALLS_S = 2e-3  # a step of the smallest block: what numpy takes to be called


def parts(options: Options, ranks: int) -> tuple[str, ...]:
    """What a round times; one rank has nobody to talk to, so all modes are one."""
    if ranks == 1:
        return options.compare[:1]
    beside = (*((ALONE,) if options.weak else ()), *((ONE,) if options.strong else ()))
    return (*options.compare, SILENT, *beside)


def order(names: tuple[str, ...], seed: int, round_: int) -> tuple[str, ...]:
    """The parts of a round, in an order drawn for it."""
    drawn = np.random.default_rng([seed, round_]).permutation(len(names))
    return tuple(names[place] for place in drawn)


def rounds(case: Case, round_s: float, spent_s: float) -> int:
    """How many fit what ``spent_s`` leaves of the budget; each is an iteration of the case."""
    return max(FEWEST_ROUNDS, pacing.iterations(pacing.left(case, spent_s), 1e9 * round_s))


def stop_reason(case: Case, done: int) -> str:
    """Why the rounds that were planned are all."""
    return pacing.why_done(case, done)


def at_most_s(case: Case, options: Options, bytes_per_s: float) -> float:
    """About how long a case takes at most, its check included, on a fabric of that rate."""
    ranks = case.ranks
    split = options.split or blocks.choose(options.grid, ranks)
    if split is None:
        return case.budget_s
    share_s = _SECONDS_PER_CELL * options.cells / ranks + _CALLS_S
    halo_bytes = 40 * blocks.most_sent(options.grid, split)
    messages_s = STAGES * halo_bytes / bytes_per_s if ranks > 1 else 0.0
    whole_s = _SECONDS_PER_CELL * options.cells + _CALLS_S
    each = {SILENT: share_s, ALONE: share_s, ONE: whole_s}
    step_s = {name: each.get(name, share_s + messages_s) for name in parts(options, ranks)}
    round_s = (options.steps + LEAD_IN) * sum(step_s.values())
    check_s = _CHECKED * (sum(step_s.values()) + whole_s) + 40 * options.cells / bytes_per_s
    planned = max(FEWEST_ROUNDS, pacing.iterations(case, 1e9 * round_s))
    return max(case.budget_s, planned * round_s) + check_s + round_s
