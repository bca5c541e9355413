"""What can hide, from planted rates."""

from __future__ import annotations

import pytest

from microbench.record import Metric
from training.characterize import hiding


def known(**values: tuple[float, float, float] | None) -> dict[str, Metric]:
    """Metrics by name, ``__`` for the dot, each a value between its ends."""
    found = {}
    for name, ends in values.items():
        value, low, high = ends or (None, None, None)
        found[name.replace("__", ".")] = Metric(value, "1", 8, low, high, note="" if ends else "n/a: no torch here")
    return found


RATES = {
    "host_dpu__bandwidth": (4e9, 3.9e9, 4.1e9),
    "dpu_dpu__bandwidth": (1e9, 0.95e9, 1.05e9),
    "dpu__triad_all": (6e9, 5.9e9, 6.1e9),
    "dpu__augment32_all": (5000.0, 4900.0, 5100.0),
    "dpu__augment224_all": (120.0, 118.0, 123.0),
    "ratio__forward_all": (0.25, 0.2, 0.4),
}


def verdicts(**changed: tuple[float, float, float] | None) -> dict[str, str]:
    found = hiding.metrics(known(**(RATES | changed)))
    return {finding.what: finding.verdict for finding in hiding.findings(found)}


def test_thresholds_are_the_arithmetic_of_their_rates() -> None:
    found = hiding.metrics(known(**RATES))
    assert found["hide.staging"].value == pytest.approx(4)
    assert (found["hide.staging"].low, found["hide.staging"].high) == pytest.approx((3.9 / 1.05, 4.1 / 0.95))
    assert found["hide.reduction"].value == pytest.approx(2)
    assert found["hide.oda32"].value == 5000
    assert (found["hide.omv"].value, found["hide.omv"].low, found["hide.omv"].high) == pytest.approx((4, 2.5, 5))
    assert {metric.kind for metric in found.values()} == {"derived"}


def test_a_fast_dpu_hides_every_collective() -> None:
    assert set(verdicts().values()) == {"hides", "threshold"}


def test_a_slow_way_to_the_dpu_hides_none() -> None:
    got = verdicts(host_dpu__bandwidth=(0.5e9, 0.4e9, 0.6e9))
    assert {got[name] for name in hiding.COLLECTIVES} == {"does not hide"}


def test_a_slow_memory_hides_all_but_what_reduces() -> None:
    got = verdicts(dpu__triad_all=(2e9, 1.9e9, 2.1e9))  # a third of it is below the wire
    assert got["allreduce"] == "does not hide"
    assert {got[name] for name in ("alltoall", "broadcast", "allgather")} == {"hides"}


def test_what_lies_on_both_sides_of_the_wire_is_told_as_such() -> None:
    got = verdicts(host_dpu__bandwidth=(1.02e9, 0.9e9, 1.2e9))
    assert {got[name] for name in hiding.COLLECTIVES} == {"inconclusive"}


def test_what_was_not_measured_is_not_judged() -> None:
    got = verdicts(dpu_dpu__bandwidth=None, ratio__forward_all=None)
    assert {got[name] for name in hiding.COLLECTIVES} == {"not measured"}
    assert got["O-MV"] == "not measured"
    bare = hiding.findings(hiding.metrics(known(**(RATES | {"dpu_dpu__bandwidth": None, "ratio__forward_all": None}))))
    said = {finding.what: finding.words for finding in bare}
    assert said["alltoall"] == "staged alltoall cannot be judged: no torch here"
    assert said["O-MV"] == "O-MV cannot be judged: no torch here"
    none = hiding.metrics({})
    assert {metric.value for metric in none.values()} == {None}
    assert none["hide.oda32"].note == "n/a: no dpu.augment32_all"
    assert {finding.verdict for finding in hiding.findings(none)} == {"not measured"}


def test_words_carry_the_threshold_and_its_interval() -> None:
    words = {f.what: f.words for f in hiding.findings(hiding.metrics(known(**RATES)))}
    assert words["O-DA 32px"] == (
        "O-DA hides while the host trains fewer than 5000 [4900, 5100] images/s of 32 x 32 pixels per DPU"
    )
    assert words["O-MV"] == "O-MV hides while T/V >= 4 [2.5, 5]"
    assert words["broadcast"] == (
        "staged broadcast can hide: host-DPU bandwidth is 4 [3.71, 4.32] times the wire between DPUs"
    )


def test_an_interval_that_one_side_lacks_is_lacking() -> None:
    bare = Metric(2.0, "1", 3, note="n=3 < 6")
    got = hiding.quotient(bare, known(x=(1.0, 0.9, 1.1))["x"])
    assert (got.value, got.low, got.note) == (2.0, None, "n=3 < 6")
    assert hiding.verdict(got) == "inconclusive"
