from __future__ import annotations

import socket
from types import SimpleNamespace

import pytest

from fabrics.errors import CannotRun
from training import rendezvous


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


@pytest.mark.parametrize(("value", "right"), [("a0,b0", True), ("a0", False), ("b0,a0", False), (None, False)])
def test_gloo_must_be_told_just_the_fabric_devices(
    monkeypatch: pytest.MonkeyPatch, value: str | None, right: bool
) -> None:
    monkeypatch.delenv("GLOO_SOCKET_IFNAME", raising=False)
    if value is not None:
        monkeypatch.setenv("GLOO_SOCKET_IFNAME", value)
    assert (rendezvous.device_fault(("a0", "b0")) == "") is right
