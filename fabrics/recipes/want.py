"""What a recipe is asked for, and why there may be none. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fabrics.model import Fabric

LOOPBACK = "lo"
FLAVOURS = ("pure", "job")


class NoRecipe(ValueError):
    """The library cannot be made to use the fabric; the message says why."""


@dataclass(frozen=True)
class Want:
    """What one rank of a host is to use: these devices, in this flavour, by this transport (None: the usual one)."""

    devices: tuple[str, ...]
    flavour: str = "pure"
    transport: str | None = None

    @property
    def pure(self) -> bool:
        """Whether no path but the fabric may be left."""
        return self.flavour == "pure"

    @property
    def loopback(self) -> bool:
        """Whether it is the loopback interface, which joins no hosts."""
        return LOOPBACK in self.devices


def devices_of(fabric: Fabric, host: str | None, local_rank: int | None) -> tuple[str, ...]:
    """The devices of a host, or of all hosts alike; with ``local_rank`` and rails, the one of that rank.

    Raises NoRecipe where the hosts' devices differ and ``host`` is not given, and where there is no device.
    """
    if host is not None and host not in fabric.devices:
        raise NoRecipe(f"fabric {fabric.name} has no host {host}")
    sets = {fabric.devices[host]} if host is not None else set(fabric.devices.values())
    if len(sets) > 1:
        raise NoRecipe(f"fabric {fabric.name}: devices differ by host: a recipe is for one host")
    devices = next(iter(sets), ())
    if not devices:
        raise NoRecipe(f"fabric {fabric.name} has no devices")
    if local_rank is None or not fabric.rails:
        return devices
    rail = fabric.rails[local_rank % len(fabric.rails)]
    if rail >= len(devices):
        raise NoRecipe(f"fabric {fabric.name}: rail {rail} of local rank {local_rank}: it has {len(devices)} devices")
    return (devices[rail],)


def gid_index(fabric: Fabric, devices: Sequence[str]) -> int | None:
    """The GID index of RoCE devices, None where none is declared; libraries take one for all their devices.

    Raises NoRecipe where the indexes differ.
    """
    found = {fabric.gids.get(device) for device in devices}
    if len(found) > 1:
        raise NoRecipe(f"fabric {fabric.name}: GID indexes of {', '.join(devices)} differ: a library takes one for all")
    return next(iter(found), None)


def split_port(device: str) -> tuple[str, int]:
    """Name and port of ``mlx5_0:1``; port 1 where none is written."""
    name, colon, port = device.partition(":")
    return name, int(port) if colon and port.isdigit() else 1


def single(devices: Sequence[str], variable: str) -> str:
    """The one device that ``variable`` can name; raises NoRecipe for several."""
    if len(devices) > 1:
        raise NoRecipe(f"{variable} names one device, not {', '.join(devices)}: map ranks to rails")
    return devices[0]
