"""What a fabric is: the data that every floor above speaks of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Kind = Literal["shm", "tcp", "ib", "roce", "opa", "efa", "cxi"]
RDMA: tuple[Kind, ...] = ("ib", "roce", "opa", "efa", "cxi")
Verdict = Literal["proved", "disproved", "unknown"]


@dataclass(frozen=True)
class Fabric:
    """One way for bytes to travel between ranks: a set of devices on each of its hosts.

    ``rate_bits_per_s`` is the declared rate, ``None`` where there is none to declare. ``lab`` names the
    lab cluster whose hosts it joins, and is empty for this machine. ``unusable`` says why the fabric
    cannot be measured here, and is empty when it can.

    Devices are interfaces (``eth0``), and of RDMA fabrics devices and ports (``mlx5_0:1``). ``gids`` holds the
    GID index of a RoCE device. ``rails`` maps a host's ranks to its devices: local rank r uses the device at
    ``rails[r % len(rails)]``; empty, every rank uses all of them.
    """

    name: str
    kind: Kind
    hosts: tuple[str, ...]
    devices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rate_bits_per_s: float | None = None
    emulated: bool = False
    lab: str = ""
    note: str = ""
    unusable: str = ""
    gids: Mapping[str, int] = field(default_factory=dict)
    rails: tuple[int, ...] = ()

    @property
    def rdma(self) -> bool:
        """Whether its bytes bypass the kernel's network interfaces."""
        return self.kind in RDMA

    @property
    def usable(self) -> bool:
        """Whether it can be measured here."""
        return not self.unusable

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON data that :meth:`from_dict` reads back."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Fabric:
        """The fabric that :meth:`as_dict` wrote."""
        devices = {host: tuple(names) for host, names in data.get("devices", {}).items()}
        whole = {**data, "hosts": tuple(data["hosts"]), "devices": devices, "rails": tuple(data.get("rails", ()))}
        return cls(**whole)


@dataclass(frozen=True)
class Recipe:
    """The environment that makes one library use one fabric.

    ``flavour`` is ``pure`` (one rank a host and no other path left). ``backend`` names the library that
    reads these variables.
    """

    fabric: str
    flavour: str
    backend: str
    env: Mapping[str, str]


@dataclass(frozen=True)
class Proof:
    """What counters say that a known payload did.

    ``deltas`` is ``{host: {device: [rx_bytes, tx_bytes]}}`` over the probe; ``background`` the same
    over an equal time without it.
    """

    verdict: Verdict
    detail: str
    payload_bytes: int = 0
    deltas: Mapping[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)
    background: Mapping[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON data."""
        return asdict(self)
