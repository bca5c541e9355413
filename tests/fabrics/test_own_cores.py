"""What a process's control groups leave it of the processors, from planted trees; and how a lab tells it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabrics.lab import groups
from fabrics.lab.config import LabConfig
from fabrics.lab.words import held_back, quotas


def planted(root: Path, version: int, quotas_us: dict[str, tuple[str, int]]) -> groups.Controller:
    """Groups by their path, each with a quota and a period."""
    for path, (quota, period) in quotas_us.items():
        folder = root / path
        folder.mkdir(parents=True, exist_ok=True)
        if version == 2:
            (folder / "cpu.max").write_text(f"{quota} {period}\n")
        else:
            (folder / "cpu.cfs_quota_us").write_text(f"{quota}\n")
            (folder / "cpu.cfs_period_us").write_text(f"{period}\n")
    return groups.Controller(root, version)


def own(folder: Path, *lines: str) -> Path:
    path = folder / "cgroup"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(("version", "free"), [(1, "-1"), (2, "max")])
def test_the_tightest_group_counts(tmp_path: Path, version: int, free: str) -> None:
    there = planted(tmp_path / "g", version, {"a": ("50000", 100_000), "a/b": (free, 100_000), "c": ("2500", 10_000)})
    lines = (lambda path: ("7:memory:/m", f"3:cpu,cpuacct:{path}")) if version == 1 else lambda path: (f"0::{path}",)
    assert groups.own_cores(there, own(tmp_path, *lines("/a/b"))) == 0.5
    assert groups.own_cores(there, own(tmp_path, *lines("/c"))) == 0.25
    assert groups.own_cores(there, own(tmp_path, *lines("/"))) is None
    assert groups.own_cores(there, own(tmp_path, *lines("/not/seen/from/here"))) is None


def test_another_controller_s_group_is_not_asked(tmp_path: Path) -> None:
    there = planted(tmp_path / "g", 1, {"a": ("50000", 100_000)})
    assert groups.own_cores(there, own(tmp_path, "3:cpu:/", "4:memory:/a", "0::/a")) is None


def test_a_machine_without_groups_has_no_quota(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = planted(tmp_path, 2, {"a": ("50000", 100_000)})
    assert groups.own_cores(there, tmp_path / "none") is None
    monkeypatch.setattr(groups, "controller", lambda: None)
    assert groups.own_cores() is None


def test_a_measured_speed_stands_beside_its_quota() -> None:
    config = LabConfig("x")
    assert quotas({"d0": 0.2634, "d1": 0.5}, {"d0": 0.2512}, config) == "d0 26.34 % (measured speed 25.1 %), d1 50 %"
    assert quotas(dict.fromkeys(config.members, 0.25), {}, config) == "25 %"
    assert held_back(config, {}, {"d0": 0.26}, {"d0": 0.25}) == ["CPU quota: d0 26 % (measured speed 25 %)"]
    assert held_back(config, {}, {}, {}) == []
