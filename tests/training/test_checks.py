"""The checks against two planted ranks, of which this process is rank 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from training import checks


class TwoRanks:
    """A communicator whose rank 1 contributes what is planted."""

    def __init__(self, others: list[Any]) -> None:
        self.others = list(others)

    def Get_rank(self) -> int:  # noqa: N802 - mpi4py's name
        return 0

    def Get_size(self) -> int:  # noqa: N802 - mpi4py's name
        return 2

    def allgather(self, mine: Any) -> list[Any]:
        return [mine, self.others.pop(0) if self.others else mine]

    def Allreduce(self, mine: np.ndarray, total: np.ndarray) -> None:  # noqa: N802 - mpi4py's name
        total[...] = mine + self.others.pop(0)


MINE = [np.array([1.0, -2.0], "f4"), np.array([[4.0]], "f4")]
OTHER = [np.array([3.0, 2.0], "f4"), np.array([[-4.0]], "f4")]
MEAN = [np.array([2.0, 0.0], "f4"), np.array([[0.0]], "f4")]


def test_mean_of_both_passes_although_one_tensor_cancels_out() -> None:
    assert checks.mean_fault(TwoRanks(OTHER), MINE, MEAN) == ""


def test_rounding_passes_and_more_does_not() -> None:
    near = [MEAN[0], np.array([[3e-5]], "f4")]
    far = [MEAN[0], np.array([[5e-5]], "f4")]
    assert checks.mean_fault(TwoRanks(OTHER), MINE, near) == ""
    assert "tensor 1 is off by 5e-05, allowed 4e-05" in checks.mean_fault(TwoRanks(OTHER), MINE, far)


@pytest.mark.parametrize("wrong", [MINE, OTHER, [a + b for a, b in zip(MINE, OTHER, strict=True)]])
def test_one_rank_only_or_the_sum_is_no_mean(wrong: list[np.ndarray]) -> None:
    fault = checks.mean_fault(TwoRanks(OTHER), MINE, wrong)
    assert fault.startswith("gradients are not the mean of the ranks' own on rank 0: tensor")


def test_nan_is_no_mean() -> None:
    assert checks.mean_fault(TwoRanks(OTHER), MINE, [MEAN[0], np.array([[np.nan]], "f4")])


def test_fault_of_another_rank_is_known_here() -> None:
    assert checks.mean_fault(TwoRanks([*OTHER, "tensor 3"]), MINE, MEAN).endswith("on rank 1: tensor 3")


def test_one_flipped_bit_is_no_agreement() -> None:
    flipped = [MINE[0].copy(), MINE[1]]
    flipped[0].view("u4")[1] ^= 1
    digests = TwoRanks([])
    assert checks.agreement_fault(digests, MINE) == ""
    seen: list[str] = []
    digests.allgather = lambda mine: seen.append(mine) or [mine]  # type: ignore[method-assign, func-returns-value]
    checks.agreement_fault(digests, flipped)
    assert checks.agreement_fault(TwoRanks(seen), MINE).startswith("gradients of rank 1 differ")
