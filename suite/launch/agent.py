"""What stands between a launcher and ssh, so that every host is reached as its line of the hosts file says.

``agent.py TABLE [OPTION ...] HOST COMMAND...`` becomes ssh, which never asks and does not wait long. User, port and
options of the host are put in front; in the command the launcher's own prefix gives way to the host's, since
launchers take it that MPI is installed in one place everywhere. Standard library alone: it starts once a host.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fabrics.hosts import Host

CONNECT_S = 10
_OPTIONS = ("-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_S}")


def table(hosts: Sequence[Host], ssh: Sequence[str], mpiexec: str) -> dict[str, Any]:
    """What the agent has to know; ``ssh`` is the program and its own options, ``mpiexec`` the launcher's path."""
    prefixes = dict.fromkeys(str(path.parent.parent) for path in (Path(mpiexec), Path(mpiexec).resolve()))
    return {"ssh": list(ssh), "prefixes": list(prefixes), "hosts": {host.name: _entry(host) for host in hosts}}


def _entry(host: Host) -> dict[str, Any]:
    user = ["-l", host.user] if host.user else []
    port = ["-p", str(host.port)] if host.port else []
    return {"options": [*user, *port], "prefix": host.mpi_prefix}


def write(folder: Path, known: Mapping[str, Any]) -> Path:
    """The executable for this table, in a folder that lasts as long as the run."""
    data, script = folder / "hosts.json", folder / "agent"
    data.write_text(json.dumps(known))
    words = shlex.join([sys.executable, "-I", "-S", str(Path(__file__).resolve()), str(data)])
    script.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    script.chmod(0o700)
    return script


def command(known: Mapping[str, Any], words: Sequence[str]) -> list[str]:
    """The argument vector of ssh for what a launcher asks of it; a host without an entry is reached as it stands."""
    at = next((n for n, word in enumerate(words) if word.rpartition("@")[2] in known["hosts"]), len(words))
    entry: dict[str, Any] = {"options": [], "prefix": ""}
    if at < len(words):
        entry = known["hosts"][words[at].rpartition("@")[2]]
    rest = [_moved(word, known["prefixes"], entry["prefix"]) for word in words[at + 1 :]]
    return [*known["ssh"], *_OPTIONS, *entry["options"], *words[: at + 1], *rest]


def _moved(word: str, prefixes: Sequence[str], prefix: str) -> str:
    """A word of a command with the launcher's prefixes, where they stand as whole paths, in another place."""
    if not prefix:
        return word
    here = "|".join(re.escape(each) for each in sorted(prefixes, key=len, reverse=True))
    return re.sub(rf"(?<![\w/.-])(?:{here})(?=[/:;\s\"']|$)", lambda _: prefix, word)


def main() -> None:
    """Become ssh; exits with 127 and a line where there is none."""
    known = json.loads(Path(sys.argv[1]).read_text())
    words = command(known, sys.argv[2:])
    try:
        os.execvp(words[0], words)  # noqa: S606 - the launcher waits for ssh itself
    except OSError as error:
        sys.exit(f"fabricbench: {words[0]}: {error.strerror}: name what stands in for ssh with --ssh")


if __name__ == "__main__":
    main()
