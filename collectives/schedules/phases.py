"""What collectives are made of: phases that run in place, in several groups of ranks at once.

A phase takes ``members``, ranks of shape (groups, size), and works within each row, on a region of a buffer that has
the same offsets at every member. Costs are in :mod:`collectives.simulate`'s terms: latency a, b seconds per byte,
c seconds per byte reduced, n bytes, q members.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest

import numpy as np

from collectives.schedule import INPUT, OUTPUT, Int, Round, bounds, join, messages


def flat(ranks: int) -> Int:
    """All ranks as one group: shape (1, ranks)."""
    return np.arange(ranks, dtype="i8")[None, :]


def group_bounds(at: Int, count: Int, parts: int) -> Int:
    """Where each group's ``parts`` blocks begin, and their end: shape (groups, parts + 1)."""
    cuts = [at_ + bounds(int(count_), parts) for at_, count_ in zip(at, count, strict=True)]
    return np.stack(cuts) if cuts else np.zeros((0, parts + 1), "i8")


def copy_in(ranks: Int, at: Int | int, count: Int | int) -> Round:
    """Every one of ``ranks`` copies a region of its INPUT to the same place of its OUTPUT."""
    return messages(ranks, ranks, at, count, read_from=INPUT)


def side_by_side(phases: Iterable[Iterable[Round]]) -> Iterator[Round]:
    """Phases of separate ranks at once: the k-th round of each together."""
    for together in zip_longest(*phases):
        yield join(made for made in together if made is not None)


def steps(size: int) -> list[int]:
    """1, 2, 4, ... below ``size``."""
    return [1 << k for k in range((size - 1).bit_length())]


def _spans(cuts: Int, first: Int, last: Int) -> tuple[Int, Int]:
    """Offset and count, shape (groups, ...), of the blocks from ``first`` up to ``last``."""
    at = cuts[:, first]
    return at, cuts[:, last] - at


def ring_reduce_scatter(members: Int, cuts: Int, own: int = OUTPUT) -> Iterator[Round]:
    """Partial sums travel round the ring; member i ends with block i + 1 of OUTPUT: (q - 1)(a + n/q (b + c)).

    With ``own`` INPUT nothing need be copied before: a rank receives the partial sum straight into OUTPUT, then adds
    its share from INPUT. With OUTPUT the phase is in place. Patarasuk and Yuan 2009.
    """
    size = members.shape[1]
    i = np.arange(size)
    following = np.roll(members, -1, axis=1)
    for step in range(size - 1):
        block = (i - step) % size
        at, count = _spans(cuts, block, block + 1)
        first_read = own if step == 0 else OUTPUT
        yield messages(members, following, at, count, read_from=first_read, combine=own == OUTPUT)
        if own != OUTPUT:
            yield messages(following, following, at, count, read_from=own, combine=True)


def ring_allgather(members: Int, cuts: Int, ahead: int = 0) -> Iterator[Round]:
    """Blocks travel round the ring, member i beginning with block i + ``ahead``: (q - 1)(a + n/q b)."""
    size = members.shape[1]
    i = np.arange(size)
    following = np.roll(members, -1, axis=1)
    for step in range(size - 1):
        block = (i + ahead - step) % size
        yield messages(members, following, *_spans(cuts, block, block + 1))


def halving(members: Int, cuts: Int, buffer: int = OUTPUT) -> Iterator[Round]:
    """Reduce-scatter by recursive halving; member i ends with block i: lg q a + (q - 1)/q n (b + c).

    The size must be a power of two. Rabenseifner 2004; Thakur, Rabenseifner and Gropp 2005.
    """
    i = np.arange(members.shape[1])
    for step in reversed(steps(i.size)):
        partner = i ^ step
        first = partner & -step
        at, count = _spans(cuts, first, first + step)
        yield messages(members, members[:, partner], at, count, read_from=buffer, write_to=buffer, combine=True)


def doubling_allgather(members: Int, cuts: Int) -> Iterator[Round]:
    """Allgather by recursive doubling, member i beginning with block i: lg q a + (q - 1)/q n b; size a power of two."""
    i = np.arange(members.shape[1])
    for step in steps(i.size):
        first = i & -step
        yield messages(members, members[:, i ^ step], *_spans(cuts, first, first + step))


def binomial_reduce(members: Int, at: Int, count: Int) -> Iterator[Round]:
    """Sum to the first member along a binomial tree: ceil(lg q)(a + n (b + c))."""
    for step in steps(members.shape[1]):
        senders = np.arange(step, members.shape[1], 2 * step)
        yield messages(members[:, senders], members[:, senders - step], at[:, None], count[:, None], combine=True)


def binomial_broadcast(members: Int, at: Int, count: Int) -> Iterator[Round]:
    """From the first member to all along a binomial tree: ceil(lg q)(a + n b)."""
    for step in reversed(steps(members.shape[1])):
        receivers = np.arange(step, members.shape[1], 2 * step)
        yield messages(members[:, receivers - step], members[:, receivers], at[:, None], count[:, None])


def folded(members: Int) -> tuple[Int, Int, Int]:
    """Those that sit out, their stand-ins (shape (groups, rest)), and the power of two that take part.

    Of the first pairs of neighbours one sits out, until a power of two is left: neighbours are often on one host.
    """
    size = members.shape[1]
    rest = size - (1 << (size.bit_length() - 1))
    out, stand_ins = members[:, 0 : 2 * rest : 2], members[:, 1 : 2 * rest : 2]
    return out, stand_ins, np.concatenate([stand_ins, members[:, 2 * rest :]], axis=1)


def _between_folds(members: Int, at: Int, count: Int, inner: Iterable[Round]) -> Iterator[Round]:
    """Fold in, ``inner`` for those that take part, fold out: 2 a + 2 n b + n c more where some sit out."""
    out, stand_ins, _ = folded(members)
    yield messages(out, stand_ins, at[:, None], count[:, None], combine=True)
    yield from inner
    yield messages(stand_ins, out, at[:, None], count[:, None])


def doubling_allreduce(members: Int, at: Int, count: Int) -> Iterator[Round]:
    """Allreduce in place by recursive doubling: lg q (a + n (b + c)) and the folds (Thakur et al. 2005)."""
    within = folded(members)[2]
    i = np.arange(within.shape[1])
    exchanges = (
        messages(within, within[:, i ^ step], at[:, None], count[:, None], combine=True) for step in steps(i.size)
    )
    return _between_folds(members, at, count, exchanges)


def rabenseifner_allreduce(members: Int, at: Int, count: Int) -> Iterator[Round]:
    """Allreduce in place by halving, then doubling: 2 lg q a + (q - 1)/q n (2 b + c) and the folds."""
    within = folded(members)[2]
    cuts = group_bounds(at, count, within.shape[1])

    def inner() -> Iterator[Round]:
        yield from halving(within, cuts)
        yield from doubling_allgather(within, cuts)

    return _between_folds(members, at, count, inner())


def ring_allreduce(members: Int, at: Int, count: Int) -> Iterator[Round]:
    """Allreduce in place round a ring: 2(q - 1)(a + n/q b) + (q - 1)/q n c (Patarasuk and Yuan 2009)."""
    cuts = group_bounds(at, count, members.shape[1])
    yield from ring_reduce_scatter(members, cuts)
    yield from ring_allgather(members, cuts, ahead=1)
