"""What a lab may be made of, and the lines that make it."""

from __future__ import annotations

import pytest

from fabrics.errors import UserError
from fabrics.lab import build
from fabrics.lab.config import (
    LabConfig,
    LabFabric,
    burst_bytes,
    format_rate,
    limit_bytes,
    parse_fabric,
    parse_rate,
)


@pytest.mark.parametrize(("text", "rate"), [("2.5gbit", 2.5e9), ("200mbit", 2e8), ("64000kbit", 6.4e7)])
def test_parse_rate(text: str, rate: float) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize("text", ["", "10", "10g", "10Gbit", "-1gbit", "1e9gbit", "1.gbit", "1gbit ", "1gbits", "gbit"])
def test_parse_rate_names_the_token(text: str) -> None:
    with pytest.raises(UserError, match=f"rate {text!r}"):
        parse_rate(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("eth1g", "NAME:RATE"),
        ("eth1g:", "rate ''"),
        ("Eth:1gbit", "'Eth'"),
        ("mgmt:1gbit", "not mgmt"),
        ("toolongname1:1gbit", "toolongname1"),
        ("slow:10kbit", "10000 bit/s"),
        ("fast:200gbit", "2e"),
    ],
)
def test_parse_fabric_names_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        parse_fabric(text)


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "a.b"},
        {"name": "../etc"},
        {"name": ""},
        {"nodes": 1},
        {"nodes": 100},
        {"fabrics": ()},
        {"fabrics": (LabFabric("a", 1e9), LabFabric("a", 2e9))},
        {"mtu": 100},
    ],
)
def test_a_lab_that_cannot_be(wrong: dict[str, object]) -> None:
    with pytest.raises(UserError):
        LabConfig(**wrong)  # type: ignore[arg-type]


def test_round_trip() -> None:
    config = LabConfig("x", 3, dpus=False, fabrics=(LabFabric("a", None), LabFabric("b", 1e9)), mtu=9000)
    assert LabConfig.from_dict(config.as_dict()) == config
    assert config.members == ("h0", "h1", "h2")


def test_addresses_are_unique() -> None:
    config = LabConfig(nodes=99)
    addresses = [config.address(member, network) for member in config.members for network in config.networks]
    assert len(set(addresses)) == len(addresses) == 99 * 2 * 3
    assert all(1 <= int(part) <= 254 for address in addresses for part in address.split(".")[3:])


def test_device_names_fit_the_kernel() -> None:
    config = LabConfig(nodes=99, fabrics=(LabFabric("abcdefghij", 1e9),))
    words = " ".join(build.switch_lines(config)).split()
    named = [words[i + 1] for i, word in enumerate(words) if word in {"add", "name", "set", "master"}]
    assert max(map(len, named)) == 15


def test_the_management_network_comes_first_in_hosts() -> None:
    config = LabConfig()
    first = next(line for line in build.hosts_file(config).splitlines() if line.split()[1].startswith("h1"))
    assert first.split()[:2] == [config.address("h1", "mgmt"), "h1"]


def test_bucket_and_queue() -> None:
    assert burst_bytes(1e9) == 128 * 1024
    assert burst_bytes(10e9) == 312_500
    assert limit_bytes(100e9) == 62_500_000
    assert limit_bytes(1e9) == 8 << 20  # what four connections can have under way


def test_rates_as_reports_spell_them() -> None:
    assert format_rate(2.5e9) == "2.5 Gbit/s"
    assert format_rate(2e8) == "200 Mbit/s"
