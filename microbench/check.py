"""Is the data right? Patterns that are exact in the type, and a comparison of bytes.

A check poisons the receive buffer first, so that yesterday's right answer cannot pass, and then shows that it
would have noticed: it flips one bit and must fail.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microbench.case import Invalid
from microbench.dtypes import DType

Buffer = NDArray[np.uint8]
_POISON = 0xA5
_PIECE_BYTES = 1 << 20
_PERIOD = math.lcm(*range(1, 14))  # of every modulus that a contribution may have


def contribution(kind: DType, count: int, rank: int, ranks: int) -> NDArray[Any]:
    """What ``rank`` puts into a sum over ``ranks``: small integers whose sum is exact in the type."""
    modulus = min(13, 1 + kind.exact // ranks)
    if modulus < 2:  # more ranks than the type can count: only the first ones contribute
        modulus = 2 if rank < kind.exact else 1
    return repeated(kind.encode((np.arange(modulus) * 7 + rank * 3) % modulus), count)


def total(kind: DType, count: int, ranks: int) -> NDArray[Any]:
    """The sum of all contributions, added in 64-bit integers and stored in the type."""
    period = min(count, _PERIOD)
    result = np.zeros(period, "i8")
    for rank in range(ranks):
        result += kind.decode(contribution(kind, period, rank, ranks)).astype("i8")
    return repeated(kind.encode(result), count)


def pattern(nbytes: int, seed: int, start: int = 0) -> Buffer:
    """``nbytes`` from ``start`` on of bytes that differ by position and by seed, for what is only moved."""
    return repeated(np.roll(np.random.default_rng(seed).integers(0, 256, 65521, "u1"), -start), nbytes)


def repeated(period: NDArray[Any], count: int) -> NDArray[Any]:
    """``count`` elements of ``period`` over and over, at the speed of memory however short it is."""
    result = np.empty(count, period.dtype)
    done = min(period.size, count)
    result[:done] = period[:done]
    while done < count:
        n = min(done, count - done)  # what is there already, a whole number of periods
        result[done : done + n] = result[:n]
        done += n
    return result


def poison(buffer: Buffer) -> None:
    """Overwrite with bytes that no pattern expects in a row."""
    buffer[:] = _POISON


def wrong_bytes(buffer: Buffer, expected: NDArray[Any]) -> int:
    """How many bytes differ; compared piece by piece, so that it takes no memory of the buffer's size."""
    right = expected.view("u1").reshape(-1)
    if right.size != buffer.size:
        raise ValueError(f"{buffer.size} bytes cannot be compared with {right.size}")
    pieces = range(0, buffer.size, _PIECE_BYTES)
    return sum(int(np.count_nonzero(buffer[i : i + _PIECE_BYTES] != right[i : i + _PIECE_BYTES])) for i in pieces)


def selftest(buffer: Buffer, expected: NDArray[Any], seed: int = 0) -> bool | None:
    """Flip one bit of a right answer: whether the comparison of its piece notices; None where there is no byte."""
    if not buffer.size:
        return None
    rng = np.random.default_rng(seed)
    where, bit = int(rng.integers(buffer.size)), np.uint8(1 << int(rng.integers(8)))
    first = where // _PIECE_BYTES * _PIECE_BYTES
    piece = slice(first, first + _PIECE_BYTES)
    buffer[where] ^= bit
    noticed = wrong_bytes(buffer[piece], expected.view("u1").reshape(-1)[piece]) == 1
    buffer[where] ^= bit
    return noticed


def verify(buffer: Buffer, expected: NDArray[Any] | None, agree: Callable[[int], int], seed: int = 0) -> dict[str, Any]:
    """Compare on every rank, ``agree`` (a sum over ranks) on the verdict, and self-test; the record's validation.

    ``expected`` is None on a rank for which the operation defines nothing. Raises Invalid on every rank alike
    when any byte of any rank is wrong, or when the check did not notice a flipped bit.
    """
    mine = expected is not None
    wrong = agree(wrong_bytes(buffer, expected) if expected is not None else 0)
    if wrong:
        raise Invalid(f"wrong data: {wrong} bytes differ from the expected result")
    noticed = selftest(buffer, expected, seed) if expected is not None else None
    if agree(int(noticed is False)):
        raise Invalid("the check did not notice a flipped bit: its verdict means nothing")
    checked = agree(buffer.size if mine else 0)
    flipped = agree(int(noticed is True))
    return {
        "checked_bytes": checked,
        "wrong_bytes": 0,
        "flipped_bit_caught": flipped > 0 if checked else None,
    }
