"""Whether the hosts of a run reach each other over every fabric, found out before any MPI job would hang on it."""

from __future__ import annotations

import ipaddress
import json
import random
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fabrics.model import Fabric
from suite.plan import JobPlan
from suite.survey import Answers, Start, Survey, ask, survey

CONNECT_S = 2.0
_SKEW_S = 1.0  # what the hosts' starts may differ by, beyond what the survey took
_SLOWEST_START_S = 1.5
_ALL_S, _PER_HOST_S = 9.5, 0.04
_PORTS = range(20000, 32000)  # below those that systems give to outgoing connections
_TRIED = 3

Members = tuple[Fabric, tuple[str, ...]]
_End = tuple[int, str, str]


@dataclass(frozen=True)
class Reach:
    """``pairs`` of hosts were asked for, one way each, over all fabrics; ``unreachable`` says why, by fabric."""

    pairs: int = 0
    unreachable: Mapping[str, str] = field(default_factory=dict)
    took_s: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON data, for ``run.json``."""
        return {"pairs": self.pairs, "unreachable": dict(self.unreachable), "took_s": round(self.took_s, 3)}


@dataclass(frozen=True)
class _Lane:
    """A device on each host of a fabric; hosts are told by their rank in the launch."""

    fabric: str
    label: str
    ends: tuple[_End, ...]

    @property
    def ways(self) -> int:
        return len(self.ends) * (len(self.ends) - 1)


def members(jobs: Iterable[JobPlan]) -> list[Members]:
    """The fabrics that need a route between hosts, with all hosts that the jobs put ranks on.

    RDMA is not among them: its bytes need no route of the kernel's, and its ports have no address to connect to.
    """
    found: dict[str, tuple[Fabric, dict[str, None]]] = {}
    for job in jobs:
        if job.fabric.kind == "tcp":
            found.setdefault(job.fabric.name, (job.fabric, {}))[1].update(dict.fromkeys(job.hosts))
    return [(fabric, tuple(hosts)) for fabric, hosts in found.values() if len(hosts) > 1]


def check_jobs(
    jobs: Iterable[JobPlan], start_on: Callable[[Fabric], Start], before: Mapping[str, str] | None = None
) -> Reach:
    """:func:`check` of all fabrics of the jobs, those of a lab apart from this cluster's own.

    ``before`` is what an earlier attempt at the run found unreachable: it stands for fabrics that no job is left of.
    """
    groups: dict[str, list[Members]] = {}
    asked = members(jobs)
    for fabric, names in asked:
        groups.setdefault(fabric.lab, []).append((fabric, names))
    tried = {fabric.name for fabric, _ in asked}
    earlier = {name: why for name, why in (before or {}).items() if name not in tried}
    found = [check(group, start_on(group[0][0])) for group in groups.values()]
    return Reach(
        sum(each.pairs for each in found),
        earlier | {name: why for each in found for name, why in each.unreachable.items()},
        sum(each.took_s for each in found),
    )


def check(wanted: Sequence[Members], start: Start) -> Reach:
    """Let every host of each fabric connect to every other, all at once; within 10 s, whatever does not answer.

    Connections are TCP, of the fabric's own devices and addresses, and may take 2 s. Beyond 100 hosts it may take
    longer, for the launcher does.
    """
    begun = time.monotonic()
    hosts = tuple(dict.fromkeys(host for _, names in wanted for host in names))
    found = survey(start, hosts)
    lanes: list[_Lane] = []
    unreachable: dict[str, str] = {}
    for fabric, names in wanted:
        why, own = _lanes(fabric, names, hosts, found)
        lanes += own
        if why:
            unreachable[fabric.name] = why
    if lanes:
        left_s = _ALL_S + _PER_HOST_S * len(hosts) - found.took_s
        told = ask(start, hosts, ["pairs", _task(lanes, found)], left_s)
        unreachable |= _missed(lanes, hosts, told)
    pairs = sum(len(names) * (len(names) - 1) for _, names in wanted)
    return Reach(pairs, unreachable, time.monotonic() - begun)


def _until_s(found: Survey) -> float:
    """How long each host stays, from its own start: those that start last are still to reach it."""
    return CONNECT_S + _SKEW_S + min(found.took_s, _SLOWEST_START_S)


def _task(lanes: Iterable[_Lane], found: Survey) -> str:
    task = {
        "nonce": secrets.token_hex(8),
        "ports": random.sample(_PORTS, _TRIED),  # so that two runs seldom meet
        "connect_s": CONNECT_S,
        "until_s": _until_s(found),
        "lanes": [lane.ends for lane in lanes],
    }
    return json.dumps(task, separators=(",", ":"))


def _lanes(fabric: Fabric, names: Sequence[str], hosts: Sequence[str], found: Survey) -> tuple[str, list[_Lane]]:
    """A fabric's lanes, or why it has none; a host with fewer devices than others uses its last for the rest."""
    if silent := [host for host in names if host in found.silent]:
        return found.silent[silent[0]], []
    rails = max(len(fabric.devices.get(host, ())) for host in names)
    lanes = []
    for rail in range(rails):
        ends: dict[str, _End] = {}
        for host in names:
            own = fabric.devices.get(host, ())
            device = own[min(rail, len(own) - 1)] if own else ""
            address = _address(found.addresses[host].get(device, ()))
            if not address:
                return _lacking(host, device, fabric, found), []
            ends[host] = hosts.index(host), device, address
        if twins := _same(ends):
            return twins, []
        device = next(iter(ends.values()))[1]
        label = fabric.name if rails == 1 else f"{fabric.name} by {device}"
        lanes.append(_Lane(fabric.name, label, tuple(ends.values())))
    return ("", lanes) if lanes else (f"{fabric.name} has no devices", [])


def _lacking(host: str, device: str, fabric: Fabric, found: Survey) -> str:
    if not device:
        return f"{host} has no device of {fabric.name}"
    here = found.addresses[host]
    what = f"no address on {device}" if device in here else f"no interface {device}: it has {', '.join(here)}"
    return f"{host} has {what}"


def _address(addresses: Iterable[str]) -> str:
    """The first that other hosts can connect to, IPv4 before IPv6; empty where there is none."""
    found = [ipaddress.ip_interface(text).ip for text in addresses]
    usable = sorted((address for address in found if not address.is_link_local), key=lambda address: address.version)
    return str(usable[0]) if usable else ""


def _same(ends: Mapping[str, _End]) -> str:
    """Two hosts with one address, as bridges of containers have: they would reach themselves."""
    owner: dict[str, str] = {}
    for host, (_, device, address) in ends.items():
        first = owner.setdefault(address, host)
        if first != host:
            return f"{first} and {host} both have {address} on {device}: it leads to no other host"
    return ""


def _missed(lanes: Sequence[_Lane], hosts: Sequence[str], told: Answers) -> dict[str, str]:
    """Why fabrics are not reachable: the first pair of each, and how many more."""
    found: dict[str, list[str]] = {}
    for rank, host in enumerate(hosts):
        for row in told.rows[host]:
            if "lane" not in row:
                continue
            lane = lanes[row["lane"]]
            if row["to"] is None:
                found.setdefault(lane.fabric, []).append(f"{host} cannot listen on {lane.label} ({row['why']})")
            else:
                way = f"no route {host} -> {hosts[row['to']]} on {lane.label} ({row['why']})"
                found.setdefault(lane.fabric, []).append(way)
        if host not in told.done:
            for lane in lanes:
                if any(end[0] == rank for end in lane.ends):
                    heard = f" ({said})" if (said := told.heard(host)) else ""
                    found.setdefault(lane.fabric, []).append(f"{host} did not tell what it reaches{heard}")
    return {fabric: _first(texts) for fabric, texts in found.items()}


def _first(texts: Sequence[str]) -> str:
    more = len(texts) - 1
    return texts[0] + (f"; and {more} more" if more else "")
