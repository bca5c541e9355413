"""``fabricbench lab`` and ``fabricbench fabrics`` as a user runs them."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fabrics.discover import fabrics_of, survey
from fabrics.lab import cluster
from fabrics.lab.cluster import Lab
from fabrics.recipes import LIBRARIES
from suite import cli
from suite.cmd_fabrics import as_json, as_text
from suite.recipetext import Asked
from tests import jobs
from tests.fabrics import trees
from tests.fabrics.conftest import DEADLINE_S, ROOT


def fabricbench(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "suite.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False, cwd=ROOT)


def test_a_lab_s_life(spare: str) -> None:
    made = fabricbench("lab", "up", "--name", spare, "--no-dpus", "--fabric", "eth1g:1gbit")
    assert (made.returncode, made.stdout) == (0, "")
    assert made.stderr == f"lab {spare}: h0, h1 on eth1g\n"
    run = fabricbench("lab", "exec", "--name", spare, "h1", "sh", "-c", "hostname; exit 5")
    assert (run.returncode, run.stdout) == (5, "h1\n")
    shaped = fabricbench("lab", "shape", "--name", spare, "eth1g", "200mbit", "--host", "h1")
    assert shaped.stderr == f"lab {spare}: eth1g h0 1 Gbit/s, h1 200 Mbit/s\n"
    status = next(row for row in json.loads(jobs.inside("lab", "status", "--json").out) if row["name"] == spare)
    assert (status["up"], status["rates_bits_per_s"]) == (True, {"eth1g": {"h0": 1e9, "h1": 2e8}})
    assert f"{spare}" in jobs.inside("lab", "status").out
    assert fabricbench("lab", "down", "--name", spare).stderr == f"lab {spare}: removed\n"
    assert fabricbench("lab", "down", "--name", spare).stderr == f"lab {spare}: was not there\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("up", "--fabric", "eth1g:1gb"), "rate '1gb'"),
        (("up", "--fabric", "eth1g"), "fabric 'eth1g': NAME:RATE"),
        (("up", "--nodes", "1"), "1 nodes: 2 to 99"),
        (("up", "--name", "a/b"), "lab name 'a/b'"),
        (("up", "--name", "run17"), "lab name 'run17': run and a number is the name of a run's own lab"),
        (("exec", "--name", "{lab}", "h7", "true"), "no host h7: one of h0, h1, d0, d1"),
        (("exec", "--name", "{lab}", "h0"), "a command is needed"),
        (("exec", "--name", "absent", "h0", "true"), "lab absent is not up: those up: "),
        (("shape", "--name", "{lab}", "eth9", "1gbit"), "no fabric eth9: one of eth2g5, eth10g"),
        (("shape", "--name", "{lab}", "eth10g", "fast"), "rate 'fast'"),
        (("shape", "--name", "{lab}", "eth10g", "1gbit", "--host", "d0"), "no host d0: one of h0, h1"),
    ],
)
def test_usage_errors_are_one_line(lab: Lab, words: tuple[str, ...], said: str) -> None:
    done = jobs.inside("lab", *(word.format(lab=lab.name) for word in words))
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("fabricbench: ")
    assert said in done.err
    assert done.err.count("\n") == 1


def test_the_lab_of_a_run_that_was_killed_is_called_an_orphan(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In words alone: a real one would be removed by any run that begins meanwhile."""
    monkeypatch.setattr(cluster, "is_orphan", lambda name: name == lab.name)
    assert cli.main(["lab", "status"]) == 0
    told = capsys.readouterr()
    row = next(line for line in told.out.splitlines() if line.split()[0] == lab.name)
    assert row.split()[1:3] == ["up,", "orphan"]
    assert told.err.startswith(f"lab {lab.name} is an orphan: its run has ended")
    assert told.err.endswith(f"now: fabricbench lab down --name {lab.name}\n")
    assert cli.main(["lab", "status", "--json"]) == 0
    assert {row["name"]: row["orphan"] for row in json.loads(capsys.readouterr().out)}[lab.name] is True


def test_a_lab_is_an_orphan_when_its_process_has_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait(timeout=DEADLINE_S)
    assert cluster.is_orphan(f"run{ended.pid}")
    assert not cluster.is_orphan(str(ended.pid))  # a user's own name
    assert not cluster.is_orphan(cluster.own_name())


@pytest.mark.parametrize("words", [("up",), ("down",), ("exec", "h0", "true"), ("shape", "eth10g", "1gbit")])
def test_without_root_it_says_so(
    lab: Lab, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert cli.main(["lab", words[0], "--name", lab.name, *words[1:]]) == 4
    assert "a lab needs root: run as root" in capsys.readouterr().err


def test_fabrics_as_text(lab: Lab) -> None:
    result = jobs.inside("fabrics", "--lab", lab.name)
    assert (result.code, result.err) == (0, "")
    table, *others, hint = result.out.split("\n\n")
    assert any(part.startswith("Interfaces\n") for part in others) == bool(survey().interfaces)
    row = next(line for line in table.splitlines() if line.startswith("eth10g"))
    assert "10 Gbit/s" in row
    assert "EMULATED" in row
    assert "fabricbench fabrics --recipe" in hint
    assert "UCX_TLS" not in result.out


def test_fabrics_as_json(lab: Lab) -> None:
    told = json.loads(jobs.inside("fabrics", "--json", "--lab", lab.name).out)
    assert list(told) == ["fabrics", "interfaces", "rdma_ports", "dpus"]
    rows = {row["name"]: row for row in told["fabrics"]}
    assert rows["eth2g5"]["lab"] == lab.name
    found = {recipe["backend"]: recipe for recipe in rows["eth2g5"]["recipes"]}
    assert list(found) == list(LIBRARIES)
    assert found["gloo"]["env"] == {"GLOO_SOCKET_IFNAME": "eth2g5"}
    assert (found["gloo"]["hosts"], found["gloo"]["local_ranks"], found["gloo"]["verified"]) == ([], [], True)
    assert {recipe["backend"]: recipe["env"] for recipe in rows["shm"]["recipes"]}["gloo"] is None


def test_recipes_can_be_given_to_a_shell(lab: Lab) -> None:
    only = ("--lab", lab.name, "--fabric", "eth10g", "--backend", "mpich-ofi", "--backend", "gloo")
    told = jobs.inside("fabrics", "--recipe", *only)
    assert (told.code, told.err) == (0, "")
    shell = subprocess.run(
        ["env", "-i", "/bin/sh", "-ec", f"{told.out}\nexec /usr/bin/env"],
        capture_output=True, text=True, timeout=DEADLINE_S, check=True,
    )  # fmt: skip
    env = dict(line.split("=", 1) for line in shell.stdout.splitlines())
    assert {name: env[name] for name in env if name not in ("PWD", "_", "SHLVL", "OLDPWD")} == {
        "MPIR_CVAR_CH4_NETMOD": "ofi", "MPIR_CVAR_NOLOCAL": "1", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "eth10g",
        "GLOO_SOCKET_IFNAME": "eth10g",
    }  # fmt: skip
    rows = json.loads(jobs.inside("fabrics", "--json", *only).out)["fabrics"]
    assert [(row["name"], [each["backend"] for each in row["recipes"]]) for row in rows] == [
        ("eth10g", ["mpich-ofi", "gloo"])
    ]


DEFINED = """
[fabrics.ib0]
devices = ["mlx5_0:1"]
rate = "200gbit"
[fabrics.wide]
cidr = "10.255.255.0/24"
[fabrics.unlike]
hosts = { "a[1-2]" = ["ens1"], b = ["ens2"] }
"""


def test_recipes_of_fabrics_that_a_file_defines(tmp_path: Path) -> None:
    (tmp_path / "f.toml").write_text(DEFINED)
    file = ("--fabrics", str(tmp_path / "f.toml"))
    told = jobs.inside("fabrics", "--recipe", *file, "--backend", "mpich", "--flavour", "job", "--transport", "dc")
    lines = "export UCX_TLS=dc,sm,self\nexport UCX_NET_DEVICES=mlx5_0:1\n# not verified on hardware\n# source: "
    assert lines in told.out
    assert "none: transport 'dc': ucx takes tcp on tcp" in told.out
    table = {line.split()[0]: line for line in jobs.inside("fabrics", *file).out.splitlines() if line.strip()}
    assert "has no address in 10.255.255.0/24" in table["wide"]
    assert "fabricbench run --hosts FILE" in table["unlike"]
    assert "shm" in table
    unlike = jobs.inside("fabrics", "--recipe", *file, "--fabric", "unlike", "--backend", "gloo").out
    assert "# gloo on unlike, on a1 a2\nexport GLOO_SOCKET_IFNAME=ens1\n" in unlike
    assert "# gloo on unlike, on b\nexport GLOO_SOCKET_IFNAME=ens2\n" in unlike


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--recipe", "--fabric", "ib9"), "unknown fabric 'ib9': one of shm, tcp-lo, "),
        (("--recipe", "--backend", "mvapich"), "--backend: invalid choice: 'mvapich' (choose from 'mpich', "),
        (("--recipe", "--flavour", "fast"), "--flavour: invalid choice: 'fast' (choose from 'pure', 'job')"),
        (("--recipe", "--transport", "xx"), "--transport: invalid choice: 'xx' (choose from 'rc', "),
        (("--backend", "mpich"), "are for --recipe or --json"),
        (("--recipe", "--fabrics", "/no/such.toml"), "cannot read fabrics file /no/such.toml"),
    ],
)
def test_wrong_words_for_recipes_are_told_with_what_is_allowed(words: tuple[str, ...], said: str) -> None:
    result = jobs.inside("fabrics", *words)
    assert (result.code, result.out) == (2, "")
    assert said in result.err
    assert result.err.count("\n") == 1


TREES = (
    trees.infiniband, trees.roce, trees.eight_rails, trees.omni_path, trees.efa, trees.slingshot, trees.bond,
    trees.bluefield_in_its_host, trees.bluefield_itself, trees.containers, trees.plain,
)  # fmt: skip


@pytest.mark.parametrize("build", TREES)
def test_all_that_is_found_is_told(build: Callable[[], trees.Tree], tmp_path: Path) -> None:
    tree = build()
    found = survey(tree.write(tmp_path), tree.addresses)
    fabrics = fabrics_of(found)
    told = json.loads(json.dumps(as_json(found, fabrics, Asked())))
    text = as_text(found, fabrics)
    for key, things in (("interfaces", found.interfaces), ("rdma_ports", found.ports), ("dpus", found.dpus)):
        assert len(told[key]) == len(things)
        for row, thing in zip(told[key], things, strict=True):
            assert set(row) == {field.name for field in dataclasses.fields(thing)}
    for each in (*found.interfaces, *found.ports):
        line = next(line for line in text.partition("\n\n")[2].splitlines() if line.split()[0:1] == [each.name])
        assert (each.reason or "yes") in line
    assert ("RDMA ports (not verified on hardware)\n" in text) == bool(found.ports)
    assert ("DPUs (not verified on hardware)\n" in text) == bool(found.dpus)


def test_fabrics_of_a_lab_that_is_not_up() -> None:
    result = jobs.inside("fabrics", "--lab", "absent")
    assert (result.code, result.out) == (2, "")
    assert "lab absent is not up" in result.err
