"""The fabrics that this host's interfaces and RDMA ports make, usable or why not. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from fabrics.discovery.ethernet import Interface
from fabrics.discovery.rdma import Port
from fabrics.model import RDMA, Fabric, Kind

ONE_HOST = "one host only: name hosts to measure it"
# What an MPI library can drive a fabric of each kind with: transports of UCX, providers of libfabric.
PROVIDERS: dict[Kind, tuple[str, ...]] = {
    "ib": ("rc", "ud", "dc", "verbs"),
    "roce": ("rc", "ud", "dc", "verbs"),
    "opa": ("psm2", "opx"),
    "efa": ("efa",),
    "cxi": ("cxi",),
}
_NEEDS: dict[Kind, str] = {"ib": "libibverbs", "roce": "libibverbs", "opa": "libpsm2", "efa": "libefa", "cxi": "libcxi"}


def tcp_fabrics(interfaces: Sequence[Interface], host: str) -> list[Fabric]:
    """A fabric for each interface that may lead to other hosts; no fabric for one that cannot."""
    return [_tcp(each, host) for each in interfaces if each.leads_out]


def _tcp(each: Interface, host: str) -> Fabric:
    return Fabric(
        name=each.name,
        kind="tcp",
        hosts=(host,),
        devices={host: (each.name,)},
        rate_bits_per_s=each.speed_bits_per_s,
        note=_what(each),
        unusable=each.reason or ONE_HOST,
    )


def _what(each: Interface) -> str:
    below = " and ".join(each.below)
    names = {
        "ipoib": "IP over Omni-Path" if each.driver == "hfi1" else "IP over InfiniBand",
        "bond": f"bond of {below}" if below else "bond",
        "vlan": f"VLAN on {below}" if below else "VLAN",
        "bridge": f"bridge over {below}",
        "veth": "virtual interface of a container",
        "virtual": f"virtual interface on {below}",
    }
    words = [names.get(each.kind, "Ethernet interface"), each.driver, "" if each.mtu is None else f"MTU {each.mtu}"]
    degraded = each.pci.degraded if each.pci else ""
    return ", ".join(word for word in (*words, degraded) if word)


def rdma_fabrics(ports: Sequence[Port], host: str, providers: Collection[str] | None = None) -> list[Fabric]:
    """A fabric for each port, and for all equal ones together where there are more than one.

    Equal ports are usable, and of one kind, rate and type of GID; in that fabric every rank uses all of them.
    ``providers`` names what the MPI library can drive (``PROVIDERS``); None leaves that open.
    """
    rails = [port for port in ports if port.kind in RDMA]
    several = {name for name in (_device(port) for port in rails) if [_device(port) for port in rails].count(name) > 1}
    alone = [_fabric(_name(port, several), [port], host, providers, port.reason) for port in rails]
    return alone + list(_together(rails, host, providers))


def _device(port: Port) -> str:
    return port.name.partition(":")[0]


def _name(port: Port, several: Collection[str]) -> str:
    """``ib-mlx5_0``, and ``ib-mlx5_0-2`` for a port of a device that has several."""
    device, _, number = port.name.partition(":")
    return f"{port.kind}-{device}-{number}" if device in several else f"{port.kind}-{device}"


def _together(rails: Sequence[Port], host: str, providers: Collection[str] | None) -> Iterator[Fabric]:
    groups: dict[tuple[str, float | None, str], list[Port]] = {}
    for port in rails:
        if not port.reason:
            key = (port.kind, port.rate_bits_per_s, port.gid.type if port.gid else "")
            groups.setdefault(key, []).append(port)
    sets = [group for group in groups.values() if len(group) > 1]
    names = [f"{group[0].kind}-x{len(group)}" for group in sets]
    for name, group in zip(names, sets, strict=True):
        rate = group[0].rate_bits_per_s
        unique = name if names.count(name) == 1 or rate is None else f"{name}-{rate / 1e9:g}g"
        yield _fabric(unique, group, host, providers, "")


def _fabric(name: str, group: Sequence[Port], host: str, providers: Collection[str] | None, reason: str) -> Fabric:
    kind: Kind = next(kind for kind in RDMA if kind == group[0].kind)
    rate = group[0].rate_bits_per_s
    return Fabric(
        name=name,
        kind=kind,
        hosts=(host,),
        devices={host: tuple(port.name for port in group)},
        rate_bits_per_s=None if rate is None else rate * len(group),
        note=_note(group),
        unusable=reason or lacking(kind, providers) or ONE_HOST,
        gids={port.name: port.gid.index for port in group if port.gid},
    )


def _note(group: Sequence[Port]) -> str:
    if len(group) > 1:
        per = group[0].rate_bits_per_s
        rate = "" if per is None else f", {per / 1e9:g} Gbit/s each"
        nodes = [port.pci.numa_node for port in group if port.pci and port.pci.numa_node is not None]
        numbers = [str(node) for node in sorted(set(nodes))]
        where = f", on NUMA node{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}" if numbers else ""
        return f"{len(group)} equal rails together{rate}{where}"
    port = group[0]
    node = None if port.pci is None else port.pci.numa_node
    words = [port.board, "" if node is None else f"NUMA node {node}", *port.notes]
    words.append("" if port.counters else "no byte counters: cannot be proved")
    return "; ".join(word for word in words if word)


def lacking(kind: Kind, providers: Collection[str] | None) -> str:
    """Why a library with these ``providers`` cannot drive an RDMA fabric, empty where it can or they are not known."""
    if providers is None or any(name in providers for name in PROVIDERS[kind]):
        return ""
    return (
        f"the MPI library lacks the provider: it loads none of {', '.join(PROVIDERS[kind])} (which need {_NEEDS[kind]})"
    )
