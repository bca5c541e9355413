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
from fabrics.lab.cluster import Lab
from suite import cli
from suite.cmd_fabrics import as_json, as_text
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
    status = next(row for row in json.loads(fabricbench("lab", "status", "--json").stdout) if row["name"] == spare)
    assert (status["up"], status["rates_bits_per_s"]) == (True, {"eth1g": {"h0": 1e9, "h1": 2e8}})
    assert f"{spare}" in fabricbench("lab", "status").stdout
    assert fabricbench("lab", "down", "--name", spare).stderr == f"lab {spare}: removed\n"
    assert fabricbench("lab", "down", "--name", spare).stderr == f"lab {spare}: was not there\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("up", "--fabric", "eth1g:1gb"), "rate '1gb'"),
        (("up", "--fabric", "eth1g"), "fabric 'eth1g': NAME:RATE"),
        (("up", "--nodes", "1"), "1 nodes: 2 to 99"),
        (("up", "--name", "a/b"), "lab name 'a/b'"),
        (("exec", "--name", "{lab}", "h7", "true"), "no host h7: one of h0, h1, d0, d1"),
        (("exec", "--name", "{lab}", "h0"), "a command is needed"),
        (("exec", "--name", "absent", "h0", "true"), "lab absent is not up: those up: "),
        (("shape", "--name", "{lab}", "eth9", "1gbit"), "no fabric eth9: one of eth2g5, eth10g"),
        (("shape", "--name", "{lab}", "eth10g", "fast"), "rate 'fast'"),
        (("shape", "--name", "{lab}", "eth10g", "1gbit", "--host", "d0"), "no host d0: one of h0, h1"),
    ],
)
def test_usage_errors_are_one_line(lab: Lab, words: tuple[str, ...], said: str) -> None:
    result = fabricbench("lab", *(word.format(lab=lab.name) for word in words))
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("fabricbench: ")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("words", [("up",), ("down",), ("exec", "h0", "true"), ("shape", "eth10g", "1gbit")])
def test_without_root_it_says_so(
    lab: Lab, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert cli.main(["lab", words[0], "--name", lab.name, *words[1:]]) == 4
    assert "a lab needs root: run as root" in capsys.readouterr().err


def test_fabrics_as_text(lab: Lab) -> None:
    result = fabricbench("fabrics", "--lab", lab.name)
    assert (result.returncode, result.stderr) == (0, "")
    table, *others, recipes = result.stdout.split("\n\n")
    assert any(part.startswith("Interfaces\n") for part in others) == bool(survey().interfaces)
    row = next(line for line in table.splitlines() if line.startswith("eth10g"))
    assert "10 Gbit/s" in row
    assert "EMULATED" in row
    assert "UCX_TLS=tcp,self UCX_NET_DEVICES=eth10g" in recipes
    assert "none: gloo has no shared memory transport" in recipes


def test_fabrics_as_json(lab: Lab) -> None:
    told = json.loads(fabricbench("fabrics", "--json", "--lab", lab.name).stdout)
    assert list(told) == ["fabrics", "interfaces", "rdma_ports", "dpus"]
    rows = {row["name"]: row for row in told["fabrics"]}
    assert rows["eth2g5"]["lab"] == lab.name
    env = {recipe["backend"]: recipe["env"] for recipe in rows["eth2g5"]["recipes"]}
    assert env["gloo"] == {"GLOO_SOCKET_IFNAME": "eth2g5"}
    assert {recipe["backend"]: recipe["env"] for recipe in rows["shm"]["recipes"]}["gloo"] is None


TREES = (
    trees.infiniband, trees.roce, trees.eight_rails, trees.omni_path, trees.efa, trees.slingshot, trees.bond,
    trees.bluefield_in_its_host, trees.bluefield_itself, trees.containers, trees.plain,
)  # fmt: skip


@pytest.mark.parametrize("build", TREES)
def test_all_that_is_found_is_told(build: Callable[[], trees.Tree], tmp_path: Path) -> None:
    tree = build()
    found = survey(tree.write(tmp_path), tree.addresses)
    fabrics = fabrics_of(found)
    told = json.loads(json.dumps(as_json(found, fabrics)))
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
    result = fabricbench("fabrics", "--lab", "absent")
    assert (result.returncode, result.stdout) == (2, "")
    assert "lab absent is not up" in result.stderr
