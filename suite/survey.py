"""What every host of a run has: a short job of a plain program, started as the launcher starts any job."""

from __future__ import annotations

import json
import math
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from suite import launch
from suite.children import Children, Lines

PROGRAM = (sys.executable, "-m", "fabrics.reach")
_WITHIN_S, _PER_HOST_S = 4.0, 0.02
_ENDING_S = 0.5  # what the launcher may take after the last host's last line
_LONGEST_WORDS, _MOST_LINES = 200, 50
_LAUNCHERS_OWN = ("[mpiexec@", "[proxy:", "-----")

Start = Callable[[Sequence[str], Sequence[str]], list[str]]
"""The argument vector that starts a program once on each of these hosts: ``start(hosts, program)``."""


@dataclass(frozen=True)
class Answers:
    """What the program said: rows by host, whether a host came to its end, and the lines that were heard beside it."""

    rows: Mapping[str, Sequence[Mapping[str, Any]]]
    done: frozenset[str]
    noise: Sequence[str]
    took_s: float

    def heard(self, host: str) -> str:
        """The line that may say why a host is silent: ssh's about it, or whoever's; launchers only say that it is.

        Nothing where what was heard is about other hosts: a launcher may end all when the first one fails.
        """
        plain = [line for line in self.noise if not line.startswith(_LAUNCHERS_OWN)]
        about = {name: next(filter(_named(name), plain), "") for name in self.rows}
        if any(about.values()):
            return about.get(host, "")
        return next(iter((*reversed(plain), *reversed(self.noise))), "")


def _named(host: str) -> Callable[[str], object]:
    """What finds the lines that name a host."""
    return re.compile(rf"(?<![\w.-]){re.escape(host)}(?![\w-])").search


@dataclass(frozen=True)
class Survey:
    """``addresses`` are each host's interfaces with theirs (``10.0.0.1/24``), ``silent`` why there are none.

    ``labs`` says of those that are hosts of a lab which (``lab/h0``), ``boot_ids`` what hosts of one machine share.
    """

    addresses: Mapping[str, Mapping[str, Sequence[str]]]
    silent: Mapping[str, str] = field(default_factory=dict)
    took_s: float = 0.0
    labs: Mapping[str, str] = field(default_factory=dict)
    boot_ids: Mapping[str, str] = field(default_factory=dict)

    def one_machine(self, hosts: Iterable[str]) -> str:
        """Why what joins these hosts is emulated: some of them are one machine; empty where none is known to be."""
        asked = tuple(hosts)
        if inside := [host for host in asked if self.labs.get(host)]:
            more = f" and {len(inside) - 2} more" if len(inside) > 2 else ""
            return f"{' and '.join(inside[:2])}{more} {'are hosts' if inside[1:] else 'is a host'} of a lab"
        first: dict[str, str] = {}
        for host in asked:
            if boot_id := self.boot_ids.get(host, ""):
                other = first.setdefault(boot_id, host)
                if other != host:
                    return f"{other} and {host} are one machine: they have one boot id"
        return ""


def survey(start: Start, hosts: Sequence[str], within_s: float | None = None) -> Survey:
    """What every host has, and what tells whether it is a machine of its own; one that does not answer is told apart.

    Never raises for a host's sake: which fabrics are lost with it is the caller's to say.
    """
    limit_s = within_s or _WITHIN_S + _PER_HOST_S * len(hosts)
    told = ask(start, hosts, ["survey"], limit_s)
    late = f" within {math.ceil(limit_s)} s" if told.took_s >= limit_s else ""
    rows = {host: told.rows[host] for host in hosts if host in told.done}
    return Survey(
        {
            host: {str(row["interface"]): list(row["addresses"]) for row in own if "interface" in row}
            for host, own in rows.items()
        },
        {
            host: f"{host} did not answer{late}" + (f": {heard}" if (heard := told.heard(host)) else "")
            for host in hosts
            if host not in told.done
        },
        told.took_s,
        _facts(rows, "lab_host"),
        _facts(rows, "boot_id"),
    )


def _facts(rows: Mapping[str, Sequence[Mapping[str, Any]]], name: str) -> dict[str, str]:
    """What the hosts that know say of themselves under ``name``."""
    return {host: str(row[name]) for host, own in rows.items() for row in own if row.get(name)}


def ask(start: Start, hosts: Sequence[str], arguments: Sequence[str], within_s: float) -> Answers:
    """Run :mod:`fabrics.reach` on every host until all have told, or for ``within_s``; nothing of it is left then."""
    rows: dict[str, list[Mapping[str, Any]]] = {host: [] for host in hosts}
    done: set[str] = set()
    noise, begun = list[str](), time.monotonic()
    until = begun + within_s
    with Children(start(hosts, [*PROGRAM, *arguments]), launch.clean_environment()) as job, Lines(job) as lines:
        for item in lines:
            if isinstance(item, bytes):
                row = _row(item)
                if row is None or not 0 <= row["rank"] < len(hosts):
                    text = item.decode("utf-8", "replace").strip()[:_LONGEST_WORDS]
                    noise += [text] if text and len(noise) < _MOST_LINES else []
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
