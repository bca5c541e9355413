"""What an allreduce costs by algorithm, as the closed formulas have it: linear in a, b and c.

With p ranks and n bytes, latency a and b seconds per byte of a message, c seconds per byte reduced (Thakur,
Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", 2005; Rabenseifner 2004;
Patarasuk and Yuan 2009). In two levels a and b within a host are others than across hosts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]


@dataclass(frozen=True)
class Features:
    """How often a cost occurs: ``steps`` a, ``moved`` n b, ``reduced`` n c; ``local_*`` those within a host."""

    steps: float = 0.0
    moved: float = 0.0
    reduced: float = 0.0
    local_steps: float = 0.0
    local_moved: float = 0.0

    def __add__(self, other: Features) -> Features:
        """Both, one after the other."""
        return Features(*(x + y for x, y in zip(self.row, other.row, strict=True)))

    @property
    def row(self) -> tuple[float, ...]:
        """As numbers: steps, moved, reduced, local steps, local moved."""
        return self.steps, self.moved, self.reduced, self.local_steps, self.local_moved

    def within(self) -> Features:
        """The same between ranks of one host."""
        return Features(0.0, 0.0, self.reduced, self.steps, self.moved)


def _power(p: int) -> int:
    """The largest power of two that is no more than p."""
    return 1 << (p.bit_length() - 1)


def _fold(p: int) -> Features:
    """What ranks beyond a power of two cost: they hand their data in, and get the result."""
    return Features() if p == _power(p) else Features(2, 2, 1)


def ring(p: int) -> Features:
    """2(p - 1) a + 2(p - 1)/p n b + (p - 1)/p n c."""
    return Features(2 * (p - 1), 2 * (p - 1) / p, (p - 1) / p)


def recursive_doubling(p: int) -> Features:
    """lg p (a + n b + n c), and the fold."""
    steps = math.log2(_power(p))
    return Features(steps, steps, steps) + _fold(p)


def rabenseifner(p: int) -> Features:
    """2 lg p a + 2(p - 1)/p n b + (p - 1)/p n c, and the fold."""
    q = _power(p)
    return Features(2 * math.log2(q), 2 * (q - 1) / q, (q - 1) / q) + _fold(p)


def binomial(p: int) -> Features:
    """ceil(lg p)(2 a + 2 n b + n c)."""
    depth = (p - 1).bit_length()
    return Features(2 * depth, 2 * depth, depth)


def leaders(p: int, per_host: int) -> Features:
    """A binomial reduction and broadcast within hosts, Rabenseifner's among their first ranks."""
    return binomial(per_host).within() + rabenseifner(hosts(p, per_host))


def reduce_scatter(p: int, per_host: int) -> Features:
    """A block each within hosts, pairwise, and Rabenseifner's of the blocks across hosts.

    2(q - 1)(a_i + n/q b_i) + (q - 1)/q n c, and an allreduce of n/q on N hosts; its columns share the host's NIC, so
    that across hosts all n bytes count.
    """
    q = per_host
    inside = Features(2 * (q - 1), 2 * (q - 1) / q, (q - 1) / q).within()
    across = rabenseifner(hosts(p, q))
    return inside + Features(across.steps, across.moved, across.reduced / q)


def hosts(p: int, per_host: int) -> int:
    """How many hosts p ranks are on."""
    return -(-p // per_host)


FLAT: Mapping[str, Callable[[int], Features]] = MappingProxyType({
    "ring": ring, "recursive-doubling": recursive_doubling, "rabenseifner": rabenseifner, "binomial": binomial,
})  # fmt: skip
LEVELS: Mapping[str, Callable[[int, int], Features]] = MappingProxyType({
    "two-level-leaders": leaders, "two-level-reduce-scatter": reduce_scatter,
})  # fmt: skip
ALGORITHMS = (*FLAT, *LEVELS)


def features(algorithm: str, ranks: int, per_host: int = 1) -> Features:
    """The features of an algorithm by name; KeyError for one that has no formula here.

    With one rank a host the two levels are Rabenseifner's algorithm, and with all ranks on one host every message is
    local.
    """
    found = LEVELS[algorithm](ranks, per_host) if algorithm in LEVELS else FLAT[algorithm](ranks)
    return found.within() if algorithm in FLAT and per_host >= ranks > 1 else found


def candidates(layouts: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """The algorithms that layouts (ranks, ranks a host) can tell apart: two levels take hosts of several ranks."""
    several = any(1 < q < p for p, q in layouts)
    return ALGORITHMS if several else tuple(FLAT)


def columns(algorithm: str, layouts: Sequence[tuple[int, int]], nbytes: Float) -> Float:
    """The features of cells as a matrix: a, b, c, a within, b within; shape (cells, 5)."""
    rows = np.array([features(algorithm, p, q).row for p, q in layouts]).reshape(-1, 5)
    of_bytes = np.array([False, True, True, False, True])
    return np.asarray(np.where(of_bytes, rows * nbytes[:, None], rows))
