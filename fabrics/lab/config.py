"""What a lab is made of: names, rates and addresses. Pure data, checked when it is made."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from fabrics.errors import UserError

DEFAULT_NAME = "lab"
MANAGEMENT = "mgmt"
RESERVED = (MANAGEMENT, "lo", "shm", "all")  # other fabrics and devices have these names
MAX_NODES, MAX_FABRICS = 99, 32
SEND_BUFFER_BYTES = 2 << 20  # what one connection in the lab can have under way: rides out a few ms off the CPU
SLOWEST_BITS_PER_S, FASTEST_BITS_PER_S = 1e6, 100e9
_LAB_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")
_FABRIC_NAME = re.compile(r"[a-z][a-z0-9]{0,9}")  # with a node's name and a dot it must fit a device's 15
_RATE = re.compile(r"(\d+(?:\.\d+)?)([kmg])bit")
_RATE_UNITS = {"k": 1e3, "m": 1e6, "g": 1e9}
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)%")


def check_name(name: str) -> str:
    """``name`` if a lab may have it; else raises UserError."""
    if not _LAB_NAME.fullmatch(name):
        raise UserError(f"lab name {name!r}: 1 to 40 letters, digits, _ or -")
    return name


def check_rate(rate_bits_per_s: float, fabric: str) -> float:
    """``rate_bits_per_s`` if a fabric can be shaped to it; else raises UserError."""
    if not SLOWEST_BITS_PER_S <= rate_bits_per_s <= FASTEST_BITS_PER_S:
        raise UserError(f"fabric {fabric}: {rate_bits_per_s:g} bit/s: 1mbit to 100gbit can be shaped")
    return rate_bits_per_s


@dataclass(frozen=True)
class LabFabric:
    """An emulated network; ``rate_bits_per_s`` is None where it is not shaped."""

    name: str
    rate_bits_per_s: float | None

    def __post_init__(self) -> None:
        if not _FABRIC_NAME.fullmatch(self.name) or self.name in RESERVED:
            raise UserError(
                f"fabric name {self.name!r}: a lower-case letter, then up to 9 letters or digits; "
                f"not {', '.join(RESERVED)}"
            )
        if self.rate_bits_per_s is not None:
            check_rate(self.rate_bits_per_s, self.name)


DEFAULT_FABRICS = (LabFabric("eth2g5", 2.5e9), LabFabric("eth10g", 10e9))


@dataclass(frozen=True)
class LabConfig:
    """A lab: hosts h0, h1, ...; with ``dpus`` a DPU d0, d1, ... beside each; fabrics joining all of them.

    ``shared_identity``: a host and its DPU have one boot id, one /dev/shm and one IPC namespace, as one machine has;
    else each has its own. ``slurm``: the hosts are nodes of a Slurm cluster.

    Raises UserError for a name, count, fabric or MTU that cannot be.
    """

    name: str = DEFAULT_NAME
    nodes: int = 2
    dpus: bool = True
    fabrics: tuple[LabFabric, ...] = DEFAULT_FABRICS
    mtu: int = 1500
    shared_identity: bool = False
    slurm: bool = False

    def __post_init__(self) -> None:
        check_name(self.name)
        if not 2 <= self.nodes <= MAX_NODES:
            raise UserError(f"lab {self.name}: {self.nodes} nodes: 2 to {MAX_NODES} can be made")
        names = [fabric.name for fabric in self.fabrics]
        if not 1 <= len(names) <= MAX_FABRICS or len(set(names)) != len(names):
            raise UserError(f"lab {self.name}: fabrics {', '.join(names)}: 1 to {MAX_FABRICS}, names unique")
        if not 576 <= self.mtu <= 9000:
            raise UserError(f"lab {self.name}: mtu {self.mtu}: 576 to 9000 bytes")
        if self.shared_identity and not self.dpus:
            raise UserError(f"lab {self.name}: a shared identity of host and DPU needs DPUs")

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names of the hosts."""
        return tuple(f"h{index}" for index in range(self.nodes))

    @property
    def dpu_hosts(self) -> tuple[str, ...]:
        """The names of the DPUs, in their hosts' order; empty without DPUs."""
        return tuple(f"d{index}" for index in range(self.nodes)) if self.dpus else ()

    @property
    def members(self) -> tuple[str, ...]:
        """All that a command can be run in: hosts, then DPUs."""
        return self.hosts + self.dpu_hosts

    @property
    def networks(self) -> tuple[str, ...]:
        """The devices that each member has beside lo: management first, then the fabrics."""
        return (MANAGEMENT, *(fabric.name for fabric in self.fabrics))

    def address(self, member: str, network: str) -> str:
        """The IPv4 address of ``member`` on ``network``; prefixes are 24 bits long."""
        last = int(member[1:]) + (1 if member.startswith("h") else 101)
        return f"10.77.{self.networks.index(network)}.{last}"

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON data that :meth:`from_dict` reads back."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LabConfig:
        """The configuration that :meth:`as_dict` wrote."""
        return cls(**{**data, "fabrics": tuple(LabFabric(**fabric) for fabric in data["fabrics"])})


def parse_rate(text: str) -> float:
    """Bits per second of ``200mbit`` or ``2.5gbit``; K, M and G are powers of 1000. Raises UserError."""
    match = _RATE.fullmatch(text)
    if not match:
        raise UserError(f"rate {text!r}: a number with kbit, mbit or gbit, such as 2.5gbit")
    return float(match[1]) * _RATE_UNITS[match[2]]


def parse_percent(text: str, what: str) -> float:
    """The fraction of ``12.5%``; raises UserError that names ``what`` and the token."""
    match = _PERCENT.fullmatch(text)
    if not match:
        raise UserError(f"{what} {text!r}: a number and %, such as 12.5%")
    return float(match[1]) / 100


def parse_speed(text: str) -> float:
    """The fraction, above 0 and below 1, of ``25%`` or ``0.25``; raises UserError that names the token."""
    match = _PERCENT.fullmatch(text)
    try:
        speed = float(match[1]) / 100 if match else float(text)
    except ValueError:
        speed = math.nan
    if not 0 < speed < 1:
        raise UserError(f"speed {text!r}: a fraction above 0 and below 1, such as 0.25 or 25%")
    return speed


def format_rate(rate_bits_per_s: float) -> str:
    """The rate as reports spell it: ``2.5 Gbit/s``."""
    if rate_bits_per_s >= 1e9:
        return f"{rate_bits_per_s / 1e9:g} Gbit/s"
    return f"{rate_bits_per_s / 1e6:g} Mbit/s"


def parse_fabric(text: str) -> LabFabric:
    """A fabric of ``NAME:RATE``; raises UserError that names the token."""
    name, colon, rate = text.partition(":")
    if not colon:
        raise UserError(f"fabric {text!r}: NAME:RATE, such as eth1g:1gbit")
    return LabFabric(name, parse_rate(rate))


def burst_bytes(rate_bits_per_s: float) -> int:
    """tbf's bucket: 250 us at the rate, and never below two full GSO packets."""
    return int(max(128 * 1024, rate_bits_per_s / 8 * 250e-6))


def limit_bytes(rate_bits_per_s: float) -> int:
    """tbf's queue: 5 ms at the rate, never below four buckets or what four connections can have under way.

    An uplink is not the sender's own device, so a full queue drops instead of holding the sender back.
    """
    return int(max(4 * burst_bytes(rate_bits_per_s), rate_bits_per_s / 8 * 5e-3, 4 * SEND_BUFFER_BYTES))
