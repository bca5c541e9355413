"""The optimizer as a control of the step without an exchange: planted times."""

from __future__ import annotations

import numpy as np
import pytest

from training import control

MS = 1_000_000


def planted(rounds: int = 8, **optimizer_ms: float) -> dict[str, np.ndarray]:
    """Steps of 500 ms whose optimizer takes about so long by mode, on one of two ranks."""
    jitter = np.linspace(0.95, 1.05, rounds)
    found = {"noop.step": np.full((2, rounds), 500 * MS)}
    for mode, ms in optimizer_ms.items():
        found[f"{mode}.optimizer"] = np.stack([jitter * ms * MS, jitter * 0.5 * ms * MS]).astype("i8")
    return found


def test_optimizer_that_takes_as_long_everywhere_says_nothing() -> None:
    assert control.warnings(planted(noop=9, gloo=9.5, mpi=8.8), ["gloo", "mpi"]) == []


def test_base_that_lost_its_processor_makes_exposed_too_low() -> None:
    (told,) = control.warnings(planted(noop=9, gloo=1.2, mpi=1.4, dpu=8.9), ["gloo", "mpi", "dpu"])
    assert "took 9 ms in steps without an exchange and 1.2 to 1.4 ms in those by gloo, mpi:" in told
    assert told.endswith("exposed is too LOW, by about 7.8 ms in the optimizer alone")


def test_exchange_that_lost_its_processor_makes_exposed_too_high() -> None:
    (told,) = control.warnings(planted(noop=3, gloo=9), ["gloo"])
    assert "too HIGH, by about 6 ms" in told


def test_what_is_nothing_beside_a_step_is_not_warned_of() -> None:
    assert control.warnings(planted(noop=0.9, gloo=0.2), ["gloo"]) == []


@pytest.mark.parametrize("rounds", [3, 5, 6, 30])
def test_times_that_overlap_are_no_clear_difference_however_few(rounds: int) -> None:
    samples = planted(rounds, noop=9, gloo=3)
    assert len(control.warnings(samples, ["gloo"])) == 1
    samples["gloo.optimizer"] = np.where(np.arange(rounds) % 2, 3, 20) * np.ones((2, 1), "i8") * MS
    assert control.warnings(samples, ["gloo"]) == []
