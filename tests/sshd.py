"""A real sshd in hosts of a lab, with keys and settings of its own, for tests of what a launcher does over ssh."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from fabrics.lab import cluster
from fabrics.lab.config import MANAGEMENT

PORT = 2222
_BEGIN_S = 20.0
_EMPTY = Path("/run/sshd")  # where sshd puts the part of itself that has no rights: it will have it so
_SERVER = """\
Port {port}
ListenAddress {address}
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
"""
_CLIENT = """\
Host *
  IdentityFile {folder}/user
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  LogLevel ERROR
"""


def program() -> str:
    """The sshd that is installed; skips the test where there is none."""
    found = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/sbin")
    if found is None or shutil.which("ssh") is None:
        pytest.skip("no sshd here: install the package openssh-server")
    return found


@contextmanager
def serving(lab: cluster.Lab, hosts: Sequence[str], folder: Path) -> Iterator[str]:
    """sshd on the management address of each host while the block lasts; the words that start ssh with its key."""
    for name in ("host", "user"):
        keygen = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)]
        subprocess.run(keygen, check=True, timeout=_BEGIN_S)
    key = " ".join((folder / "host.pub").read_text().split()[:2])
    (folder / "known").write_text("".join(f"[{host}]:{PORT} {key}\n" for host in hosts))
    (folder / "client").write_text(_CLIENT.format(folder=folder))
    made = not _EMPTY.exists()
    _EMPTY.mkdir(mode=0o755, exist_ok=True)
    running: list[subprocess.Popen[bytes]] = []
    try:
        for host in hosts:
            running.append(_start(lab, host, folder))
        yield f"ssh -F {folder / 'client'}"
    finally:
        for process in running:
            process.kill()
            process.wait()
        if made:
            _EMPTY.rmdir()


def _start(lab: cluster.Lab, host: str, folder: Path) -> subprocess.Popen[bytes]:
    settings, log = folder / f"server-{host}", folder / f"log-{host}"
    settings.write_text(_SERVER.format(port=PORT, address=lab.address(host, MANAGEMENT), folder=folder))
    process = subprocess.Popen(lab.enter(host, [program(), "-D", "-e", "-f", str(settings)]), stderr=log.open("wb"))
    deadline = time.monotonic() + _BEGIN_S
    while "listening" not in log.read_text():
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            process.wait()
            raise AssertionError(f"sshd on {host} did not begin: {log.read_text()}")
        time.sleep(0.02)
    return process
