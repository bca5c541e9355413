"""Fabrics that a user defines: ``fabrics.toml`` names sets of devices. Pure, but for reading the file.

[fabrics.ib0]
devices = ["mlx5_0:1"]          # an RDMA device and port; the same on every host
rate = "200gbit"

[fabrics.eth]
cidr = "10.1.0.0/24"            # or every interface with an address in a network
hosts = { "node[01-02]" = ["ens1f0"] }   # where names differ

[fabrics.rails]
devices = ["mlx5_0:1", "mlx5_1:1"]
kind = "roce"                   # where the names do not tell
gid_index = 3
rails = [0, 0, 1, 1]            # local rank r uses device rails[r % 4]
note = "one rail a socket"
"""

from __future__ import annotations

import ipaddress
import re
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fabrics import textfile
from fabrics.errors import UserError
from fabrics.hosts import expand
from fabrics.lab.config import parse_rate
from fabrics.model import RDMA, Fabric, Kind

KINDS: tuple[Kind, ...] = ("tcp", *RDMA)
RESERVED = ("shm", "tcp-lo", "all")  # fabrics that every host has
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,39}")
_INTERFACE = re.compile(r"[A-Za-z0-9_.@-]{1,15}")
_DEVICE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*:[1-9]\d*")
_FAMILIES: tuple[
    tuple[re.Pattern[str], tuple[Kind, ...]], ...
] = (  # of RDMA devices, by how drivers and udev name them
    (re.compile(r"cxi\d+"), ("cxi",)),
    (re.compile(r"(hfi\d+_|opap)\w+"), ("opa",)),
    (re.compile(r"(efa_|rdmap)\w+"), ("efa",)),
    (re.compile(r"(rocep|bnxt_re|irdma|hns_|rxe)\w*"), ("roce",)),
    (re.compile(r"mlx[45]_\w+"), ("ib", "roce")),
)
_ANY_RDMA: tuple[Kind, ...] = ("ib", "roce", "opa", "efa")
Addresses = Mapping[str, Mapping[str, Sequence[str]]]


@dataclass(frozen=True)
class Definition:
    """A fabric as a user defines it, before it is known which hosts and addresses there are.

    ``devices`` are every host's, ``networks`` those in whose range a host's interfaces are its devices, and ``by_host``
    what counts instead on the hosts that it names.
    """

    name: str
    kind: Kind
    devices: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    by_host: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rails: tuple[int, ...] = ()
    rate_bits_per_s: float | None = None
    gids: Mapping[str, int] = field(default_factory=dict)
    note: str = ""


def read(path: Path) -> tuple[Definition, ...]:
    """The fabrics that a file defines; UserError says where it cannot be meant."""
    return parse(textfile.read(path, "fabrics file"), str(path))


def parse(text: str, name: str) -> tuple[Definition, ...]:
    """Parse a definition strictly: an unknown key or value is an error that names it and what is allowed."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"fabrics file {name}: {error}") from None
    for key in data:
        if key != "fabrics":
            raise UserError(
                f"fabrics file {name}: at its top there is no {key!r}: allowed are tables such as [fabrics.ib0]"
            )
    tables = data.get("fabrics")
    if not isinstance(tables, dict) or not tables:
        raise UserError(f"fabrics file {name} defines nothing: add a table such as [fabrics.ib0]")
    return tuple(_definition(f"fabrics file {name}: [fabrics.{key}]", key, table) for key, table in tables.items())


def fabric(definition: Definition, hosts: Sequence[str] = (), addresses: Addresses | None = None) -> Fabric:
    """The fabric on ``hosts`` (default: those that it names); unusable, and why, where one of them lacks it.

    ``addresses`` are each host's interfaces with their addresses, needed where a network is to find them.
    """
    members = tuple(hosts) or tuple(definition.by_host)
    found = {host: _devices_on(definition, host, addresses or {}) for host in members}
    devices = {host: names for host, (names, _) in found.items() if names}
    problems = [problem for _, problem in found.values() if problem] if members else ["no host is named"]
    problems += _shared(definition, devices, addresses or {})
    return Fabric(
        definition.name,
        definition.kind,
        members,
        devices,
        definition.rate_bits_per_s,
        note=definition.note,
        unusable="; ".join(problems),
        gids=definition.gids,
        rails=definition.rails,
    )


def _devices_on(definition: Definition, host: str, addresses: Addresses) -> tuple[tuple[str, ...], str]:
    """A host's devices, and what is wrong with them."""
    if named := definition.by_host.get(host, definition.devices):
        return named, ""
    if not definition.networks:
        return (), f"no device is named for {host}"
    if host not in addresses:
        return (), f"addresses of {host} are not known"
    found = tuple(device for device, own in addresses[host].items() if _within(definition, own))
    networks = ", ".join(definition.networks)
    if not found:
        return (), f"{host} has no address in {networks}"
    if definition.rails and max(definition.rails) >= len(found):
        return found, f"rails name device {max(definition.rails)}, and {host} has {len(found)} in {networks}"
    return found, ""


def _within(definition: Definition, addresses: Collection[str]) -> list[str]:
    """Those of an interface's addresses that are in the definition's networks."""
    networks = [ipaddress.ip_network(network) for network in definition.networks]
    bare = [ipaddress.ip_address(re.split("[%/]", text)[0]) for text in addresses]
    return [str(address) for address in bare if any(address in network for network in networks)]


def _shared(definition: Definition, devices: Mapping[str, Sequence[str]], addresses: Addresses) -> list[str]:
    """Addresses that two hosts both have, as bridges of containers do: they lead nowhere."""
    owner: dict[str, str] = {}
    told: list[str] = []
    for host, names in devices.items():
        for name in names:
            for address in _within(definition, addresses.get(host, {}).get(name, ())):
                first = owner.setdefault(address, host)
                if first != host:
                    told.append(f"{first} and {host} both have {address}")
    return told


def _definition(where: str, name: str, table: Any) -> Definition:
    if not _NAME.fullmatch(name) or name in RESERVED:
        raise UserError(
            f"{where}: a name is a letter, then up to 39 of letters, digits, _ . -; not {', '.join(RESERVED)}"
        )
    if not isinstance(table, dict):
        raise UserError(f"{where} is {table!r}: make it a table")
    for key in table:
        if key not in _READERS:
            raise UserError(f"{where} has no {key!r}: allowed are {', '.join(_READERS)}")
    values = {key: _value(where, key, value) for key, value in table.items()}
    devices, networks, by_host = values.get("devices", ()), values.get("cidr", ()), values.get("hosts", {})
    if devices and networks:
        raise UserError(f"{where} has devices and cidr: give one")
    sets = [*([devices] if devices else []), *by_host.values()]
    if not sets and not networks:
        raise UserError(f'{where} names no devices: add devices = ["eth0"], cidr or hosts')
    kind = _kind(where, values, sets)
    rails = values.get("rails", ())
    for some in sets:
        if rails and max(rails) >= len(some):
            raise UserError(f"{where}: rails name device {max(rails)}, and {', '.join(some)} has {len(some)}, from 0")
    gids = _gids(where, values.get("gid_index"), kind, sets)
    return Definition(name, kind, devices, networks, by_host, rails, values.get("rate"), gids, values.get("note", ""))


def _kind(where: str, values: Mapping[str, Any], sets: Sequence[Sequence[str]]) -> Kind:
    """The kind stated, or the one that all devices' names allow; a network finds interfaces, so that is tcp."""
    stated: Kind | None = values.get("kind")
    possible: tuple[Kind, ...] = KINDS
    for device in dict.fromkeys(device for some in sets for device in some):
        own = _kinds_of(where, device)
        if stated is not None and stated not in own:
            raise UserError(f'{where}: kind = "{stated}": {device} can be {" or ".join(own)}')
        both = tuple(kind for kind in possible if kind in own)
        if not both:
            raise UserError(f"{where}: {device} is of another kind than the devices before it: a fabric is of one kind")
        possible = both
    if values.get("cidr"):
        if (stated or possible[0]) != "tcp":
            raise UserError(f'{where}: cidr finds interfaces: name RDMA devices, such as devices = ["mlx5_0:1"]')
        return "tcp"
    if stated is None and "gid_index" in values and "roce" in possible:
        return "roce"
    return stated or possible[0]


def _kinds_of(where: str, device: str) -> tuple[Kind, ...]:
    """The kinds that a device of this name can be, the likeliest first."""
    name, colon, _ = device.partition(":")
    family = next((kinds for pattern, kinds in _FAMILIES if pattern.fullmatch(name)), None)
    if family == ("cxi",) and not colon:
        return family
    if _DEVICE.fullmatch(device):
        return family or _ANY_RDMA
    if family is not None:
        raise UserError(f"{where}: {device!r}: an RDMA device is named with its port, such as {name}:1")
    if not _INTERFACE.fullmatch(device):
        raise UserError(f"{where}: {device!r} is no interface, such as eth0, and no RDMA device, such as mlx5_0:1")
    return ("tcp",)


def _gids(where: str, value: Any, kind: Kind, sets: Sequence[Sequence[str]]) -> dict[str, int]:
    if value is None:
        return {}
    if kind != "roce":
        raise UserError(f"{where}: gid_index is RoCE's, and this fabric is {kind}")
    devices = list(dict.fromkeys(device for some in sets for device in some))
    if isinstance(value, int):
        return dict.fromkeys(devices, value)
    for device in value:
        if device not in devices:
            raise UserError(f"{where}: gid_index has no device {device!r}: allowed are {', '.join(devices)}")
    return dict(value)


def _value(where: str, key: str, value: Any) -> Any:
    reader, takes = _READERS[key]
    try:
        return reader(value)
    except UserError as error:
        raise UserError(f"{where}: {key}: {error}") from None
    except (TypeError, ValueError):
        raise UserError(f"{where}: {key} = {value!r}: {key} takes {takes}") from None


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(value)
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or len(set(map(_text, value))) != len(value):
        raise ValueError(value)
    return tuple(value)


def _networks(value: Any) -> tuple[str, ...]:
    texts = _texts(value) if isinstance(value, list) else (_text(value),)
    return tuple(str(ipaddress.ip_network(text)) for text in texts)


def _hosts(value: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, dict) or not value:
        raise TypeError(value)
    found: dict[str, tuple[str, ...]] = {}
    for names, devices in value.items():
        for name in expand(names):
            if name in found:
                raise UserError(f"host {name} stands twice")
            found[name] = _texts(devices)
    return found


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 255:
        raise ValueError(value)
    return value


def _rails(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not value:
        raise TypeError(value)
    return tuple(_whole(rail) for rail in value)


def _gid_index(value: Any) -> int | dict[str, int]:
    if isinstance(value, dict) and value:
        return {device: _whole(index) for device, index in value.items()}
    return _whole(value)


_READERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "devices": (_texts, 'a list of unlike names such as ["mlx5_0:1"]'),
    "cidr": (_networks, 'a network such as "10.1.0.0/24", or a list of them'),
    "hosts": (_hosts, 'a table of each host\'s devices such as { "node[01-02]" = ["ens1f0"] }'),
    "rails": (_rails, "a list of whole numbers from 0, one for each local rank, such as [0, 0, 1, 1]"),
    "rate": (lambda value: parse_rate(_text(value)), 'a text such as "2.5gbit"'),
    "kind": (lambda value: KINDS[KINDS.index(value)], f"one of {', '.join(KINDS)}"),
    "gid_index": (_gid_index, 'a whole number from 0 to 255, or a table such as { "mlx5_0:1" = 3 }'),
    "note": (_text, "a text"),
}
