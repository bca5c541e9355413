"""The checker passes on right data and fails on one flipped bit, for every type and number of ranks."""

from __future__ import annotations

import numpy as np
import pytest

from fabrics.errors import UserError
from microbench import check
from microbench.case import Invalid
from microbench.dtypes import DTYPES, DType, dtype, elements

RANKS = (1, 2, 3, 5, 8, 33, 127, 128, 1000)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("kind", DTYPES.values(), ids=lambda k: k.name)
def test_sums_are_exact_in_the_type(kind: DType, ranks: int) -> None:
    count = 41
    added = kind.encode(np.zeros(count))
    for rank in range(ranks):
        added = kind.encode(kind.decode(added) + kind.decode(check.contribution(kind, count, rank, ranks)))
    exact = sum(kind.decode(check.contribution(kind, count, r, ranks)).astype("i8") for r in range(ranks))
    assert np.array_equal(kind.decode(added).astype("i8"), exact)
    assert np.array_equal(check.total(kind, count, ranks), added)
    assert added.dtype == kind.numpy
    assert np.any(exact)


def test_a_pattern_may_begin_anywhere() -> None:
    whole = check.pattern(200_000, 5)
    for start in (0, 1, 65520, 65521, 70_000):
        assert np.array_equal(check.pattern(100_000, 5, start), whole[start:][:100_000])


def test_patterns_differ_by_seed_and_position() -> None:
    a, b = check.pattern(100000, 0), check.pattern(100000, 1)
    assert a.size == 100000
    assert not np.array_equal(a, b)
    assert not np.array_equal(a[:50000], a[50000:])


@pytest.mark.parametrize("nbytes", [1, 3, 4096])
def test_every_flipped_bit_is_noticed(nbytes: int) -> None:
    expected = check.pattern(nbytes, 3)
    for seed in range(50):
        assert check.selftest(expected.copy(), expected, seed) is True


def test_zero_bytes_have_no_bit_to_flip() -> None:
    empty = check.pattern(0, 0)
    assert check.selftest(empty, empty) is None
    assert check.verify(empty, empty, int)["flipped_bit_caught"] is None


def test_a_poisoned_buffer_does_not_pass() -> None:
    expected = check.pattern(64, 0)
    buffer = expected.copy()
    check.poison(buffer)
    with pytest.raises(Invalid, match=r"wrong data: 6[0-9] bytes differ"):
        check.verify(buffer, expected, int)


def test_another_ranks_wrong_byte_fails_here_too() -> None:
    expected = check.pattern(64, 0)
    with pytest.raises(Invalid, match="wrong data: 1 bytes"):
        check.verify(expected.copy(), expected, lambda mine: mine + 1)


def test_a_blind_check_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "wrong_bytes", lambda *_: 0)
    expected = check.pattern(64, 0)
    with pytest.raises(Invalid, match="did not notice"):
        check.verify(expected.copy(), expected, int)


def test_unknown_type_and_odd_sizes_are_named() -> None:
    with pytest.raises(UserError, match="'float99': one of float32"):
        dtype("float99")
    with pytest.raises(UserError, match="size 10 B is not a multiple of 4 B"):
        elements(10, DTYPES["float32"])


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 7, 8, 1000])
@pytest.mark.parametrize("period", [1, 3, 4])
def test_a_period_is_repeated_as_often_as_it_takes(period: int, count: int) -> None:
    once = np.arange(period, dtype="i4") + 5
    again = check.repeated(once, count)
    assert again.dtype == once.dtype
    assert again.tolist() == [int(once[i % period]) for i in range(count)]


def test_a_flipped_bit_is_looked_for_in_its_piece_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole pass over gigabytes to show that a bit would be seen: its piece will do, wherever it lies."""
    monkeypatch.setattr(check, "_PIECE_BYTES", 8)
    expected, looked = check.pattern(29, 1), list[int]()
    compare = check.wrong_bytes

    def counting(buffer: check.Buffer, right: check.Buffer) -> int:
        looked.append(buffer.size)
        return compare(buffer, right)

    monkeypatch.setattr(check, "wrong_bytes", counting)
    assert all(check.selftest(expected.copy(), expected, seed) for seed in range(40))
    assert set(looked) == {8, 5}  # 29 B are three pieces of 8 and one of 5
