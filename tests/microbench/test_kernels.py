"""The native kernels: right results, and work that is done."""

from __future__ import annotations

import io

import numpy as np
import pytest

from fabrics.errors import CannotRun
from microbench import burner, kernels
from microbench.kernels import SCALAR, Kernels


@pytest.mark.parametrize("n", [0, 1, 7, 4096, 100_003])
def test_the_triad_is_exact(n: int) -> None:
    rng = np.random.default_rng(n)
    b, c = rng.random(n), rng.random(n)
    a = np.full(n, np.nan)
    Kernels().triad(a, b, c, passes=3)
    assert np.array_equal(a, b + SCALAR * c)


def test_no_pass_leaves_the_target_as_it_was() -> None:
    a = np.ones(5)
    Kernels().triad(a, np.zeros(5), np.zeros(5), passes=0)
    assert a.tolist() == [1] * 5


@pytest.mark.parametrize("b", [np.zeros(4, "f4"), np.zeros(5), np.zeros(8)[::2]])
def test_other_arrays_are_refused(b: np.ndarray) -> None:
    with pytest.raises(ValueError, match="contiguous arrays of float64"):
        Kernels().triad(np.zeros(4), b, np.zeros(4))


def test_more_passes_take_longer() -> None:
    native = Kernels()
    few, many = (min(native.work(steps) for _ in range(5)) for steps in (100_000, 2_000_000))
    assert many > 4 * few


def test_a_burner_answers_every_line() -> None:
    out = io.StringIO()
    burner.serve(["1000\n", "200000\n"], out)
    rows = [list(map(int, line.split())) for line in out.getvalue().splitlines()]
    assert [len(row) for row in rows] == [2, 2]
    assert rows[1][1] > rows[0][1] > 0


def test_a_library_that_is_not_built_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(CannotRun, match="not built: install fabricbench with pip"):
        Kernels()
