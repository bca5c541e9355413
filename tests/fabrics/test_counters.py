"""Counters from planted trees, and exact ones on the lab."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from fabrics import counters
from fabrics.lab.cluster import Lab
from tests.fabrics.conftest import ROOT, run_in

WRAP = 2**32


def plant(root: Path, device: str, rx: int, tx: int, lowers: tuple[str, ...] = ()) -> None:
    statistics = root / "class/net" / device / "statistics"
    statistics.mkdir(parents=True)
    (statistics / "rx_bytes").write_text(f"{rx}\n")
    (statistics / "tx_bytes").write_text(f"{tx}\n")
    for lower in lowers:
        (root / "class/net" / device / f"lower_{lower}").symlink_to(root / "class/net" / lower)


def test_read_every_device_lo_included(tmp_path: Path) -> None:
    plant(tmp_path, "lo", 7, 7)
    plant(tmp_path, "eth0", 2**40, 5)
    (tmp_path / "class/net/bonding_masters").write_text("bond0\n")  # a file, not a device
    assert counters.read(tmp_path) == {"eth0": (2**40, 5), "lo": (7, 7)}


def test_read_leaves_out_what_vanishes(tmp_path: Path) -> None:
    plant(tmp_path, "eth0", 1, 2)
    plant(tmp_path, "gone", 1, 2)
    (tmp_path / "class/net/gone/statistics/tx_bytes").unlink()
    assert counters.read(tmp_path) == {"eth0": (1, 2)}
    assert counters.read(tmp_path / "nowhere") == {}


@pytest.mark.parametrize(
    ("before", "after", "rise"),
    [
        (100, 350, 250),
        (WRAP - 100, 50, 150),  # a 32-bit counter that wrapped
        (WRAP // 2 - 1000, 40, 40),  # too far from its end: it began again
        (WRAP + 100, 50, 50),  # a wider counter cannot have wrapped there
        (0, 2**40, 2**40),
    ],
)
def test_delta(before: int, after: int, rise: int) -> None:
    assert counters.delta({"e": (before, 0)}, {"e": (after, 0)}) == {"e": (rise, 0)}
    assert counters.delta({"e": (0, before)}, {"e": (0, after)}) == {"e": (0, rise)}


def test_delta_of_devices_that_come_and_go() -> None:
    assert counters.delta({"old": (5, 5)}, {"new": (3, 4)}) == {"new": (3, 4)}


def test_scaled_rounds_up() -> None:
    assert counters.scaled({"e": (10, 1)}, 2.05) == {"e": (21, 3)}


def test_paths_of_a_bond_and_its_vlans(tmp_path: Path) -> None:
    for slave in ("eth0", "eth1", "eth2"):
        plant(tmp_path, slave, 0, 0)
    plant(tmp_path, "bond0", 0, 0, ("eth0", "eth1"))
    plant(tmp_path, "bond0.10", 0, 0, ("bond0",))
    plant(tmp_path, "bond0.20", 0, 0, ("bond0",))
    paths = counters.paths(tmp_path)
    assert paths["bond0.10"] == {"bond0.10", "bond0", "eth0", "eth1"}
    assert paths["eth1"] == {"eth1", "bond0", "bond0.10", "bond0.20"}
    assert paths["eth2"] == {"eth2"}


STREAM = """
import json, socket, sys, time
from fabrics import counters
role, peer, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
if role == "receive":
    with socket.create_server((peer, 5001)) as server:
        print("ready", flush=True)
        server.settimeout(20)
        stream, _ = server.accept()
        before, left = counters.read(), size
        stream.sendall(b"x")
        while left:
            left -= len(stream.recv(1 << 20))
        print(json.dumps(counters.delta(before, counters.read())), flush=True)
        stream.sendall(b"x")
else:
    stream = socket.create_connection((peer, 5001), timeout=20)
    stream.recv(1)
    before = counters.read()
    stream.sendall(bytes(size))
    stream.recv(1)
    print(json.dumps(counters.delta(before, counters.read())), flush=True)
"""


def test_exact_on_the_lab(lab: Lab, tmp_path: Path) -> None:
    import subprocess

    size, address = 8 << 20, lab.address("h1", "eth10g")
    program = [sys.executable, "-c", STREAM]
    receiver = subprocess.Popen(
        lab.enter("h1", [*program, "receive", address, str(size)]), stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert receiver.stdout is not None
    try:
        assert receiver.stdout.readline() == "ready\n"
        sender = run_in(lab, "h0", *program, "send", address, str(size))
        sent, received = json.loads(sender.stdout), json.loads(receiver.communicate(timeout=20)[0])
    finally:
        receiver.kill()
        receiver.wait()
    for count in (sent["eth10g"][1], received["eth10g"][0]):
        assert size <= count <= 1.08 * size  # headers of 66 bytes in 1514
    for device in ("lo", "mgmt", "eth2g5"):
        assert sent[device] == received[device] == [0, 0]
