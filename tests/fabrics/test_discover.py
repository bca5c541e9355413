"""Fabrics found in planted trees, and on a lab."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fabrics import discover as module
from fabrics.discover import addresses_here, by_names, discover, fabrics_of, lab_fabrics, survey
from fabrics.errors import UserError
from fabrics.lab.cluster import Lab, declared_rates
from fabrics.lab.config import LabConfig, LabFabric
from fabrics.model import Fabric
from tests.fabrics import trees

LAB = Lab(LabConfig("x", 3), declared_rates(LabConfig("x", 3)))


def plant(root: Path, name: str, *, kind: str = "device", **files: str) -> None:
    folder = root / "class/net" / name
    folder.mkdir(parents=True)
    for file, text in {"type": "1", "flags": "0x1003", "carrier": "1", "uevent": "INTERFACE=x", **files}.items():
        (folder / file).write_text(f"{text}\n")
    if kind:
        (folder / kind).mkdir()


def unusable(root: Path, *addressed: str) -> dict[str, str]:
    found = discover(LAB, root, {name: ["10.0.0.1/24"] for name in addressed})
    return {fabric.name: fabric.unusable for fabric in found if not fabric.emulated and fabric.devices}


def test_this_machine_s_interfaces(tmp_path: Path) -> None:
    plant(tmp_path, "eno1", speed="25000")
    plant(tmp_path, "eno2", flags="0x1002")
    plant(tmp_path, "eno3", carrier="0")
    plant(tmp_path, "eno4", speed="-1")
    plant(tmp_path, "bond0", kind="bonding")
    plant(tmp_path, "vlan5", kind="", uevent="DEVTYPE=vlan\nINTERFACE=vlan5")
    plant(tmp_path, "docker0", kind="bridge")
    plant(tmp_path, "veth1", kind="")
    plant(tmp_path, "ib0", type="32")
    plant(tmp_path, "tun0", kind="", type="65534")
    plant(tmp_path, "lo", kind="", type="772")
    assert unusable(tmp_path, "eno1", "eno2", "eno3", "bond0", "docker0") == {
        "tcp-lo": "",
        "bond0": "one host only: name hosts to measure it",
        "eno1": "one host only: name hosts to measure it",
        "eno2": "eno2 is down",
        "eno3": "eno3 has no carrier",
        "eno4": "eno4 has no IPv4 address",
        "ib0": "ib0 has no IPv4 address",
        "vlan5": "vlan5 has no IPv4 address",
    }
    rates = {fabric.name: fabric.rate_bits_per_s for fabric in discover(LAB, tmp_path, {})}
    assert (rates["eno1"], rates["eno4"]) == (25e9, None)


def test_a_lab_s_name_for_a_fabric_comes_first(tmp_path: Path) -> None:
    config = LabConfig(fabrics=(LabFabric("eno1", 1e9),))
    plant(tmp_path, "eno1")
    found = [f for f in discover(Lab(config, declared_rates(config)), tmp_path, {}) if f.name == "eno1"]
    assert [fabric.emulated for fabric in found] == [True]


def test_a_lab_s_fabrics() -> None:
    eth2g5, eth10g = lab_fabrics(LAB)
    assert (eth10g.rate_bits_per_s, eth10g.lab, eth10g.emulated, eth10g.usable) == (10e9, "x", True, True)
    assert eth10g.hosts == ("h0", "h1", "h2")
    assert eth10g.devices["d2"] == ("eth10g",)
    assert "tbf to 2.5 Gbit/s, burst 128 KiB" in eth2g5.note


def test_a_slow_host_is_told() -> None:
    rates = {**LAB.rates, "eth10g": {"h0": 10e9, "h1": 2e8, "h2": 10e9}, "eth2g5": {"h0": None, "h1": 1e9, "h2": 1e9}}
    eth2g5, eth10g = lab_fabrics(Lab(LAB.config, rates))
    assert eth10g.rate_bits_per_s == 10e9
    assert eth10g.note.endswith("; h1 at 200 Mbit/s")
    assert eth2g5.rate_bits_per_s is None


def test_loss_and_quotas_are_told_beside_the_burst() -> None:
    loss = {"eth10g": {"h1": 0.005}, "eth2g5": dict.fromkeys(LAB.config.members, 0.01)}
    held = Lab(LAB.config, LAB.rates, loss, {"d0": 0.25, "d1": 0.25})
    eth2g5, eth10g = lab_fabrics(held)
    assert "burst 128 KiB" in eth2g5.note and "burst 305 KiB" in eth10g.note
    assert eth10g.note.endswith("; packets lost on arrival: h1 0.5 %; CPU quota: d0 25 %, d1 25 %")
    assert eth2g5.note.endswith("; packets lost on arrival: 1 %; CPU quota: d0 25 %, d1 25 %")
    assert not any("lost" in fabric.note or "quota" in fabric.note for fabric in lab_fabrics(LAB))


def test_without_a_lab_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "why_not", lambda: "no tbf")
    assert {fabric.name: fabric.unusable for fabric in lab_fabrics()} == {"eth2g5": "no tbf", "eth10g": "no tbf"}
    monkeypatch.setattr(module, "why_not", lambda: "")
    assert all(fabric.usable for fabric in lab_fabrics())


def test_this_machine_for_real() -> None:
    found = discover()
    assert [fabric.name for fabric in found[:4]] == ["shm", "tcp-lo", "eth2g5", "eth10g"]
    assert all(Fabric.from_dict(fabric.as_dict()) == fabric for fabric in found)


def test_addresses_here() -> None:
    assert "127.0.0.1/8" in addresses_here()["lo"]
    assert module._with_prefix("fe80::1%eth0", "ffff:ffff:ffff:ffff::") == "fe80::1/64"
    assert module._with_prefix("10.0.0.1", None) == "10.0.0.1/32"


def test_a_survey_makes_fabrics_of_all_kinds(tmp_path: Path) -> None:
    tree = trees.roce()
    found = survey(tree.write(tmp_path), tree.addresses)
    own = [(fabric.name, fabric.kind) for fabric in fabrics_of(found, LAB) if not fabric.emulated]
    assert own == [
        ("shm", "shm"),
        ("tcp-lo", "tcp"),
        ("enp94s0f0", "tcp"),
        ("enp94s0f0.7", "tcp"),
        ("enp94s0f1", "tcp"),
        ("enp134s0", "tcp"),
        ("roce-rocep94s0f0", "roce"),
        ("roce-rocep94s0f1", "roce"),
        ("roce-rocep134s0", "roce"),
    ]
    assert discover(LAB, tmp_path, tree.addresses) == fabrics_of(found, LAB)
    assert all(Fabric.from_dict(fabric.as_dict()) == fabric for fabric in fabrics_of(found, LAB))


def test_64_interfaces_are_read_from_files_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError(f"a process was started: {args}")

    tree = trees.plain(64)
    tree.write(tmp_path)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    reads = []
    read_text = Path.read_text
    monkeypatch.setattr(Path, "read_text", lambda path, **words: reads.append(path) or read_text(path, **words))
    found = survey(tmp_path, tree.addresses)
    assert [each.name for each in found.interfaces] == [f"ens{number}" for number in range(64)]
    assert all(each.speed_bits_per_s == 10e9 and not each.reason for each in found.interfaces)
    assert len(reads) <= 64 * 30  # a few small files each, none of them once for each other interface


def test_by_names() -> None:
    found = lab_fabrics(LAB)
    assert [fabric.name for fabric in by_names(found, ["eth10g", "eth2g5", "eth10g"])] == ["eth10g", "eth2g5"]
    with pytest.raises(UserError, match="unknown fabric 'ib0': one of eth2g5, eth10g"):
        by_names(found, ["eth10g", "ib0"])
