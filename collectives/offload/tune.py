"""In pieces of what size an operation takes the least time, by trying."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from collectives.offload.channel import Channel
from collectives.offload.party import Crew
from collectives.offload.pieces import MOST_PIECES
from microbench.dtypes import DType
from microbench.engine import durations

_CHUNKS = (None, 1 << 20, 1 << 18, 1 << 16)
_WARMUP, _FEWEST, _MOST = 2, 3, 15
BUDGET_S = 2.0


@dataclass(frozen=True)
class Tuned:
    """``chunk_bytes``: the best, None for the whole; ``table``: the median time of each that was tried."""

    chunk_bytes: int | None
    table: tuple[dict[str, Any], ...]


def candidates(nbytes: int) -> tuple[int | None, ...]:
    """The sizes to try for an operand of ``nbytes``: the whole, and what is smaller but does not make many pieces."""
    return tuple(chunk for chunk in _CHUNKS if chunk is None or chunk < nbytes <= chunk * MOST_PIECES // 2)


def choose_chunk(
    crew: Crew,
    operation: str,
    kind: DType,
    count: int,
    transport: str,
    *,
    root: int = 0,
    memory_bytes: int | None = None,
    budget_s: float = BUDGET_S,
) -> Tuned:
    """Measure the pure time of an operation in pieces of several sizes, and choose; the same on all ranks.

    The time of an iteration is the longest of any host. Collective.
    """
    table: list[dict[str, Any]] = []
    sizes = candidates(count * kind.nbytes)
    number = _FEWEST
    for chunk in sizes:
        channel = Channel(
            crew, operation, kind, count, transport, chunk_bytes=chunk, root=root, memory_bytes=memory_bytes
        )
        times = _timed(crew, channel, number)
        if not table:  # the first tells how many iterations the time allows
            fit = budget_s / max(len(sizes) * float(np.median(times)) * 1e-9, 1e-9)
            (number,) = (int(n) for n in crew.quiet.decide(min(_MOST, max(_FEWEST, int(fit)))))
            times = _timed(crew, channel, number) if number > _FEWEST else times
        found = channel.method()
        channel.close()
        told = {name: found[name] for name in ("chunk_bytes", "pieces", "piece_bytes")}
        table.append({**told, "pure_s": float(np.median(times)) * 1e-9, "iterations": number})
    best = min(table, key=lambda row: row["pure_s"])
    return Tuned(best["chunk_bytes"], tuple(table))


def _timed(crew: Crew, channel: Channel, iterations: int) -> Any:
    """Nanoseconds of each iteration, on every rank alike."""
    engine, mine = crew.job.engine, np.zeros(iterations)
    if crew.is_dpu:
        engine.program(*channel.serve()).run(_WARMUP + iterations)
    else:
        timed = [*channel.post(), *channel.wait(gentle=not crew.is_busy)]
        times = durations(engine.program(*crew.meet(), "stamp", *timed, "stamp").run(_WARMUP + iterations))
        mine[:] = times[_WARMUP:]
    return crew.quiet.gather(mine).max(axis=0)
