"""What is timed, in which order and how often: pure arithmetic.

A round runs every step once, as a block of iterations, so that drift of the machine meets all steps alike; the order of
the modes is drawn anew for each round. The first iteration of a block is kept apart: caches, idle connections and
waiting ranks are not what they are later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collectives.overlap.options import OFFLOAD_MODES, PROBES
from microbench import pacing
from microbench.case import Case

BLOCK = 2
LEAD_IN = 1
COMPUTE = "compute"
HOST_PURE = "host.pure"
PURE, OVERALL = "pure", "overall"
_ORDER, _LAGS = 1, 2  # streams of random numbers


def mode(step: str) -> str:
    """The mode that a step belongs to: ``staged`` of ``staged.pure``."""
    return step.partition(".")[0]


def overlapped(step: str) -> bool:
    """Whether the step computes while its collective is under way."""
    return step.endswith(f".{OVERALL}")


def offloaded(step: str) -> bool:
    """Whether DPUs carry the step's collective."""
    return mode(step) in OFFLOAD_MODES


def pure_of(name: str) -> str:
    """The step that times a mode's collective alone: probes make no difference where nothing is computed."""
    return HOST_PURE if name in PROBES else f"{name}.{PURE}"


def steps(modes: Sequence[str]) -> tuple[str, ...]:
    """Compute, the hosts' own collective, and what each mode needs beside them."""
    found = [COMPUTE, HOST_PURE]
    for name in modes:
        found += [pure_of(name), f"{name}.{OVERALL}"]
    return tuple(dict.fromkeys(found))


def order(modes: Sequence[str], seed: int, round_: int) -> tuple[str, ...]:
    """The steps of a round: those of a mode together, the modes (and compute) in an order drawn for this round."""
    grouped: dict[str, list[str]] = {}
    for step in steps(modes):
        grouped.setdefault(mode(step), []).append(step)
    names = list(grouped)
    drawn = np.random.default_rng([seed, _ORDER, round_]).permutation(len(names))
    return tuple(step for place in drawn for step in grouped[names[place]])


def lags(seed: int, round_: int, host: int, iterations: int, longest_ns: float) -> NDArray[np.int64]:
    """How late ``host`` begins each iteration of a round, in ns: uniform from 0 to ``longest_ns``, for every mode."""
    rng = np.random.default_rng([seed, _LAGS, round_, host])
    return np.asarray(rng.uniform(0, longest_ns, iterations), "i8")


def chunks(work: int, pieces: int) -> list[int]:
    """``work`` cut into ``pieces`` that differ by at most 1 and add up to it."""
    return [work * (i + 1) // pieces - work * i // pieces for i in range(pieces)]


def work_steps(target_ns: float, ns_per_step: float) -> int:
    """The fixed count of work that takes ``target_ns`` alone; 0 only for no target at all."""
    return max(1, round(target_ns / ns_per_step)) if target_ns > 0 else 0


@dataclass(frozen=True)
class Rounds:
    """``count`` rounds of blocks of ``block`` timed iterations, each after one that is kept apart."""

    count: int
    block: int = BLOCK

    @property
    def iterations(self) -> int:
        """Timed iterations of each step."""
        return self.count * self.block


def plan(case: Case, set_s: float, spent_s: float) -> Rounds:
    """Rounds that fit what ``spent_s`` leaves of the budget when one iteration of all steps takes ``set_s``.

    There are the case's fewest iterations at least, unless these are far too slow (:mod:`microbench.pacing`), and one
    round in any case.
    """
    each_ns = 1e9 * set_s * (BLOCK + LEAD_IN) / BLOCK
    iterations = pacing.iterations(pacing.left(case, spent_s), each_ns)
    few = iterations <= case.min_iterations
    return Rounds(max(1, -(-iterations // BLOCK) if few else iterations // BLOCK))


def must_stop(case: Case, done: int, spent_s: float, sampling_s: float) -> str:
    """Why no round follows when ``done`` rounds are, after ``spent_s`` of the case and ``sampling_s`` of rounds."""
    return pacing.out_of_time(case, done * BLOCK, pacing.Spent(spent_s, sampling_s))


def stop_reason(case: Case, done: int) -> str:
    """Why the rounds that were planned are all: the most iterations, time, or slower than the fewest allow."""
    return pacing.why_done(case, done * BLOCK, BLOCK)
