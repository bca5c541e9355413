"""Blocks of ranks in real jobs: whatever the split and the mode, the bits of one rank."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests import jobs
from tests.training.cfd.split_job import MODES, SPLITS


@pytest.fixture(scope="module")
def told() -> dict[tuple[tuple[int, int], str], Any]:
    done = jobs.mpi(4, "-m", "tests.training.cfd.split_job")
    assert done.code == 0, done.err
    lines = [json.loads(line) for line in done.out.splitlines()]
    return {(tuple(line["split"]), line["mode"]): line for line in lines}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("split", SPLITS)
def test_every_split_has_the_bits_of_one_rank(told: Any, split: tuple[int, int], mode: str) -> None:
    found = told[split, mode]
    assert set(found["wrong"]) == {0}
    assert sum(found["cells"]) == 13 * 11 * 5
    assert len(set(found["cells"])) > 1  # a box that does not divide


@pytest.mark.parametrize("split", SPLITS)
def test_residuals_add_up_to_one_rank_s(told: Any, split: tuple[int, int]) -> None:
    assert all(told[split, mode]["off"] < 1e-12 for mode in MODES)
