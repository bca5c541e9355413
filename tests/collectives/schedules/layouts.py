"""Which host each rank is on, for tests."""

from __future__ import annotations

from collectives.schedule import Schedule
from collectives.schedules import ALGORITHMS, NEEDS_HOSTS

LAYOUTS = {
    "alone": lambda ranks: list(range(ranks)),
    "together": lambda ranks: [7] * ranks,
    "blocks of 4": lambda ranks: [rank // 4 for rank in range(ranks)],
    "cyclic on 3": lambda ranks: [rank % 3 for rank in range(ranks)],
    "uneven": lambda ranks: [rank.bit_length() for rank in range(ranks)],  # 1, 1, 2, 4, 8, ... ranks
}


def build(key: tuple[str, str], ranks: int, count: int, **options: object) -> Schedule:
    """A schedule from the table, with hosts where it needs them and small chunks where it has chunks."""
    if key in NEEDS_HOSTS:
        options.setdefault("hosts", LAYOUTS["uneven"](ranks))
    if key[1] == "pipelined-tree":
        options.setdefault("chunk", 9)
    return ALGORITHMS[key](ranks, 0 if key[0] == "barrier" else count, **options)
