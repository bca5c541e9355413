"""What every host of a run has: a short job of a plain program, started as the launcher starts any job."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from suite import launch
from suite.children import Children, Lines

PROGRAM = (sys.executable, "-m", "fabrics.reach")
_WITHIN_S, _PER_HOST_S = 4.0, 0.02
_ENDING_S = 0.5  # what the launcher may take after the last host's last line
_LONGEST_WORDS = 200

Start = Callable[[Sequence[str], Sequence[str]], list[str]]
"""The argument vector that starts a program once on each of these hosts: ``start(hosts, program)``."""


@dataclass(frozen=True)
class Answers:
    """What the program said: rows by host, whether a host came to its end, and what else was to be heard."""

    rows: Mapping[str, Sequence[Mapping[str, Any]]]
    done: frozenset[str]
    noise: str
    took_s: float


@dataclass(frozen=True)
class Survey:
    """``addresses`` are each host's interfaces with theirs (``10.0.0.1/24``), ``silent`` why there are none."""

    addresses: Mapping[str, Mapping[str, Sequence[str]]]
    silent: Mapping[str, str] = field(default_factory=dict)
    took_s: float = 0.0


def survey(start: Start, hosts: Sequence[str], within_s: float | None = None) -> Survey:
    """Interfaces and addresses of every host; one that does not answer in time is told apart.

    Never raises for a host's sake: which fabrics are lost with it is the caller's to say.
    """
    limit_s = within_s or _WITHIN_S + _PER_HOST_S * len(hosts)
    told = ask(start, hosts, ["survey"], limit_s)
    heard = f": {told.noise}" if told.noise else ""
    return Survey(
        {
            host: {str(row["interface"]): list(row["addresses"]) for row in told.rows[host] if "interface" in row}
            for host in hosts
            if host in told.done
        },
        {
            host: f"{host} did not answer within {math.ceil(limit_s)} s{heard}"
            if told.took_s >= limit_s
            else f"{host} did not answer{heard}"
            for host in hosts
            if host not in told.done
        },
        told.took_s,
    )


def ask(start: Start, hosts: Sequence[str], arguments: Sequence[str], within_s: float) -> Answers:
    """Run :mod:`fabrics.reach` on every host until all have told, or for ``within_s``; nothing of it is left then."""
    rows: dict[str, list[Mapping[str, Any]]] = {host: [] for host in hosts}
    done: set[str] = set()
    noise, begun = "", time.monotonic()
    until = begun + within_s
    with Children(start(hosts, [*PROGRAM, *arguments]), launch.clean_environment()) as job, Lines(job) as lines:
        for item in lines:
            if isinstance(item, bytes):
                row = _row(item)
                if row is None or not 0 <= row["rank"] < len(hosts):
                    noise = item.decode("utf-8", "replace").strip()[:_LONGEST_WORDS] or noise
                    continue
                host = hosts[row["rank"]]
                rows[host].append(row)
                if "done" in row:
                    done.add(host)
                    until = min(until, time.monotonic() + _ENDING_S) if len(done) == len(hosts) else until
            elif time.monotonic() > until:
                job.note()
                break
    return Answers(rows, frozenset(done), noise, time.monotonic() - begun)


def _row(line: bytes) -> dict[str, Any] | None:
    """What a host said; None where the line is something else."""
    try:
        row = json.loads(line) if line.startswith(b"{") else None
    except ValueError:
        return None
    return row if isinstance(row, dict) and isinstance(row.get("rank"), int) else None
