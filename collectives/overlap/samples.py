"""Samples of all hosts as one: per iteration the longest of those that are reported. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from collectives.overlap import schedule
from collectives.overlap.figures import CPU, WORK
from collectives.overlap.options import PROBES

Times = NDArray[np.int64]
Spans = Mapping[str, Times]


def parts(step: str) -> tuple[str, ...]:
    """The spans of a step that are kept; ``""`` is the whole."""
    if step == schedule.COMPUTE:
        return ("", CPU)
    if not schedule.overlapped(step):
        return ("",)
    probed = ("test", "test_longest") if PROBES.get(schedule.mode(step)) else ()
    return ("", CPU, "post", WORK, *probed, "wait")


def name(step: str, part: str) -> str:
    """A sample's name: the step's for the whole, else the part's of its mode."""
    return f"{schedule.mode(step)}.{part}" if part else step


def names(steps: Sequence[str]) -> tuple[str, ...]:
    """Every sample of a case."""
    return tuple(name(step, part) for step in steps for part in parts(step))


def packed(blocks: Mapping[str, Sequence[Spans]], steps: Sequence[str]) -> NDArray[np.float64]:
    """One rank's samples in a row, each of its rounds times its block; nothing is 0 where it had no part."""
    nothing = np.zeros(schedule.BLOCK + schedule.LEAD_IN)
    rows = [
        np.asarray(spans.get(part, nothing), "f8") for step in steps for part in parts(step) for spans in blocks[step]
    ]
    return np.concatenate(rows)


def unpacked(rows: NDArray[np.float64], steps: Sequence[str], rounds: int) -> dict[str, Times]:
    """By name, of shape (rounds, block with its lead-in), the longest over ``rows`` of ranks that are reported."""
    known = names(steps)
    each = rows.max(axis=0).astype("i8").reshape(len(known), rounds, schedule.BLOCK + schedule.LEAD_IN)
    return dict(zip(known, each, strict=True))


def timed(samples: Mapping[str, Times]) -> dict[str, Times]:
    """Without the lead-ins."""
    return {key: times[:, schedule.LEAD_IN :] for key, times in samples.items()}


def flat(samples: Mapping[str, Times], steps: Sequence[str]) -> dict[str, Times]:
    """As a record keeps them: of shape (1, iterations), with the steps' lead-ins by a name of their own."""
    kept = {key: times.reshape(1, -1) for key, times in timed(samples).items()}
    lead_in = {f"lead_in.{step}": samples[step][:, : schedule.LEAD_IN].reshape(1, -1) for step in steps}
    return {**kept, **lead_in}
