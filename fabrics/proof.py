"""Whether a known payload crossed the devices of a fabric, judged from byte counters alone. Pure.

Per host, in bytes over the probe. *Carried*: the fabric's devices sent and received at least the payload, less
2 %; to be certain, half of their background more, which could else stand for what went another way. *Rose*: another
device's count went beyond its background by more than 1 % of the payload, and 64 KiB. A rise no larger than the
background itself proves nothing: the background may have grown.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from fabrics.model import Fabric, Proof, Verdict

CARRIED = 0.98
STEADY = 0.5
RISE = 0.01
RISE_FLOOR_BYTES = 64 * 1024
NOISE = 0.5
LEAST_PROBE_BYTES = 64 * 1024 * 1024
LEAST_JUDGED_BYTES = 4 * RISE_FLOOR_BYTES  # a part of less would hide under the floor
_NAMED = 4

Counts = Mapping[str, tuple[int, int]]
HostCounts = Mapping[str, Counts]
Paths = Mapping[str, Collection[str]]
_Finding = tuple[Verdict, str]


def payload_needed(background_bytes_per_s: float, probe_s: float = 1.0) -> int:
    """Bytes that a probe must send: 64 MiB, or 20 times the background of its ``probe_s`` seconds."""
    return int(max(LEAST_PROBE_BYTES, 20 * background_bytes_per_s * probe_s))


def judge(
    fabric: Fabric,
    sent_bytes: Mapping[str, int],
    received_bytes: Mapping[str, int],
    deltas: HostCounts,
    background: HostCounts,
    paths: Mapping[str, Paths] | None = None,
) -> Proof:
    """The proof of a probe over ``fabric``.

    ``sent_bytes`` and ``received_bytes`` are each host's payload, ``deltas`` what its counters rose by
    meanwhile, and ``background`` the same without the probe, scaled to an equal time. ``paths`` tells, per
    host, which devices are one path (:func:`fabrics.counters.paths`). Hosts without payload are not judged.
    """
    views = []
    for host in dict.fromkeys((*sent_bytes, *received_bytes)):
        payload = (received_bytes.get(host, 0), sent_bytes.get(host, 0))
        if any(payload):
            own, one_path = fabric.devices.get(host, ()), (paths or {}).get(host, {})
            view = _Host(host, payload, tuple(own), deltas.get(host, {}), background.get(host, {}), one_path)
            views.append(view)
    verdict, detail = _doubt(fabric, views) or (_unmoved(views) if fabric.kind == "shm" else _moved(views))
    return Proof(verdict, detail, sum(sent_bytes.values()), deltas, background)


@dataclass(frozen=True)
class _Rise:
    """How far a device's count went beyond its background, and that background."""

    device: str
    excess: int
    background: int


@dataclass(frozen=True)
class _Host:
    """What one host's counters say; pairs are (received, sent) as the counters' (rx, tx)."""

    name: str
    payload: tuple[int, int]
    devices: tuple[str, ...]
    delta: Counts
    background: Counts
    paths: Paths

    @property
    def largest(self) -> int:
        return max(self.payload)

    @property
    def carried(self) -> tuple[int, int]:
        """Bytes on the fabric's devices, and the payload, in the direction that lacks most."""
        counts = [sum(self.delta[device][way] for device in self.devices) for way in (0, 1)]
        pairs = [(count, part) for count, part in zip(counts, self.payload, strict=True) if part]
        return min(pairs, key=lambda pair: pair[0] / pair[1])

    @property
    def complete(self) -> bool:
        count, part = self.carried
        return count >= CARRIED * part

    @property
    def certain(self) -> bool:
        """Whether it would be complete with half of the background that was there before."""
        for way, part in enumerate(self.payload):
            count, idle = (sum(of.get(d, (0, 0))[way] for d in self.devices) for of in (self.delta, self.background))
            if part and count < CARRIED * part + STEADY * idle:
                return False
        return True

    @property
    def rises(self) -> list[_Rise]:
        """Devices off the fabric's path that rose."""
        path = {other for device in self.devices for other in self.paths.get(device, ())}.union(self.devices)
        slack = max(RISE * self.largest, RISE_FLOOR_BYTES)
        rises = [_rise(device, counts, self.background) for device, counts in self.delta.items()]
        return [rise for rise in rises if rise.device not in path and rise.excess > slack]

    def noise(self, devices: Collection[str]) -> list[str]:
        """Those of ``devices`` whose background the payload does not stand out from."""
        limit = NOISE * self.largest
        return [device for device in devices if max(self.background.get(device, (0, 0))) > limit]


def _rise(device: str, counts: tuple[int, int], background: Counts) -> _Rise:
    idle = background.get(device, (0, 0))
    return _Rise(device, max(count - base for count, base in zip(counts, idle, strict=True)), max(idle))


def _doubt(fabric: Fabric, hosts: Sequence[_Host]) -> _Finding | None:
    """Why nothing can be said, or None."""
    if not hosts:
        return "unknown", "nothing was sent"
    for host in hosts:
        shared = fabric.kind == "shm"
        if not host.delta or (not shared and not host.devices):
            return "unknown", f"no counters on {host.name}"
        if missing := [device for device in host.devices if device not in host.delta]:
            return "unknown", f"no counters of {', '.join(missing)} on {host.name}"
        if host.largest < LEAST_JUDGED_BYTES:
            return "unknown", f"a payload of {host.largest} B is below what counters can vouch for"
        if noisy := host.noise(host.delta if shared else host.devices):
            idle = max(host.background[noisy[0]])
            return "unknown", (
                f"{noisy[0]} on {host.name} carries {_size(idle)} in the same time without the probe: "
                f"its payload of {_size(host.largest)} does not stand out"
            )
    return None


def _moved(hosts: Sequence[_Host]) -> _Finding:
    """The finding for a network: its devices must carry all, and no other rise."""
    rises = [(host, rise) for host in hosts for rise in host.rises]
    if all(host.complete for host in hosts):
        if doubtful := [host for host in hosts if not host.certain]:
            return "unknown", f"{_carried(doubtful[0])}, of which its background may be a part: cannot tell"
        if not rises:
            return "proved", f"{_carried(hosts[0])}; no other device rose"
        if all(rise.excess <= rise.background for _, rise in rises):
            return "unknown", f"{_rose(rises)}, no more than without the probe: cannot tell"
    short = [_carried(host) for host in hosts if not host.complete]
    parts = short or [_carried(rises[0][0])]
    some = any(host.carried[0] > RISE * host.carried[1] for host in hosts)
    if not rises:
        missing = "the rest went by shared memory" if some else "no device carried it: shared memory"
        return "disproved", f"{_listed(parts)}: {missing}"
    return "disproved", f"{_listed(parts)}; {_rose(rises)}: {'striped' if some else 'another path'}"


def _unmoved(hosts: Sequence[_Host]) -> _Finding:
    """The finding for shared memory: nothing may rise, lo included."""
    rises, payload = [(host, rise) for host in hosts for rise in host.rises], hosts[0].largest
    if not rises:
        idle = max((max(counts) for host in hosts for counts in host.background.values()), default=0)
        beyond = " beyond its background" if idle > RISE_FLOOR_BYTES else ""
        return "proved", f"no device rose{beyond} for {_size(payload)}"
    if all(rise.excess <= rise.background for _, rise in rises):
        return "unknown", f"{_rose(rises)}, no more than without the probe: cannot tell"
    if all(rise.excess < NOISE * host.largest for host, rise in rises):  # one pair's bytes go one way
        return "unknown", f"{_rose(rises)} for {_size(payload)}: less than those bytes, so perhaps others': cannot tell"
    return "disproved", f"{_rose(rises)} for {_size(payload)}: not shared memory"


def _carried(host: _Host) -> str:
    count, part = host.carried
    return f"{'+'.join(host.devices)} on {host.name} carried {_size(count)} of {_size(part)}"


def _rose(rises: Sequence[tuple[_Host, _Rise]]) -> str:
    return _listed([f"{rise.device} on {host.name} rose {_size(rise.excess)}" for host, rise in rises])


def _listed(parts: Sequence[str]) -> str:
    more = f"; {len(parts) - _NAMED} more" if len(parts) > _NAMED else ""
    return "; ".join(parts[:_NAMED]) + more


def _size(count: int) -> str:
    return f"{count / 1e6:.0f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"
