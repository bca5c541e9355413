"""Which measurements of two fabrics belong beside each other, and which microbenchmark beside a model's training."""

from __future__ import annotations

import math
from typing import Any

from reports.exchanges import gradient_bytes
from reports.summary import Summary
from reports.variants import LIBRARY, MPI, by_mpi, form
from reports.view import View, alone, setup

LATENCY_BYTES = 8
Match = tuple[Summary, Summary]  # the slower fabric's, the faster fabric's


def matches(v: View, benchmark: str, slow: str, fast: str) -> list[Match]:
    """The cases that both fabrics have: equal but for the fabric."""
    found = [s for s in v.of(benchmark) if not alone(s)]
    own: dict[tuple[Any, ...], Summary] = {(_same(s)): s for s in found if s.fabric == slow}
    return [(own[_same(s)], s) for s in found if s.fabric == fast and _same(s) in own]


def _same(s: Summary) -> tuple[Any, ...]:
    return (*setup(s), s.nbytes)


def latency(v: View, slow: str, fast: str) -> Match | None:
    """Half a round trip of 8 B, or of the smallest size that both have."""
    found = matches(v, "latency", slow, fast)
    return min(found, key=lambda m: (m[0].nbytes != LATENCY_BYTES, m[0].nbytes or 0), default=None)


def stream(v: View, slow: str, fast: str) -> Match | None:
    """A stream one way of the largest size that both have."""
    return max(matches(v, "bandwidth", slow, fast), key=lambda m: m[0].nbytes or 0, default=None)


def allreduce(v: View, slow: str, fast: str, train: Summary | None, exchange: str = "") -> Match | None:
    """Allreduce at the size nearest to the gradients (the largest where that is not known).

    As many ranks as train, and by the library and algorithm of the ``exchange``, where such a case was measured.
    """
    wanted = gradient_bytes(train) if train else None
    backend, algorithm = primitive(train, exchange)

    def fit(m: Match) -> tuple[Any, ...]:
        s, nbytes = m[0], max(m[0].nbytes or 0, 1)
        far = -nbytes if wanted is None else abs(math.log(nbytes / wanted))
        unlike = (s.ranks != trainers(train), s.backend != backend) if train else ()
        unusual = form(s) != "" or (by_mpi(s) and (s.algorithm or LIBRARY) != algorithm)
        return (*unlike, unusual, far, s.dtype != "float32", s.ranks)

    return min(matches(v, "allreduce", slow, fast), key=fit, default=None)


def primitive(train: Summary | None, exchange: str) -> tuple[str, str]:
    """The library and the algorithm of an exchange such as ``mpi-ring+64M``; DPUs use MPI among themselves."""
    name, _, algorithm = exchange.partition("+")[0].partition("-")
    if not name:
        return (train.backend if train else MPI), LIBRARY
    return (MPI, LIBRARY) if name == "dpu" else (name, algorithm or LIBRARY)


def trainers(train: Summary) -> int:
    """How many ranks exchange gradients: those that are no DPUs."""
    return sum(role != "dpu" for role in train.roles) or train.ranks
