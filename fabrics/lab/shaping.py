"""Change a lab that is up: the rate of its uplinks, the packets that are lost, the cores that its members have."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from fabrics.errors import CannotRun, UserError
from fabrics.lab import cleanup, groups, loss
from fabrics.lab.build import SWITCH, batch, shape_lines
from fabrics.lab.config import check_rate
from fabrics.lab.enter import GROUP, namespace
from fabrics.lab.state import Lab, check_fabric, check_host, check_member, load, locked, need_root, save

_MOVE_S = 5.0


def shape(lab: Lab, fabric: str, rate_bits_per_s: float | None, host: str | None = None) -> Lab:
    """``lab`` with a fabric's uplinks, or one host's, at another rate both ways (None: unshaped).

    Raises UserError for a fabric, host or rate that cannot be.
    """
    check_fabric(lab, fabric)
    if host is not None:
        check_host(lab, host)
    if rate_bits_per_s is not None:
        check_rate(rate_bits_per_s, fabric)
    need_root()
    with locked() as lock:
        now = load(lab.name)
        change = dict.fromkeys([host] if host else now.hosts, rate_bits_per_s)
        batch("tc", shape_lines({fabric: change}), namespace(lab.name, SWITCH), lock)
        shaped = replace(now, rates={**now.rates, fabric: {**now.rates[fabric], **change}})
        save(shaped)
    return shaped


def lose(lab: Lab, fabric: str, share: float, member: str | None = None) -> Lab:
    """``lab`` with every member of a fabric, or one, dropping ``share`` (0 to 1) of the packets that arrive.

    Raises UserError for a fabric, member or share that cannot be, CannotRun where the kernel or nft refuses.
    """
    check_fabric(lab, fabric)
    if member is not None:
        check_member(lab, member)
    if share and not loss.LEAST <= share <= 1:
        raise UserError(f"fabric {fabric}: a loss of {100 * share:g} %: none, or {100 * loss.LEAST:g} to 100 %")
    need_root()
    with locked() as lock:
        now = load(lab.name)
        chosen = [member] if member else now.config.members
        lossy = _changed(now.loss.get(fabric, {}), chosen, share or None)
        after = _without_empty({**now.loss, fabric: lossy})
        for each in chosen:
            loss.apply(now.config, each, {name: by[each] for name, by in after.items() if each in by}, lock)
        shaped = replace(now, loss=after)
        save(shaped)
    return shaped


def _changed(before: Mapping[str, float], chosen: Iterable[str], value: float | None) -> dict[str, float]:
    left = {member: held for member, held in before.items() if member not in set(chosen)}
    return left if value is None else {**left, **dict.fromkeys(chosen, value)}


def _without_empty(by_fabric: Mapping[str, Mapping[str, float]]) -> dict[str, Mapping[str, float]]:
    return {fabric: by_member for fabric, by_member in by_fabric.items() if by_member}


def limit_cpu(lab: Lab, cores: float | None, member: str | None = None) -> Lab:
    """``lab`` with every member, or one, held to ``cores`` (None: no limit), in periods of 10 ms.

    It holds for what runs there now and for what enters later. Raises UserError for a member that cannot be,
    CannotRun where the kernel refuses the quota, as it does below a tenth of a core.
    """
    if member is not None:
        check_member(lab, member)
    need_root()
    with locked():
        now = load(lab.name)
        chosen = [member] if member else now.config.members
        for each in chosen:
            _hold(now, each, cores)
        shaped = replace(now, cpus=_changed(now.cpus, chosen, cores), speeds=_changed(now.speeds, chosen, None))
        save(shaped)
    return shaped


def note_speed(lab: Lab, member: str, speed: float) -> Lab:
    """``lab`` with what was measured of a member's quota: its speed, as a fraction of that without one.

    It holds until the member's quota is set anew. Raises UserError for a member that has no quota.
    """
    check_member(lab, member)
    need_root()
    with locked():
        now = load(lab.name)
        if member not in now.cpus:
            raise UserError(f"lab {lab.name}: {member} has no CPU quota, so its speed is this machine's")
        noted = replace(now, speeds={**now.speeds, member: speed})
        save(noted)
    return noted


def _hold(lab: Lab, member: str, cores: float | None) -> None:
    takes = groups.limit(lab.name, member, cores)
    # first what newcomers read, then those that were there: who enters in between is among one or the other
    marker = lab.home / member / GROUP
    whole = marker.with_suffix(".new")
    whole.write_text(str(takes))
    whole.replace(marker)
    deadline = time.monotonic() + _MOVE_S
    while outside := set(cleanup.processes_of(lab.name, member)) - set(map(int, takes.read_text().split())):
        for pid in outside:
            _move(pid, takes)
        if time.monotonic() > deadline:
            raise CannotRun(f"lab host {member}: processes {', '.join(map(str, outside))} cannot be held to a quota")


def _move(pid: int, takes: Path) -> None:
    try:
        takes.write_text(str(pid))
    except OSError:
        time.sleep(0.001)  # it has ended, and is seen for a moment longer
