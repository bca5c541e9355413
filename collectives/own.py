"""The suite's own algorithms beside the library's: which there are, and one as calls on a rank's operands."""

from __future__ import annotations

from typing import Any

from collectives.native import lower
from collectives.operands import Operands, no_blocks
from collectives.schedules import ALGORITHMS, NEEDS_HOSTS
from microbench.case import Unsupported
from microbench.engine import CallSpec
from microbench.registry import LIBRARY


def algorithms(operation: str) -> tuple[str, ...]:
    """The library's, then each of ours that computes ``operation``."""
    return (LIBRARY, *(name for of, name in ALGORITHMS if of == operation))


def calls(operation: str, algorithm: str, o: Operands) -> list[CallSpec]:
    """One of our algorithms on ``o``. Raises Unsupported, on every rank alike, for what it does not do."""
    if (operation, algorithm) not in ALGORITHMS:
        raise Unsupported(f"there is no {operation} by {algorithm}: {', '.join(algorithms(operation))}")
    if o.mode.nonblocking or o.mode.in_place:
        raise Unsupported("only the library's algorithm is called without blocking, or in place")
    if operation == "alltoall" and not o.divides:
        raise Unsupported(no_blocks(o.count, o.kind, o.ranks, "the library's are uneven"))
    options: dict[str, Any] = {"hosts": places(o.job.hosts)} if (operation, algorithm) in NEEDS_HOSTS else {}
    schedule = ALGORITHMS[operation, algorithm](o.ranks, o.count, **options)
    return lower(o.job, schedule, o.kind, o.type, o.send, o.receive)


def places(hosts: tuple[str, ...]) -> list[int]:
    """The host of every rank as a number, counted in the order in which they appear."""
    seen: dict[str, int] = {}
    return [seen.setdefault(host, len(seen)) for host in hosts]
