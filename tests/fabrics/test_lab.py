"""Labs for real: made, kept, shaped, crashed and removed. They need root; the fixtures skip without."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fabrics.errors import CannotRun, UserError
from fabrics.lab import check, cleanup, cluster, groups
from fabrics.lab.config import LabConfig, LabFabric
from fabrics.lab.enter import BASE, namespace
from tests.fabrics.conftest import DEADLINE_S, output, run_in, sleeper


def traces(name: str) -> list[str]:
    """All that a lab leaves anywhere: namespaces, mounts, files, control groups."""
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if f"/{name}" in line]
    pinned = output("ip", "netns").split()
    home = Path(BASE, name)
    pins = [pin for pin in pinned if pin.startswith(f"fabricbench.{name}.")]
    return mounts + pins + [str(home)] * home.exists() + [str(folder) for folder in groups.folders(name)]


def host_says(lab: cluster.Lab, host: str, command: str) -> str:
    return run_in(lab, host, "sh", "-c", command).stdout.strip()


def test_a_host_is_a_machine_of_its_own(lab: cluster.Lab) -> None:
    command = (
        "hostname; cat /proc/sys/kernel/random/boot_id /etc/machine-id; readlink /proc/self/ns/ipc /proc/self/ns/uts"
    )
    seen = [host_says(lab, host, command).splitlines() for host in lab.config.members]
    here = output("sh", "-c", command).splitlines()
    assert [lines[0] for lines in seen] == list(lab.config.members)
    for column in zip(*seen, here, strict=True):
        assert len(set(column)) == len(lab.config.members) + 1


def test_a_host_has_its_own_devices_and_sys(lab: cluster.Lab) -> None:
    assert host_says(lab, "h1", "ls /sys/class/net").split() == ["eth10g", "eth2g5", "lo", "mgmt"]
    # the machine's own control groups stay in reach, for they limit what runs in a host
    assert host_says(lab, "h1", "ls /sys/fs/cgroup").split() == sorted(
        entry.name for entry in Path("/sys/fs/cgroup").iterdir()
    )


def test_a_host_has_its_own_shared_memory(lab: cluster.Lab) -> None:
    host_says(lab, "h0", "echo planted > /dev/shm/fabricbench-test")
    assert host_says(lab, "h0", "cat /dev/shm/fabricbench-test") == "planted"  # and it outlives the command
    assert host_says(lab, "h1", "ls /dev/shm") == ""
    assert not Path("/dev/shm/fabricbench-test").exists()
    assert host_says(lab, "h0", "stat -f -c %T /dev/shm; rm /dev/shm/fabricbench-test") == "tmpfs"


def test_names_resolve_and_answer(lab: cluster.Lab) -> None:
    resolved = host_says(lab, "d1", "getent hosts h0 h0-eth10g d0-eth2g5").splitlines()
    wanted = (("h0", "mgmt"), ("h0", "eth10g"), ("d0", "eth2g5"))
    assert [line.split()[0] for line in resolved] == [lab.address(*pair) for pair in wanted]


def test_congestion_control_and_quiet(lab: cluster.Lab) -> None:
    assert host_says(lab, "d0", "cat /proc/sys/net/ipv4/tcp_congestion_control") == "reno"
    assert host_says(lab, "d0", "ip -6 addr") == ""


def test_the_machine_s_own_network_sees_nothing(lab: cluster.Lab) -> None:
    links = output("ip", "-o", "link")
    assert not re.search(r"eth2g5|eth10g|mgmt", links)


def test_up_is_idempotent_and_keeps_what_runs(lab: cluster.Lab) -> None:
    boot_id = host_says(lab, "h0", "cat /proc/sys/kernel/random/boot_id")
    with sleeper(lab, "h0") as process:
        assert cluster.up(lab.config) == lab
        assert process.poll() is None
        process.kill()
    assert host_says(lab, "h0", "cat /proc/sys/kernel/random/boot_id") == boot_id


def test_up_with_another_config_makes_it_anew(spare: str) -> None:
    first = cluster.up(LabConfig(spare))
    with sleeper(first, "h0") as process:
        second = cluster.up(LabConfig(spare, 3, dpus=False, fabrics=(LabFabric("eth1g", 1e9), LabFabric("bare", None))))
        assert process.wait(timeout=DEADLINE_S) == -signal.SIGTERM
    assert cluster.load(spare) == second
    assert host_says(second, "h2", "ls /sys/class/net").split() == ["bare", "eth1g", "lo", "mgmt"]
    with pytest.raises(UserError, match="no host d0"):
        second.enter("d0", ["true"])


def test_down_is_idempotent_and_leaves_nothing(spare: str) -> None:
    lab = cluster.up(LabConfig(spare))
    assert traces(spare)
    with sleeper(lab, "d1", trap="trap '' TERM; ") as stubborn:
        assert cluster.down(spare)
        assert stubborn.wait(timeout=DEADLINE_S) == -signal.SIGKILL
    assert traces(spare) == []
    assert not cluster.down(spare)


def test_down_from_within_ends_the_rest_but_not_itself(spare: str) -> None:
    lab = cluster.up(LabConfig(spare))
    program = f"from fabrics.lab import cluster; print(cluster.down({spare!r}))"
    with sleeper(lab, "h0") as other:
        result = run_in(lab, "h0", sys.executable, "-c", program)
        assert (result.returncode, result.stdout) == (0, "True\n")
        assert other.wait(timeout=DEADLINE_S) == -signal.SIGTERM
    cluster.down(spare)
    assert traces(spare) == []


def test_two_labs_at_once_do_not_meet(lab: cluster.Lab, spare: str) -> None:
    other = cluster.up(LabConfig(spare))
    assert host_says(lab, "h0", "readlink /proc/self/ns/net") != host_says(other, "h0", "readlink /proc/self/ns/net")
    with sleeper(lab, "h0") as process:
        assert cluster.down(spare)  # the sleeper's mount namespace knows of both labs, yet only one goes
        assert process.poll() is None
        process.kill()
    assert traces(spare) == []
    assert host_says(lab, "h0", "hostname") == "h0"


def test_ups_at_once_do_not_mix(spare: str) -> None:
    configs = [LabConfig(spare, nodes) for nodes in (2, 3, 2, 3)]
    with ThreadPoolExecutor(4) as pool:
        labs = list(pool.map(cluster.up, configs))
    assert [lab.config for lab in labs] == configs
    lab = cluster.load(spare)
    assert [host_says(lab, member, "hostname") for member in lab.config.members] == list(lab.config.members)
    pins = {pin.name for pin in cleanup.namespaces(spare)}
    assert pins == {namespace(spare, place) for place in (*lab.config.members, "switch")}


def test_an_up_that_fails_leaves_nothing(spare: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fabrics.lab.build.limit_bytes", lambda rate: -1)  # tc refuses it
    with pytest.raises(CannotRun, match="tc: "):
        cluster.up(LabConfig(spare))
    assert traces(spare) == []


def test_labs_of_processes_that_have_gone_are_removed(can_lab: None) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as owner:
        owned, plain = f"run{owner.pid}", str(owner.pid)
        try:
            for name in (owned, plain):
                cluster.up(LabConfig(name, dpus=False))
            assert owned not in cluster.remove_orphans()
            assert not _status(owned).orphan
            owner.kill()
            owner.wait(timeout=DEADLINE_S)
            assert (_status(owned).orphan, _status(plain).orphan) == (True, False)
            removed = cluster.remove_orphans()
            assert owned in removed
            assert plain not in removed  # whatever its name, it is nobody's own
            assert traces(owned) == []
            assert cluster.find(plain) is not None
        finally:
            for name in (owned, plain):
                cluster.down(name)


def test_status_knows_what_runs(spare: str) -> None:
    lab = cluster.up(LabConfig(spare))
    with sleeper(lab, "d0") as process:
        assert _status(spare) == cluster.LabStatus(spare, lab, 1)
        process.kill()


def _status(name: str) -> cluster.LabStatus:
    return next(status for status in cluster.status() if status.name == name)


def test_load_names_what_there_is(lab: cluster.Lab) -> None:
    assert cluster.load(lab.name) == lab
    with pytest.raises(UserError, match=f"lab absent is not up: those up: .*{lab.name}"):
        cluster.load("absent")
    with pytest.raises(UserError, match="lab name"):
        cluster.load("../../etc")


def test_a_lab_of_another_version_is_half_made(spare: str) -> None:
    lab = cluster.up(LabConfig(spare))
    (lab.home / "lab.json").write_text('{"config": {"colour": "red"}, "rates": {}}')
    assert _status(spare).lab is None
    assert cluster.up(lab.config) == lab


def test_shape(spare: str) -> None:
    lab = cluster.up(LabConfig(spare))
    slow = cluster.shape(lab, "eth10g", 200e6, host="h1")
    assert slow.rates["eth10g"] == {"h0": 10e9, "h1": 200e6}
    assert cluster.load(spare) == slow
    assert {device: rate * 8 for device, rate in _shaped(spare).items() if device.endswith("eth10g")} == {
        "u0.eth10g": 10e9, "c0.eth10g": 10e9, "u1.eth10g": 200e6, "c1.eth10g": 200e6,
    }  # fmt: skip
    bare = cluster.shape(slow, "eth10g", None)
    assert set(bare.rates["eth10g"].values()) == {None}
    assert not [device for device in _shaped(spare) if device.endswith("eth10g")]
    assert cluster.up(lab.config) == lab  # shaped otherwise is not just so
    assert len(_shaped(spare)) == 8
    with pytest.raises(UserError, match="no fabric eth9: one of eth2g5, eth10g"):
        cluster.shape(lab, "eth9", 1e9)
    with pytest.raises(UserError, match="no host d0: one of h0, h1"):
        cluster.shape(lab, "eth10g", 1e9, host="d0")


def _shaped(name: str) -> dict[str, int]:
    """Bytes per second of each shaped device, as the kernel has it."""
    qdiscs = json.loads(output("tc", "-n", namespace(name, "switch"), "-json", "qdisc"))
    return {qdisc["dev"]: qdisc["options"]["rate"] for qdisc in qdiscs if qdisc["kind"] == "tbf"}


STREAM = """
import socket, sys, threading, time
address, size = sys.argv[1], int(sys.argv[2])
if len(sys.argv) == 4:
    with socket.create_server((address, 5002)) as server:
        print("ready", flush=True)
        server.settimeout(20)
        for _ in range(3):
            stream, _ = server.accept()
            left = size
            while left:
                left -= len(stream.recv(1 << 20))
            stream.sendall(b"x")
else:
    times = []
    for _ in range(3):
        stream = socket.create_connection((address, 5002), timeout=20)
        start = time.perf_counter()
        stream.sendall(bytes(size))
        stream.recv(1)
        times.append(time.perf_counter() - start)
    print(min(times))
"""


def stream_seconds(lab: cluster.Lab, network: str, to: str = "h1", size: int = 32 << 20) -> float:
    program = [sys.executable, "-c", STREAM, lab.address(to, network), str(size)]
    with subprocess.Popen(lab.enter(to, [*program, "receive"]), stdout=subprocess.PIPE, text=True) as receiver:
        assert receiver.stdout is not None
        assert receiver.stdout.readline() == "ready\n"
        result = run_in(lab, "h0", *program)
        receiver.wait(timeout=DEADLINE_S)
    return float(result.stdout)


def test_rates_are_in_order(lab: cluster.Lab) -> None:
    slow, fast = stream_seconds(lab, "eth2g5"), stream_seconds(lab, "eth10g")
    assert fast < slow
    assert slow >= 0.85 * (32 << 20) * 8 / 2.5e9  # less the bucket: never faster than its rate


def test_a_host_and_its_dpu_are_not_held_to_the_fabric_s_rate(lab: cluster.Lab) -> None:
    assert stream_seconds(lab, "eth2g5", "d0") < stream_seconds(lab, "eth2g5", "d1")


def test_a_stream_loses_next_to_nothing_in_the_uplink_s_queue(lab: cluster.Lab) -> None:
    before = _drops(lab)
    stream_seconds(lab, "eth2g5")
    assert _drops(lab) - before <= 2


def _drops(lab: cluster.Lab) -> int:
    qdiscs = json.loads(output("tc", "-n", namespace(lab.name, "switch"), "-s", "-json", "qdisc"))
    return sum(qdisc["drops"] for qdisc in qdiscs)


def test_why_not_without_the_tools(can_lab: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda tool: None if tool == "tc" else f"/bin/{tool}")
    assert check.why_not() == "a lab needs the command tc: install the package iproute2"


def test_why_not_without_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "run as root" in check.why_not()
    with pytest.raises(CannotRun, match="run as root"):
        cluster.up()
    with pytest.raises(CannotRun, match="run as root"):
        cluster.down("nolab")


def test_why_not_names_what_the_kernel_lacks(can_lab: None, monkeypatch: pytest.MonkeyPatch) -> None:
    trials = (("ip", "link add x0 type nosuchkind", "bridges (bridge)"),)
    monkeypatch.setattr(check, "_TRIALS", trials)
    assert check.why_not().startswith("a lab needs bridges (bridge) in the kernel: ip: ")


def test_trying_leaves_nothing(can_lab: None) -> None:
    links, here = output("ip", "link"), _own_namespaces()
    assert check.why_not() == ""
    assert output("ip", "link") == links
    assert _own_namespaces() == here


def _own_namespaces() -> list[str]:
    return [str(Path(f"/proc/self/ns/{kind}").readlink()) for kind in ("net", "mnt", "uts", "ipc")]
