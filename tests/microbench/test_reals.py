"""Sums of real numbers: the bound holds for every order of adding, and what is beyond it is noticed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from microbench import reals
from microbench.case import Invalid
from microbench.dtypes import DTYPES, DType

FLOATS = [kind for kind in DTYPES.values() if kind.digits]
COUNT = 3000
SEEN = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}


def add(kind: DType, a: Any, b: Any) -> Any:
    """One addition, rounded to nearest in the type."""
    return kind.encode(kind.decode(a) + kind.decode(b)) if kind.nbytes < 8 else a + b


def in_a_row(kind: DType, parts: list[Any]) -> Any:
    result = parts[0]
    for part in parts[1:]:
        result = add(kind, result, part)
    return result


def by_halves(kind: DType, parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return add(kind, by_halves(kind, parts[:half]), by_halves(kind, parts[half:]))


def parts_of(kind: DType, ranks: int) -> list[Any]:
    return [reals.contribution(kind, COUNT, rank) for rank in range(ranks)]


def verified(kind: DType, ranks: int, stored: Any, first: int = 0, count: int = COUNT) -> dict[str, Any]:
    return reals.verify(stored, first, reals.Reference(kind, count, ranks), int, float, seed=3)


@pytest.mark.parametrize("kind", FLOATS, ids=lambda k: k.name)
@pytest.mark.parametrize("ranks", [1, 2, 5, 33])
@pytest.mark.parametrize("order", [in_a_row, by_halves])
def test_every_order_is_within_the_tolerance(kind: DType, ranks: int, order: Callable[..., Any]) -> None:
    found = verified(kind, ranks, order(kind, parts_of(kind, ranks)))
    assert found["reals"] == COUNT
    assert found["reals_tolerance"] == (ranks - 1) * SEEN[kind.name]
    assert 0 <= found["reals_largest_error"] <= found["reals_tolerance"]
    if ranks > 2:
        assert found["reals_largest_error"] > SEEN[kind.name] / 8  # numbers that do round


@pytest.mark.parametrize("kind", FLOATS, ids=lambda k: k.name)
def test_the_reference_is_exact(kind: DType) -> None:
    reference, parts = reals.Reference(kind, COUNT, 5), parts_of(kind, 5)
    for place in (0, 1, 17, COUNT - 1):
        exact = sum(Fraction(float(kind.decode(part)[place])) for part in parts)
        sizes = sum(abs(Fraction(float(kind.decode(part)[place]))) for part in parts)
        got = kind.encode(np.array([float(exact)]))
        off = abs(Fraction(float(kind.decode(got)[0])) - exact) / sizes
        assert reference.errors(got, place)[0] == pytest.approx(float(off), abs=1e-25)


@pytest.mark.parametrize("kind", FLOATS, ids=lambda k: k.name)
@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_one_wrong_sum_is_noticed(kind: DType, ranks: int) -> None:
    reference = reals.Reference(kind, COUNT, ranks)
    for element in (0, 1, 1500, COUNT - 1):
        stored = in_a_row(kind, parts_of(kind, ranks))
        stored[element] = reference.spoiled(element)
        with pytest.raises(Invalid, match=rf"wrong data: 1 sums of {kind.name} are off by"):
            verified(kind, ranks, stored)


@pytest.mark.parametrize("kind", FLOATS, ids=lambda k: k.name)
def test_a_missing_rank_and_garbage_are_noticed(kind: DType) -> None:
    parts = parts_of(kind, 5)
    with pytest.raises(Invalid, match=f"wrong data: {COUNT} sums"):
        verified(kind, 5, in_a_row(kind, parts[:4]))
    for garbage in (math.nan, math.inf, 3e4):
        stored = in_a_row(kind, parts)
        stored[7] = kind.encode(np.array([garbage]))[0]
        with pytest.raises(Invalid, match="wrong data: 1 sums"):
            verified(kind, 5, stored)


def test_the_data_is_put_right_after_the_check_of_the_check() -> None:
    kind = DTYPES["float32"]
    stored = in_a_row(kind, parts_of(kind, 2))
    before = stored.copy()
    verified(kind, 2, stored)
    assert np.array_equal(stored, before)


def test_a_blind_check_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = DTYPES["float32"]
    monkeypatch.setattr(reals.Reference, "errors", lambda self, stored, first: np.zeros(stored.size))
    with pytest.raises(Invalid, match="did not notice"):
        verified(kind, 2, in_a_row(kind, parts_of(kind, 2)))


def test_a_block_of_the_sum_is_compared_where_it_stands() -> None:
    kind = DTYPES["float32"]
    count = reals.PERIOD + 500
    whole = sum(reals.contribution(kind, count, rank) for rank in range(2))
    assert verified(kind, 2, whole[reals.PERIOD - 100 :], reals.PERIOD - 100, count)["reals"] == 600
    with pytest.raises(Invalid):
        verified(kind, 2, whole[reals.PERIOD - 100 :], reals.PERIOD - 99, count)


def test_who_receives_nothing_has_nothing_to_check() -> None:
    found = reals.verify(None, 0, reals.Reference(DTYPES["float16"], COUNT, 2), int, float)
    assert (found["reals"], found["reals_largest_error"]) == (0, 0.0)
    assert verified(DTYPES["float16"], 2, np.zeros(0, "f2"))["reals"] == 0


def test_more_ranks_than_an_exact_sum_takes_add_zeros() -> None:
    kind = DTYPES["bfloat16"]
    assert not reals.contribution(kind, 10, reals.MOST_RANKS).any()
    assert reals.tolerance(kind, 100_000) == reals.tolerance(kind, reals.MOST_RANKS)


@pytest.mark.parametrize("kind", DTYPES.values(), ids=lambda k: k.name)
def test_a_tolerance_is_of_type_ranks_and_operation(kind: DType) -> None:
    assert [reals.tolerance(kind, 5, op) for op in ("max", "min", "move")] == [0, 0, 0]
    assert reals.tolerance(kind, 1) == 0
    assert reals.tolerance(kind, 5) == 4 * SEEN.get(kind.name, 0)
    with pytest.raises(ValueError, match="'product'"):
        reals.tolerance(kind, 5, "product")


@pytest.mark.parametrize("count", [0, 1, reals.PERIOD, 3 * reals.PERIOD + 1, 400 * reals.PERIOD])
def test_a_large_sum_is_looked_at_from_end_to_end(count: int) -> None:
    chosen = list(reals.pieces(count))
    assert len(chosen) <= 16
    if count:
        assert (chosen[0].start, chosen[-1].stop) == (0, count)
        assert all(a.stop <= b.start for a, b in itertools.pairwise(chosen))
