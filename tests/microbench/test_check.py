"""The checker passes on right data and fails on one flipped bit, for every type and number of ranks."""

from __future__ import annotations

import numpy as np
import pytest

from fabrics.errors import UserError
from microbench import check
from microbench.case import Invalid
from microbench.dtypes import DTYPES, dtype, elements

RANKS = (1, 2, 3, 5, 8, 33, 127, 128, 1000)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("kind", DTYPES.values(), ids=lambda k: k.name)
def test_sums_are_exact_in_the_type(kind: object, ranks: int) -> None:
    count = 41
    added = np.zeros(count, kind.numpy)  # type: ignore[attr-defined]
    for rank in range(ranks):
        added = added + check.contribution(kind, count, rank, ranks)  # type: ignore[arg-type]
    exact = sum(check.contribution(kind, count, r, ranks).astype("i8") for r in range(ranks))  # type: ignore[arg-type]
    assert np.array_equal(added.astype("i8"), exact)
    assert np.array_equal(check.total(kind, count, ranks), added)  # type: ignore[arg-type]
    assert added.dtype == kind.numpy  # type: ignore[attr-defined]
    assert exact.any()


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
