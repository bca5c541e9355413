"""Verdicts on planted counters."""

from __future__ import annotations

import pytest

from fabrics.model import Fabric
from fabrics.proof import LEAST_PROBE_BYTES, judge, payload_needed

MB = 1_000_000
PAYLOAD = 88 * MB
ETH = Fabric("eth10g", "tcp", ("h0", "h1"), {"h0": ("eth10g",), "h1": ("eth10g",)})
SHM = Fabric("shm", "shm", ("vm",))
LO = Fabric("tcp-lo", "tcp", ("vm",), {"vm": ("lo",)})
SENT, RECEIVED = {"h0": PAYLOAD}, {"h1": PAYLOAD}
Counts = dict[str, dict[str, tuple[int, int]]]
QUIET: Counts = {"h0": {"eth10g": (0, 0), "mgmt": (0, 0)}, "h1": {"eth10g": (0, 0), "mgmt": (0, 0)}}


def streams(eth: int, mgmt: int = 0) -> Counts:
    """What h0 sends and h1 receives, on each of two devices; acknowledgements go back."""
    there = {"eth10g": (eth // 100, eth), "mgmt": (mgmt // 100, mgmt)}
    back = {"eth10g": (eth, eth // 100), "mgmt": (mgmt, mgmt // 100)}
    return {"h0": {"lo": (0, 0), **there}, "h1": {"lo": (0, 0), **back}}


def test_all_on_the_fabric_is_proved() -> None:
    proof = judge(ETH, SENT, RECEIVED, streams(PAYLOAD + PAYLOAD // 30), QUIET)
    assert (proof.verdict, proof.payload_bytes) == ("proved", PAYLOAD)
    assert proof.detail == "eth10g on h0 carried 91 MB of 88 MB; no other device rose"


@pytest.mark.parametrize(("share", "verdict"), [(0.985, "proved"), (0.975, "disproved")])
def test_counters_may_be_two_per_cent_short(share: float, verdict: str) -> None:
    assert judge(ETH, SENT, RECEIVED, streams(int(share * PAYLOAD)), QUIET).verdict == verdict


def test_striping_is_disproved_and_named() -> None:
    proof = judge(ETH, SENT, RECEIVED, streams(PAYLOAD // 2, PAYLOAD // 2), QUIET)
    assert proof.verdict == "disproved"
    assert "eth10g on h0 carried 44 MB of 88 MB" in proof.detail
    assert "mgmt on h0 rose 44 MB" in proof.detail
    assert proof.detail.endswith(": striped")


def test_all_on_management_is_disproved_and_named() -> None:
    proof = judge(ETH, SENT, RECEIVED, streams(0, PAYLOAD), QUIET)
    assert proof.verdict == "disproved"
    assert "carried 0 kB of 88 MB" in proof.detail
    assert proof.detail.endswith("mgmt on h1 rose 88 MB: another path")


def test_shared_memory_taken_for_a_network_is_disproved() -> None:
    proof = judge(ETH, SENT, RECEIVED, streams(900), QUIET)
    assert proof.verdict == "disproved"
    assert proof.detail.endswith("no device carried it: shared memory")


def test_a_part_by_shared_memory_is_disproved() -> None:
    proof = judge(ETH, SENT, RECEIVED, streams(PAYLOAD // 2), QUIET)
    assert proof.verdict == "disproved"
    assert proof.detail.endswith("the rest went by shared memory")


def test_one_direction_alone_does_not_prove_both() -> None:
    one_way = streams(PAYLOAD)
    proof = judge(ETH, {"h0": PAYLOAD, "h1": PAYLOAD}, {"h0": PAYLOAD, "h1": PAYLOAD}, one_way, QUIET)
    assert proof.verdict == "disproved"


def test_foreign_traffic_at_a_fifth_of_the_rate_is_still_proved() -> None:
    foreign = PAYLOAD // 4  # a fifth of the rate, while the payload takes the rest
    idle = {host: {"eth10g": (foreign, foreign), "mgmt": (0, 0)} for host in QUIET}
    seen = {
        host: {**devices, "eth10g": (devices["eth10g"][0] + foreign, devices["eth10g"][1] + foreign)}
        for host, devices in streams(PAYLOAD).items()
    }
    assert judge(ETH, SENT, RECEIVED, seen, idle).verdict == "proved"
    assert judge(ETH, SENT, RECEIVED, seen, QUIET).verdict == "proved"  # it began with the probe


def test_foreign_traffic_does_not_hide_striping() -> None:
    foreign = 2 * PAYLOAD // 5
    idle = {host: {"eth10g": (foreign, foreign), "mgmt": (0, 0)} for host in QUIET}
    seen = streams(PAYLOAD // 2 + foreign, PAYLOAD // 2)
    assert judge(ETH, SENT, RECEIVED, seen, idle).verdict == "disproved"


def test_background_does_not_stand_for_what_went_by_memory() -> None:
    foreign = 2 * PAYLOAD // 5
    idle = {host: {"eth10g": (foreign, foreign), "mgmt": (0, 0)} for host in QUIET}
    assert judge(ETH, SENT, RECEIVED, streams(7 * PAYLOAD // 10 + foreign), idle).verdict == "unknown"
    assert judge(ETH, SENT, RECEIVED, streams(PAYLOAD + foreign), idle).verdict == "proved"
    assert judge(ETH, SENT, RECEIVED, streams(PAYLOAD // 2 + foreign), idle).verdict == "disproved"


@pytest.mark.parametrize("carried", [0, PAYLOAD])
def test_a_payload_below_the_noise_is_unknown(carried: int) -> None:
    idle = {host: {"eth10g": (PAYLOAD, PAYLOAD), "mgmt": (0, 0)} for host in QUIET}
    proof = judge(ETH, SENT, RECEIVED, streams(PAYLOAD + carried), idle)
    assert proof.verdict == "unknown"
    assert "does not stand out" in proof.detail


def test_another_device_that_was_as_loud_before_is_unknown() -> None:
    idle = {host: {"eth10g": (0, 0), "mgmt": (30 * MB, 30 * MB)} for host in QUIET}
    assert judge(ETH, SENT, RECEIVED, streams(PAYLOAD, 30 * MB), idle).verdict == "proved"
    assert judge(ETH, SENT, RECEIVED, streams(PAYLOAD, 50 * MB), idle).verdict == "unknown"
    assert judge(ETH, SENT, RECEIVED, streams(PAYLOAD, 70 * MB), idle).verdict == "disproved"


@pytest.mark.parametrize(("rise", "verdict"), [(870_000, "proved"), (890_000, "disproved")])
def test_another_device_may_rise_by_one_per_cent(rise: int, verdict: str) -> None:
    assert judge(ETH, SENT, RECEIVED, streams(PAYLOAD, rise), QUIET).verdict == verdict


def test_without_counters_it_is_unknown() -> None:
    assert judge(ETH, SENT, RECEIVED, {}, {}).detail == "no counters on h0"
    lost = {host: {"mgmt": (0, 0)} for host in QUIET}
    assert judge(ETH, SENT, RECEIVED, lost, QUIET).detail == "no counters of eth10g on h0"
    assert judge(ETH, {"h9": PAYLOAD}, {}, {"h9": {"lo": (0, 0)}}, {}).verdict == "unknown"


def test_too_little_is_unknown() -> None:
    assert judge(ETH, {"h0": 8}, {"h1": 8}, streams(5000), QUIET).verdict == "unknown"
    assert judge(ETH, {}, {}, streams(5000), QUIET).detail == "nothing was sent"


def test_a_bond_and_its_slaves_are_one_path() -> None:
    bond = Fabric("bond", "tcp", ("a",), {"a": ("bond0",)})
    seen = {"a": {"bond0": (0, PAYLOAD), "eth0": (0, PAYLOAD // 2), "eth1": (0, PAYLOAD // 2), "eth2": (0, 0)}}
    paths = {"a": {"bond0": frozenset({"bond0", "eth0", "eth1"})}}
    assert judge(bond, {"a": PAYLOAD}, {}, seen, {}, paths).verdict == "proved"
    assert judge(bond, {"a": PAYLOAD}, {}, seen, {}).verdict == "disproved"


def test_rails_carry_the_payload_together() -> None:
    rails = Fabric("rails", "tcp", ("a",), {"a": ("eth0", "eth1")})
    seen = {"a": {"eth0": (0, PAYLOAD // 4), "eth1": (0, 3 * PAYLOAD // 4)}}
    assert judge(rails, {"a": PAYLOAD}, {}, seen, {}).verdict == "proved"


@pytest.mark.parametrize(("device", "rise"), [("lo", PAYLOAD), ("eth0", PAYLOAD)])
def test_shared_memory_is_disproved_by_any_device(device: str, rise: int) -> None:
    seen = {"vm": {"lo": (0, 0), "eth0": (0, 0), device: (rise, rise)}}
    proof = judge(SHM, {"vm": PAYLOAD}, {"vm": PAYLOAD}, seen, {})
    assert proof.verdict == "disproved"
    assert f"{device} on vm rose {rise // MB} MB" in proof.detail


def test_less_than_the_payload_elsewhere_may_be_of_others() -> None:
    seen = {"vm": {"lo": (2 * MB, 2 * MB)}}
    proof = judge(SHM, {"vm": PAYLOAD}, {"vm": PAYLOAD}, seen, {})
    assert proof.verdict == "unknown"
    assert "lo on vm rose 2 MB for" in proof.detail and "perhaps others'" in proof.detail


def test_a_background_is_told_where_there_is_one() -> None:
    busy = {"vm": {"lo": (2 * MB, 2 * MB)}}
    assert judge(SHM, {"vm": PAYLOAD}, {"vm": PAYLOAD}, busy, busy).detail.startswith("no device rose beyond its back")


def test_shared_memory_is_proved_by_silence_alone() -> None:
    still = {"vm": {"lo": (500, 500), "eth0": (20_000, 0)}}
    loud = {"vm": {"lo": (0, 0), "eth0": (PAYLOAD, 0)}}
    payload = {"vm": PAYLOAD}
    assert judge(SHM, payload, payload, still, {}).verdict == "proved"
    assert judge(SHM, payload, payload, loud, loud).verdict == "unknown"
    assert judge(SHM, payload, payload, {}, {}).detail == "no counters on vm"


def test_loopback_must_carry_it() -> None:
    payload = {"vm": PAYLOAD}
    carried = {"vm": {"lo": (PAYLOAD, PAYLOAD), "eth0": (0, 0)}}
    assert judge(LO, payload, payload, carried, {}).verdict == "proved"
    still = {"vm": {"lo": (0, 0), "eth0": (0, 0)}}
    assert judge(LO, payload, payload, still, {}).detail.endswith("shared memory")


def test_payload_needed() -> None:
    assert payload_needed(0) == LEAST_PROBE_BYTES
    assert payload_needed(100 * MB) == 2000 * MB
    assert payload_needed(100 * MB, probe_s=0.5) == 1000 * MB
