"""What may be claimed of an offload, over planted records."""

from __future__ import annotations

from typing import Any

import pytest

from microbench.record import Metric, Record, shared_machines, shared_words
from reports.claims import GAINS, LOSES, NOT_JUDGED, UNDECIDED, Claim, Trial

MS = 1e-3
TIMES = {"compute": 36, "blocking.overall": 72, "host.pure": 36, "host.overall": 66, "probes16.overall": 60,
         "window.pure": 38, "window.overall": 40, "window.exposed": 4}  # fmt: skip
SHARES = {"window.net_gain": (1 / 3, 0.3, 0.36), "window.dilation": (0.01, 0.0, 0.02)}
HOSTS, ROLES = ("h0", "h1", "d0", "d1"), ("host", "host", "dpu", "dpu")


def trial(times: dict[str, float | None] | None = None, shares: dict[str, Any] | None = None, **more: Any) -> Trial:
    metrics = {name: Metric(ms * MS, "s", 12, ms * MS * 0.99, ms * MS * 1.01)
               for name, ms in (TIMES | (times or {})).items() if ms is not None}  # fmt: skip
    metrics |= {
        name: Metric(value, "1", 12, low, high) for name, (value, low, high) in (SHARES | (shares or {})).items()
    }
    given = {"hosts": HOSTS, "roles": ROLES, "nbytes": 1 << 22, "method": {}} | more
    return Trial.of_record(Record("x", "offload_allreduce", "f", "ok", metrics=metrics, **given))


def side(**more: Any) -> tuple[str, str]:
    claim = trial(**more).claim("window")
    return claim.side, claim.why


def test_a_gain_is_its_whole_interval_above_nothing_and_below_the_ceiling() -> None:
    sound = trial()
    assert sound.claim("window") == Claim(GAINS)
    assert sound.ceiling == pytest.approx(1 - 36 / 60)
    assert side(shares={"window.net_gain": (0.01, -0.02, 0.04)}) == (UNDECIDED, "")
    assert side(shares={"window.net_gain": (-0.2, -0.3, -0.1)}) == (LOSES, "")
    assert side(shares={"window.net_gain": (0.3, None, None)}) == (UNDECIDED, "")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"nbytes": 0}, "nothing was offloaded"),
        ({"method": {"modes": {"window": {"pieces": 0}}}}, "nothing was offloaded"),
        ({"method": {"used": {"window": False}}}, "host (offload not used)"),
        ({"method": {"timer_noise_s": 0.0381}}, "window.pure is below the timer's noise"),
        ({"method": {"timer_noise_s": 0.037}}, "host.pure is below the timer's noise"),
        ({"hosts": ("vm", "vm", "vm")}, "DPU ranks share machine vm with hosts: not a DPU"),
        ({"shares": {"window.net_gain": (None, None, None)}}, "no net gain"),
    ],
)
def test_what_was_not_offloaded_or_cannot_be_timed_has_no_gain(more: dict[str, Any], why: str) -> None:
    more = more | ({"roles": ("host", "host", "dpu")} if "hosts" in more else {})
    assert side(**more)[0] == NOT_JUDGED and side(**more)[1].startswith(why)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"method": {"compute_steps": 8108, "compute_ns_per_step": 1000.0}}, "compute took 4.44 times its calibrated"),
        ({"times": {"window.overall": 35.0}}, "window with compute took 2.8 % less than compute alone"),
        ({"times": {"probes16.overall": 30.0}}, "probes16 with compute took 16.7 % less than compute alone"),
        ({"shares": {"window.net_gain": (0.45, 0.41, 0.5)}}, "hiding all would gain 40.0 %"),
        ({"shares": {"window.dilation": (-0.41, -0.6, -0.013)}}, "compute was faster beside the collective"),
    ],
)
def test_a_disturbed_compute_decides_nothing(more: dict[str, Any], why: str) -> None:
    found, told = side(**more)
    assert found == UNDECIDED
    assert told.startswith(f"the compute baseline was disturbed: {why}")
    assert trial(**more).claim("window").mark == "disturbed"


@pytest.mark.parametrize(
    "more",
    [
        {"times": {"window.overall": 35.9}},
        {"shares": {"window.dilation": (-0.41, -0.6, 0.01)}},
        {"shares": {"window.dilation": (-0.005, -0.008, -0.003)}},
        {"method": {"compute_steps": 35000, "compute_ns_per_step": 1000.0}},
        {"method": {"compute_steps": 8108, "compute_ns_per_step": 1000.0, "placement": "accel"}},
    ],
)
def test_what_a_median_of_one_launch_may_differ_by_is_no_disturbance(more: dict[str, Any]) -> None:
    assert side(**more) == (GAINS, "")


def test_one_disturbed_launch_of_several_leaves_the_median_launch() -> None:
    calm, off = ({"compute_steps": steps, "compute_ns_per_step": 1000.0} for steps in (36000, 8108))
    one, (good, bad) = trial(), [trial(method=method).records[0] for method in (calm, off)]
    assert Trial(one.metrics, one.ends, [good, bad, bad, good, good, good, good]).claim("window").side == GAINS
    assert Trial(one.metrics, one.ends, [bad, good, bad, bad, bad, good]).claim("window").side == UNDECIDED


def test_the_range_of_a_few_launches_is_no_gain() -> None:
    one = trial()
    few = Trial(one.metrics, one.ends, one.records * 2).claim("window")
    assert few == Claim(UNDECIDED, "only a range of 2 launches, where a verdict takes 6", "few launches")
    assert Trial(one.metrics, one.ends, one.records * 6).claim("window") == Claim(GAINS)


def test_a_loss_against_a_weak_baseline_is_a_loss_all_the_more() -> None:
    weak = trial(times={"host.overall": None}, shares={"window.net_gain": (-0.2, -0.3, -0.1)})
    assert weak.claim("window").side == LOSES


def test_all_ways_measured_leave_nothing_to_tell() -> None:
    assert trial(times={"thread.overall": 70, "gloo.overall": 70}).baseline == "against the best host mode"


def test_who_carried_a_mode() -> None:
    assert [trial().carrier(mode) for mode in ("host", "window")] == ["hosts", "DPUs"]
    assert [trial(nbytes=0).carrier(mode) for mode in ("host", "window")] == ["hosts", "nobody"]
    assert trial(method={"used": {"window": False}}).carrier("window") == "host (offload not used)"


def test_a_machine_of_hosts_has_no_dpu() -> None:
    assert shared_machines(HOSTS, ROLES) == shared_machines((), ()) == ()
    assert shared_machines(("a", "b", "b", "a", "c"), ("host", "host", "dpu", "dpu", "dpu")) == ("b", "a")
    assert shared_words(("a", "b")) == "DPU ranks share machines a, b with hosts: not a DPU"
    assert shared_words(()) == ""
