"""Lost packets: what a lab host or DPU drops on arrival, by a rule of nftables in its own network namespace.

A packet of the lab may be up to 64 KiB, for segments are cut by the receiver: a drop then takes a whole burst, as a
full queue does. Bandwidth hides loss; the tail of latency and TcpRetransSegs show it.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from functools import partial

from fabrics.errors import CannotRun
from fabrics.lab import kernel
from fabrics.lab.build import in_thread
from fabrics.lab.config import LabConfig
from fabrics.lab.enter import NETNS, namespace

_TABLE = "ip fabricbench"
_PARTS = 1_000_000
LEAST = 1 / _PARTS  # the smallest share that can be drawn
_DEADLINE_S = 30.0


def rules(config: LabConfig, member: str, shares: Mapping[str, float]) -> str:
    """What ``nft`` is told so that ``member`` drops ``shares`` (``{fabric: fraction}``) of what arrives.

    Packets between a host and its DPU do not cross the fabric and are not lost.
    """
    lines = [f"add table {_TABLE}", f"delete table {_TABLE}"]  # so that it may or may not have been there
    if shares:
        lines.append(f"add table {_TABLE}")
        lines.append(f"add chain {_TABLE} loss {{ type filter hook input priority 0 ; }}")
    for fabric, share in shares.items():
        near = f"ip saddr != {config.address(_partner(member), fabric)} " if config.dpus else ""
        parts = round(share * _PARTS)
        drawn = f"numgen random mod {_PARTS} < {parts} " if parts < _PARTS else ""
        lines.append(f"add rule {_TABLE} loss iifname {fabric} {near}{drawn}counter drop")
    return "\n".join(lines) + "\n"


def _partner(member: str) -> str:
    return ("d" if member.startswith("h") else "h") + member[1:]


def apply(config: LabConfig, member: str, shares: Mapping[str, float], hold: int) -> None:
    """Let ``member`` lose ``shares`` of what arrives, and nothing else; raises CannotRun with what nft said."""
    if shutil.which("nft") is None:
        raise CannotRun("packet loss needs the command nft: install the package nftables")
    in_thread(partial(_apply, config, member, rules(config, member, shares), hold))


def _apply(config: LabConfig, member: str, text: str, hold: int) -> None:
    kernel.join(f"{NETNS}/{namespace(config.name, member)}", kernel.NEWNET)
    command = ["nft", "-f", "-"]
    try:
        result = subprocess.run(
            command, input=text, text=True, capture_output=True, timeout=_DEADLINE_S, check=False, pass_fds=(hold,)
        )
    except subprocess.TimeoutExpired:
        raise CannotRun(f"nft: no answer within {_DEADLINE_S:.0f} s") from None
    if result.returncode:
        raise CannotRun(f"packet loss is refused, nf_tables and nft_numgen are needed: {result.stderr.splitlines()[0]}")
