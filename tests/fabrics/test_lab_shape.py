"""Labs held back: quotas of the CPU and lost packets."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from fabrics.errors import CannotRun, UserError
from fabrics.lab import cluster, groups, loss
from fabrics.lab.config import LabConfig, parse_percent
from fabrics.lab.enter import GROUP
from suite import cli
from tests.fabrics.conftest import run_in, sleeper
from tests.fabrics.test_commands import fabricbench
from tests.fabrics.test_lab import host_says, stream_seconds, traces

SHARES = {"eth10g": {"h0": 0.02}, "eth2g5": {"h0": 0.01, "d1": 1.0}}


@pytest.mark.parametrize(("text", "share"), [("12.5%", 0.125), ("0.001%", 1e-5), ("100%", 1.0), ("150%", 1.5)])
def test_percent(text: str, share: float) -> None:
    assert parse_percent(text, "loss") == pytest.approx(share)


@pytest.mark.parametrize("text", ["", "5", "%", "-1%", "5 %", "1e3%", "0,5%"])
def test_percent_names_the_token(text: str) -> None:
    with pytest.raises(UserError, match=f"loss {text!r}"):
        parse_percent(text, "loss")


def test_rules_drop_on_arrival_from_the_fabric_but_not_from_the_partner() -> None:
    lines = loss.rules(LabConfig(), "h0", {"eth10g": 0.02}).splitlines()
    assert lines[:2] == ["add table ip fabricbench", "delete table ip fabricbench"]
    partner = LabConfig().address("d0", "eth10g")
    assert lines[-1].endswith(f"iifname eth10g ip saddr != {partner} numgen random mod 1000000 < 20000 counter drop")
    assert "saddr" not in loss.rules(LabConfig(dpus=False), "h0", {"eth10g": 0.02})
    assert len(loss.rules(LabConfig(), "h0", {}).splitlines()) == 2
    assert "numgen" not in loss.rules(LabConfig(), "h0", {"eth10g": 1.0})  # it draws below its modulus only


@pytest.fixture
def lossy(spare: str) -> cluster.Lab:
    """A lab that may lose packets."""
    made = cluster.up(LabConfig(spare))
    try:
        cluster.lose(made, "eth10g", 0.0)
    except CannotRun as error:
        if "nft" not in str(error):
            raise
        pytest.skip(str(error))
    return made


def _resent(lab: cluster.Lab, host: str) -> int:
    names, values = [line.split() for line in host_says(lab, host, "grep ^Tcp: /proc/net/snmp").splitlines()]
    return int(dict(zip(names, values, strict=True))["RetransSegs"])


def _dropped(lab: cluster.Lab, host: str) -> int:
    rules = json.loads(host_says(lab, host, "nft -j list ruleset") or "{}").get("nftables", [])
    parts = [part for entry in rules for part in entry.get("rule", {}).get("expr", [])]
    return sum(part["counter"]["packets"] for part in parts if "counter" in part)


def test_lost_packets_are_sent_again(lossy: cluster.Lab) -> None:
    lab = cluster.lose(lossy, "eth10g", 0.05, "h1")
    assert lab.loss == {"eth10g": {"h1": 0.05}}
    assert cluster.load(lab.name) == lab
    before = _resent(lab, "h0")
    stream_seconds(lab, "eth10g", size=8 << 20)
    resent, dropped = _resent(lab, "h0") - before, _dropped(lab, "h1")
    assert resent > 0
    assert dropped > 0
    stream_seconds(lab, "eth2g5", size=8 << 20)
    assert _dropped(lab, "h1") == dropped  # the other fabric loses nothing


def test_a_host_loses_nothing_of_its_dpu_s(lossy: cluster.Lab) -> None:
    lab = cluster.lose(lossy, "eth10g", 1.0, "d0")
    stream_seconds(lab, "eth10g", to="d0", size=1 << 20)
    assert _dropped(lab, "d0") == 0
    ping = run_in(lab, "d1", sys.executable, "-c", KNOCK, lab.address("d0", "eth10g"))
    assert ping.stdout.strip() == "TimeoutError"
    assert _dropped(lab, "d0") > 0


KNOCK = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], 9), timeout=0.5)
except OSError as error:
    print(type(error).__name__)
"""


def test_loss_is_set_by_host_and_fabric_and_taken_back(lossy: cluster.Lab) -> None:
    lab = lossy
    for fabric, by_member in SHARES.items():
        for member, share in by_member.items():
            lab = cluster.lose(lab, fabric, share, member)
    assert lab.loss == SHARES
    assert host_says(lab, "h0", "nft list ruleset").count(" drop") == 2
    lab = cluster.lose(lab, "eth2g5", 0.0)
    assert lab.loss == {"eth10g": {"h0": 0.02}}
    assert host_says(lab, "d1", "nft list ruleset") == ""
    lab = cluster.lose(lab, "eth10g", 0.0, "h0")
    assert lab == lossy
    with pytest.raises(UserError, match=r"a loss of 150 %: none, or 0\.0001 to 100 %"):
        cluster.lose(lab, "eth10g", 1.5)
    with pytest.raises(UserError, match="none, or"):
        cluster.lose(lab, "eth10g", 1e-8)
    with pytest.raises(UserError, match="no fabric eth9"):
        cluster.lose(lab, "eth9", 0.5)


def test_without_nft_it_says_so(lab: cluster.Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda tool: None)
    with pytest.raises(CannotRun, match="install the package nftables"):
        cluster.lose(lab, "eth10g", 0.1)
    assert cluster.load(lab.name) == lab


MOUNTS_1 = "34 33 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n42 33 0:36 / /u rw - cgroup2 none rw\n"


def test_the_cpu_controller_is_found_where_it_is(tmp_path: Path) -> None:
    assert groups.controller(MOUNTS_1) == groups.Controller(Path("/sys/fs/cgroup/cpu"), 1)
    joined = "30 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    assert groups.controller(joined) == groups.Controller(Path("/sys/fs/cgroup/cpu,cpuacct"), 1)
    second = f"29 23 0:26 / {tmp_path} rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
    assert groups.controller(second) is None
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory\n")
    assert groups.controller(second) == groups.Controller(tmp_path, 2)
    only_set = "35 33 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
    assert groups.controller(only_set) is None


def test_a_quota_in_version_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cgroup.subtree_control").write_text("memory")
    monkeypatch.setattr(groups, "controller", lambda: groups.Controller(tmp_path, 2))
    takes = groups.limit("x", "d0", 0.25)
    assert takes == tmp_path / "fabricbench.x.d0/cgroup.procs"
    assert (takes.parent / "cpu.max").read_text() == "2500 10000"
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpu"
    groups.limit("x", "d0", None)
    assert (takes.parent / "cpu.max").read_text() == "max 10000"


def test_a_quota_that_is_refused_in_silence_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Deaf(groups.Controller):
        def write(self, folder: Path, quota_us: int | None) -> None:
            (folder / "cpu.max").write_text("max 100000")

    (tmp_path / "cgroup.subtree_control").write_text("cpu")
    monkeypatch.setattr(groups, "controller", lambda: Deaf(tmp_path, 2))
    with pytest.raises(CannotRun, match=r"quota of 500 us in 10000 us is refused .* has no limit: at least 1000 us"):
        groups.limit("x", "d0", 0.05)


def test_without_a_cpu_controller_it_says_so(lab: cluster.Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "controller", lambda: None)
    with pytest.raises(CannotRun, match="needs the cpu controller"):
        cluster.limit_cpu(lab, 0.5, "d0")


@pytest.fixture
def limited(spare: str) -> cluster.Lab:
    """A lab whose members may have a quota."""
    if groups.controller() is None:
        pytest.skip("no cpu controller of control groups is mounted here")
    return cluster.up(LabConfig(spare))


BURN = """
import time
start, used = time.monotonic(), time.process_time()
while time.monotonic() - start < 0.5:
    pass
print((time.process_time() - used) / (time.monotonic() - start))
"""


def _has(lab: cluster.Lab, member: str) -> set[int]:
    there = groups.controller()
    assert there is not None
    return set(map(int, (there.folder(lab.name, member) / "cgroup.procs").read_text().split()))


def test_a_quota_holds_what_runs_and_what_enters(limited: cluster.Lab) -> None:
    with sleeper(limited, "d0") as early, sleeper(limited, "d1") as elsewhere:
        lab = cluster.limit_cpu(limited, 0.25, "d0")
        assert lab.cpus == {"d0": 0.25}
        assert cluster.load(lab.name) == lab
        assert _has(lab, "d0") == {early.pid}
        with sleeper(lab, "d0") as late:
            assert _has(lab, "d0") == {early.pid, late.pid}
            late.kill()
        for process in (early, elsewhere):
            process.kill()
    share = float(host_says(lab, "d0", f"{sys.executable} -c '{BURN}'"))
    assert share < 0.35  # whatever else this machine does
    nested = run_in(lab, "h0", str(lab.agent), "d0", f"{sys.executable} -c '{BURN}'")
    assert float(nested.stdout) < 0.35


def test_a_quota_is_read_back(limited: cluster.Lab) -> None:
    there = groups.controller()
    assert there is not None
    lab = cluster.limit_cpu(limited, 1.5)
    assert lab.cpus == dict.fromkeys(lab.config.members, 1.5)
    assert {there.read(there.folder(lab.name, member)) for member in lab.config.members} == {(15_000, 10_000)}
    with pytest.raises(CannotRun, match=r"500 us in 10000 us is refused .* has 15000 us in 10000 us: at least 1000 us"):
        cluster.limit_cpu(lab, 0.05, "d0")
    assert cluster.load(lab.name) == lab
    free = cluster.limit_cpu(lab, None, "d1")
    assert there.read(there.folder(lab.name, "d1"))[0] is None
    assert "d1" not in free.cpus
    assert cluster.up(lab.config) == limited  # held back is not just so
    assert groups.folders(lab.name) == []


def test_a_quota_goes_with_its_lab_even_from_within(limited: cluster.Lab) -> None:
    lab = cluster.limit_cpu(limited, 0.5, "h0")
    result = run_in(lab, "h0", sys.executable, "-m", "suite.cli", "lab", "down", "--name", lab.name)
    assert (result.returncode, result.stderr) == (0, f"lab {lab.name}: removed\n")
    assert traces(lab.name) == []


def test_two_labs_have_quotas_of_their_own(limited: cluster.Lab) -> None:
    other = cluster.up(LabConfig(f"{limited.name}b", dpus=False))
    try:
        cluster.limit_cpu(limited, 0.5, "h0")
        cluster.limit_cpu(other, 0.2, "h0")
        cluster.down(other.name)
        assert [folder.name for folder in groups.folders(limited.name)] == [f"fabricbench.{limited.name}.h0"]
    finally:
        cluster.down(other.name)


def test_a_quota_that_vanished_is_no_quota(limited: cluster.Lab) -> None:
    lab = cluster.limit_cpu(limited, 0.5, "h0")
    (lab.home / "h0" / GROUP).write_text("/sys/fs/cgroup")  # no file that takes a process
    result = run_in(lab, "h0", "true")
    assert result.returncode == 4
    assert "its CPU quota: Is a directory" in result.stderr


def test_shape_and_status_as_a_user_sees_them(limited: cluster.Lab) -> None:
    name = limited.name
    slow = fabricbench("lab", "shape", "--name", name, "--cpu", "25%", "--host", "d0")
    assert (slow.returncode, slow.stderr) == (0, f"lab {name}: CPU d0 25 %\n")
    refused = fabricbench("lab", "shape", "--name", name, "--cpu", "5%", "--host", "d0")
    assert refused.returncode == 4
    assert "is refused by the kernel, which has 2500 us in 10000 us" in refused.stderr
    lossy = fabricbench("lab", "shape", "--name", name, "eth10g", "1gbit", "--loss", "0.5%", "--host", "h1")
    if "nft" not in lossy.stderr:
        assert lossy.stderr == f"lab {name}: eth10g h0 10 Gbit/s, h1 1 Gbit/s, loss h1 0.5 %\n"
        told = next(row for row in json.loads(fabricbench("lab", "status", "--json").stdout) if row["name"] == name)
        assert (told["loss"], told["cpu_cores"]) == ({"eth10g": {"h1": 0.005}}, {"d0": 0.25})
        row = next(line for line in fabricbench("lab", "status").stdout.splitlines() if line.split()[0] == name)
        assert "loss h1 0.5 %" in row
        assert "CPU d0 25 %" in row
    free = fabricbench("lab", "shape", "--name", name, "--cpu", "none")
    assert free.stderr == f"lab {name}: CPU without quota\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "what to change is needed"),
        (("eth10g",), "fabric eth10g needs a rate or --loss"),
        (("eth10g", "--cpu", "50%"), "fabric eth10g needs a rate or --loss"),
        (("--loss", "1%"), "--loss needs a fabric"),
        (("eth10g", "--loss", "5"), "loss '5': a number and %"),
        (("--cpu", "half"), "CPU share 'half'"),
        (("--cpu", "50%", "--host", "h7"), "no host h7: one of h0, h1, d0, d1"),
        (("eth10g", "--loss", "200%"), "a loss of 200 %"),
    ],
)
def test_usage_errors_of_shape_are_one_line(
    lab: cluster.Lab, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["lab", "shape", "--name", lab.name, *words]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert said in told.err
    assert told.err.count("\n") == 1


def test_groups_of_other_programs_are_not_ours(limited: cluster.Lab) -> None:
    there = groups.controller()
    assert there is not None
    foreign = there.root / f"fabricbench-test-{os.getpid()}"
    foreign.mkdir()
    try:
        cluster.limit_cpu(limited, 0.5)
        cluster.down(limited.name)
        assert foreign.exists()
    finally:
        foreign.rmdir()
