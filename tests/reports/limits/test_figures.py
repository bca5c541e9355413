"""What make verdicts judges of the gate, on planted outcomes."""

from __future__ import annotations

from tests.figures.verdicts_gate import LIMITS, Gated, figures, rows

PASS, FAIL = Gated(False, 0, 0.95, 1, 3.0), Gated(True, 1, 0.86, 7, 9.0)


def test_a_gate_that_fails_what_is_slower_and_nothing_else() -> None:
    false, caught, passed = figures([PASS] * 40 + [FAIL] * 20)
    assert (false["got"], false["target"], false["ok"]) == (0.0, "<= 1 of 40", True)
    assert (caught["got"], caught["target"], caught["ok"]) == (20.0, "= 20 of 20", True)
    assert (passed["got"], passed["ok"]) == (40.0, None)


def test_one_false_failure_in_40_is_allowed_and_no_more() -> None:
    wrong = Gated(False, 1, 0.8, 7, 9.0)
    assert [figures([PASS] * (40 - n) + [wrong] * n + [FAIL] * 20)[0]["ok"] for n in (1, 2)] == [True, False]


def test_every_slower_run_must_fail() -> None:
    for code in (0, 3, 4):
        assert not figures([PASS] * 40 + [FAIL] * 19 + [Gated(True, code, 0.86, 13, 9.0)])[1]["ok"]


def test_runs_that_did_not_end_well_meet_nothing() -> None:
    lost = Gated(False, 4, None, 0, 1.0, "no fabric")
    false, *_ = figures([PASS] * 39 + [lost] + [FAIL] * 20)
    assert (false["ok"], false["why"]) == (False, "1 runs did not end well: no fabric")
    assert [figure["ok"] for figure in figures([])] == [False, False, None]


def test_a_row_for_each_kind_of_link() -> None:
    healthy, slow = rows([PASS, PASS, FAIL])
    assert (healthy["runs"], healthy["pass"], healthy["fail"], healthy["of the rate"]) == (2, 2, 0, 0.95)
    assert (slow["runs"], slow["fail"], slow["launches"], slow["s a run"]) == (1, 1, 7, 9.0)
    assert rows([])[0]["of the rate"] is None


def test_the_gate_is_one_that_limits_may_be() -> None:
    from suite.limitsfile import parse

    (found,) = parse(LIMITS, "gate", ["bandwidth"]).criteria
    assert (found.reference, found.lower, found.warn) == ("baseline", 0.95, 0.0)
