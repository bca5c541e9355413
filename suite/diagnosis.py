"""Words for a job that does not go on: which rank, on which host, doing what. Pure."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

State = Literal["stopped", "silent", "absent", "running"]
_SAID: dict[State, tuple[str, str]] = {  # of one rank, of several; the order is that of telling
    "stopped": ("is stopped", "are stopped"),
    "silent": ("is silent", "are silent"),
    "absent": ("has not started", "have not started"),
    "running": ("is", "are"),
}
_LONGEST = 400


@dataclass(frozen=True)
class Seen:
    """What is known of a rank when time is up; ``where`` is empty where nothing is known of that."""

    rank: int
    host: str
    state: State
    where: str = ""


def ranks_text(ranks: Sequence[int]) -> str:
    """``rank 3``, or ``ranks 0-13, 15``."""
    spans: list[list[int]] = []
    for rank in sorted(ranks):
        if spans and rank == spans[-1][-1] + 1:
            spans[-1] = [spans[-1][0], rank]
        else:
            spans.append([rank])
    text = ", ".join("-".join(map(str, span)) for span in spans)
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {text}"


def told(seen: Sequence[Seen]) -> str:
    """All ranks in a line, those first that do not speak; ranks that are alike are told together."""
    groups: dict[tuple[State, str], list[Seen]] = {}
    for state in _SAID:
        for rank in seen:
            if rank.state == state:
                groups.setdefault((state, rank.where), []).append(rank)
    parts: list[str] = []
    left = len(seen)
    for group in groups.values():
        part = _group(group)
        if parts and len("; ".join([*parts, part])) > _LONGEST:
            return "; ".join([*parts, f"and {left} more ranks"])
        parts.append(part)
        left -= len(group)
    return "; ".join(parts)


def _group(group: Sequence[Seen]) -> str:
    first, hosts = group[0], {rank.host for rank in group}
    who = ranks_text([rank.rank for rank in group]) + (f" on {first.host}" if len(hosts) == 1 and first.host else "")
    verb = _SAID[first.state][len(group) > 1]
    if first.state == "running":
        return f"{who} {verb} in {first.where}"
    return f"{who} {verb}" + (f" (last in {first.where})" if first.where else "")


def death(event: Mapping[str, Any]) -> str:
    """``rank 1 on h1 was killed by SIGKILL (last in MPI_Recv (call 2) in iteration 17 of 100)``."""
    code = event.get("code")
    if code is None:
        how = "ended without a word"
    elif code < 0:
        how = f"was killed by {_signal_name(-code)}"
    else:
        how = f"exited with code {code}"
    where = f" (last in {event['where']})" if event.get("where") else ""
    return f"rank {event['rank']} on {event['host']} {how}{where}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"
