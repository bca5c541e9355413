"""Hosts that a run names: what joins them, how they are reached, and what cannot be."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from fabrics.errors import UserError
from fabrics.hosts import Host
from suite import sites
from suite.launch import Access, Launcher, agent
from suite.survey import Start

HYDRA = Launcher("/opt/here/bin/mpiexec", "hydra", "Hydra 5.0.2")
SLURM = Launcher("/usr/bin/srun", "slurm", "slurm 22.05.8")
HOSTS = "node[1-2] slots=2 user=me port=2222 dpu=bf[1-2]\nbf[1-2] python=/arm/python mpi=/arm/mpi arch=aarch64\n"
FABRICS = """
[fabrics.eth]
devices = ["eth0"]
[fabrics.ib]
devices = ["mlx5_0:1"]
hosts = { "bf[1-2]" = ["mlx5_2:1"] }
[fabrics.part]
hosts = { node2 = ["eth1"] }
[fabrics.none]
hosts = { elsewhere = ["eth1"] }
"""


def named(folder: Path, hosts: str = HOSTS, fabrics: str = FABRICS, **environment: str) -> sites.Site:
    (folder / "hosts").write_text(hosts)
    (folder / "fabrics.toml").write_text(fabrics)
    found = sites.named(folder / "hosts" if hosts else None, folder / "fabrics.toml", environment)
    assert found is not None
    return found


def answers(rows: Sequence[Mapping[str, Any]]) -> Start:
    """A launcher of the poor: the hosts say ``rows``."""

    def start(hosts: Sequence[str], program: Sequence[str]) -> list[str]:
        assert list(program[-2:]) == ["fabrics.reach", "survey"]
        return [sys.executable, "-c", f"print({chr(10).join(map(json.dumps, rows))!r})"]

    return start


def machines(*boot_ids: str, lab: str = "") -> Start:
    """Hosts that say who they are; each is a host of ``lab`` where that is given."""
    who = [{"boot_id": boot_id, "lab_host": lab and f"{lab}/h{n}"} for n, boot_id in enumerate(boot_ids)]
    return answers([{"rank": rank, "done": "x", **each} for rank, each in enumerate(who)])


def test_hosts_and_their_dpus_have_slots_and_devices(tmp_path: Path) -> None:
    site = named(tmp_path)
    assert site.slots == {"node1": 2, "node2": 2, "bf1": 1, "bf2": 1}
    assert site.beside == {"node1": "bf1", "node2": "bf2"}
    found = {fabric.name: fabric for fabric in sites.fabrics(site, machines(*"abcd"))}
    assert list(found) == ["shm", "tcp-lo", "eth", "ib", "part", "none"]
    assert (found["shm"].hosts, found["tcp-lo"].devices) == (("node1",), {"node1": ("lo",)})
    assert found["ib"].hosts == ("node1", "node2")
    assert found["ib"].devices == {
        "node1": ("mlx5_0:1",), "node2": ("mlx5_0:1",), "bf1": ("mlx5_2:1",), "bf2": ("mlx5_2:1",),
    }  # fmt: skip
    assert found["part"].hosts == ("node2",)
    assert found["none"].unusable == "none of the hosts is among those that it names"
    assert not any(fabric.emulated for fabric in found.values())


def test_devices_by_network_are_asked_of_the_hosts(tmp_path: Path) -> None:
    site = named(tmp_path, "a\nb\nc\n", '[fabrics.eth]\ncidr = "10.1.0.0/24"\n')

    rows = [
        {"rank": 0, "interface": "eth0", "addresses": ["10.1.0.1/24"]}, {"rank": 0, "done": "a"},
        {"rank": 1, "interface": "ens5", "addresses": ["10.1.0.2/24"]}, {"rank": 1, "done": "b"},
    ]  # fmt: skip
    (fabric,) = sites.fabrics(site, answers(rows))[2:]
    assert fabric.devices == {"a": ("eth0",), "b": ("ens5",)}
    assert fabric.unusable == "c did not answer"


PAIR = '[fabrics.eth]\ndevices = ["eth0"]\nnote = "top of rack"\n[fabrics.b]\nhosts = { b = ["eth1"], c = ["eth1"] }\n'


@pytest.mark.parametrize(
    ("start", "notes"),
    [
        (machines("1", "2", "3"), {}),
        (machines("", "", ""), {}),  # who says nothing is taken for a machine
        (machines("1", "2", "1"), {"eth": "top of rack; a and c are one machine: they have one boot id"}),
        (machines("1", "2", "2"), {"eth": "top of rack; b and c are one machine: they have one boot id",
                                   "b": "b and c are one machine: they have one boot id"}),
        (machines("1", "2", "3", lab="x"), {"eth": "top of rack; a and b and 1 more are hosts of a lab",
                                            "b": "b and c are hosts of a lab"}),
    ],
)  # fmt: skip
def test_what_joins_hosts_of_one_machine_is_emulated(start: Start, notes: dict[str, str], tmp_path: Path) -> None:
    found = sites.fabrics(named(tmp_path, "a\nb\nc\n", PAIR), start)
    assert {fabric.name: fabric.note for fabric in found if fabric.emulated} == notes


def test_a_silent_host_is_left_to_the_trial_of_routes_where_its_devices_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = sites.fabrics(named(tmp_path, "a\nb\nc\n", PAIR), answers([{"rank": 0, "done": "a"}]))
    assert [(fabric.name, fabric.unusable) for fabric in found[2:]] == [("eth", ""), ("b", "")]
    assert capsys.readouterr().err == ""


def test_an_allocation_is_enough_where_fabrics_are_named(tmp_path: Path) -> None:
    slurm = {"SLURM_JOB_NODELIST": "n[1-2]", "SLURM_TASKS_PER_NODE": "3(x2)"}
    site = named(tmp_path, "", **slurm)
    assert site.allocation and site.slots == {"n1": 3, "n2": 3}
    assert sites.named(None, None, slurm) is None
    with pytest.raises(UserError, match="name them with --hosts"):
        named(tmp_path, "")
    with pytest.raises(UserError, match="say with --fabrics"):
        sites.named(tmp_path / "hosts", None, {})


def test_slurm_follows_no_line_that_is_for_ssh(tmp_path: Path) -> None:
    slurm = {"SLURM_JOB_NODELIST": "n[1-2]", "SLURM_TASKS_PER_NODE": "1(x2)"}
    plain = sites.access(named(tmp_path, "n[1-2] python=/p\n", **slurm), SLURM, tmp_path)
    assert (plain.allocation, plain.agent, plain.pythons) == (True, "", {"n1": "/p", "n2": "/p"})
    with pytest.raises(UserError, match="host n1: port= is for ssh"):
        sites.access(named(tmp_path, "n[1-2] port=3\n", **slurm), SLURM, tmp_path)
    with pytest.raises(UserError, match="same python="):
        sites.access(named(tmp_path, "n1 python=/p\nn2\n", **slurm), SLURM, tmp_path)
    by_ssh = sites.access(named(tmp_path, "n[1-2] port=3\n", **slurm), HYDRA, tmp_path, "ssh")
    assert by_ssh.agent and not by_ssh.allocation


def test_the_agent_never_asks_and_goes_as_the_hosts_file_says(tmp_path: Path) -> None:
    known = agent.table(named(tmp_path).members, ["ssh", "-4"], HYDRA.path)
    common = ["ssh", "-4", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"]
    assert agent.command(known, ["-x", "node1", "/opt/here/bin/proxy", "--a"]) == [
        *common, "-l", "me", "-p", "2222", "-x", "node1", "/opt/here/bin/proxy", "--a",
    ]  # fmt: skip
    assert agent.command(known, ["stranger", "true"]) == [*common, "stranger", "true"]
    moved = agent.command(
        known, ["you@bf1", "X=/opt/here ; LD=/opt/here/lib:/opt/hereby ; \"/opt/here/bin/prted\" /x/opt/here"]
    )  # fmt: skip
    assert moved == [
        *common, "you@bf1", "X=/arm/mpi ; LD=/arm/mpi/lib:/opt/hereby ; \"/arm/mpi/bin/prted\" /x/opt/here",
    ]  # fmt: skip


def test_the_agent_is_an_executable_that_becomes_what_stands_in_for_ssh(tmp_path: Path) -> None:
    script = agent.write(tmp_path, agent.table([Host("h1", user="u s")], [shutil.which("echo") or "echo"], HYDRA.path))
    done = subprocess.run([script, "-x", "h1", "a  b"], capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout == "-o BatchMode=yes -o ConnectTimeout=10 -l u s -x h1 a  b\n"
    absent = agent.write(tmp_path, agent.table([], ["/no/ssh"], HYDRA.path))
    done = subprocess.run([absent, "h1", "x"], capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stderr.strip()) == (
        1, "fabricbench: /no/ssh: No such file or directory: name what stands in for ssh with --ssh",
    )  # fmt: skip


def test_ssh_is_named_by_option_or_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sites.SSH_VARIABLE, "/run/stand in")
    site = named(tmp_path)

    def ssh(option: str) -> list[str]:
        made = sites.access(site, HYDRA, tmp_path, option)
        assert isinstance(made, Access) and made.agent == str(tmp_path / "agent")
        found: list[str] = json.loads((tmp_path / "hosts.json").read_text())["ssh"]
        return found

    assert ssh("") == ["/run/stand", "in"]
    assert ssh("'/a b' -v") == ["/a b", "-v"]
    monkeypatch.delenv(sites.SSH_VARIABLE)
    assert ssh("") == ["ssh"]


def test_an_environment_of_the_hosts_is_named_by_its_whole_path(tmp_path: Path) -> None:
    assert sites.python_of(Path("/nowhere/env")) == "/nowhere/env/bin/python"
    with pytest.raises(UserError, match="no bin/python"):
        sites.python_of(tmp_path)
    with pytest.raises(UserError, match="whole path"):
        sites.python_of(Path("env"))
    with pytest.raises(UserError, match="no bin/python"):
        sites.python_of(Path("/nowhere/env"), elsewhere=False)
    assert sites.python_of(None) == ""
