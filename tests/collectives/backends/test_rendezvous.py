from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

import pytest

from collectives.backends import rendezvous
from fabrics.errors import CannotRun
from fabrics.model import Fabric

TWO_RAILS = Fabric("rails", "tcp", ("h0", "h1"), {"h0": ("a0", "b0"), "h1": ("a1", "b1")}, rails=(0, 1))
WHOLE = Fabric("whole", "tcp", ("h0", "h1"), {"h0": ("a0", "b0"), "h1": ("a1", "b1")})


def member(fabric: Fabric, rank: int = 0, hosts: tuple[str, ...] = ("h0", "h0", "h1")) -> Any:
    return SimpleNamespace(fabric=fabric, rank=rank, hosts=hosts)


def test_loopback_address() -> None:
    assert rendezvous.interface_address("lo") == "127.0.0.1"


def test_interface_that_does_not_exist_is_named() -> None:
    with pytest.raises(CannotRun, match="no network interface 'nope0'"):
        rendezvous.interface_address("nope0")


def test_interface_without_an_address_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    hardware = SimpleNamespace(family=socket.AF_PACKET, address="02:00:00:00:00:01")
    monkeypatch.setattr(rendezvous.psutil, "net_if_addrs", lambda: {"veth0": [hardware]})
    with pytest.raises(CannotRun, match="'veth0' has no IPv4 address"):
        rendezvous.interface_address("veth0")


@pytest.mark.parametrize(
    ("fabric", "rank", "right"),
    [(WHOLE, 0, "a0,b0"), (WHOLE, 2, "a1,b1"), (TWO_RAILS, 0, "a0"), (TWO_RAILS, 1, "b0"), (TWO_RAILS, 2, "a1")],
)
@pytest.mark.parametrize("value", ["a0,b0", "a1,b1", "a0", "b0", "b0,a0", "a1", None])
def test_gloo_must_be_told_just_the_devices_of_the_rank(
    monkeypatch: pytest.MonkeyPatch, fabric: Fabric, rank: int, right: str, value: str | None
) -> None:
    monkeypatch.delenv("GLOO_SOCKET_IFNAME", raising=False)
    if value is not None:
        monkeypatch.setenv("GLOO_SOCKET_IFNAME", value)
    fault = rendezvous.settings_fault(member(fabric, rank), "gloo")
    assert (fault == "") is (value == right)
    if fault:
        assert fault.startswith(f"GLOO_SOCKET_IFNAME is {value!r}, not the fabric's {right!r}")


def test_a_host_that_is_not_the_fabrics_is_named() -> None:
    assert "has no host h9" in rendezvous.settings_fault(member(WHOLE, 0, ("h9",)), "gloo")


def test_a_backend_without_a_recipe_is_not_measured_under_the_fabrics_name() -> None:
    assert "ucc" in rendezvous.settings_fault(member(WHOLE), "ucc")


def test_torchs_mpi_goes_the_way_of_the_library() -> None:
    assert rendezvous.settings_fault(member(WHOLE), "torch-mpi") == ""


def test_in_a_users_own_job_gloo_is_told_an_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    as_launched = Fabric("as launched", "tcp", ("h0", "h1"))
    monkeypatch.delenv("GLOO_SOCKET_IFNAME", raising=False)
    assert "set GLOO_SOCKET_IFNAME, such as GLOO_SOCKET_IFNAME=eth0" in rendezvous.settings_fault(
        member(as_launched), "gloo"
    )
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "eth3")
    assert rendezvous.settings_fault(member(as_launched), "gloo") == ""


def test_every_setting_of_nccls_recipe_is_asked_for() -> None:
    wanted = {"NCCL_NET": "Socket", "NCCL_SOCKET_IFNAME": "=a0"}
    assert rendezvous.mismatch(wanted, {"NCCL_NET": "Socket", "NCCL_SOCKET_IFNAME": "=a0", "OTHER": "x"}) == ""
    assert rendezvous.mismatch(wanted, {"NCCL_NET": "Socket"}).startswith("NCCL_SOCKET_IFNAME is None, not")


@pytest.mark.parametrize(("says", "fault"), [((1, 2), False), ((-1, -1), True), ((0, 1), True), ((0, 2), True)])
def test_ranks_that_torch_counts_otherwise_are_refused(says: tuple[int, int], fault: bool) -> None:
    assert bool(rendezvous.misplaced(says, (1, 2))) is fault
