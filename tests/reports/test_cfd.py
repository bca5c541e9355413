"""The flow in a report: its section of chapter 6, and what chapter 7 makes of two networks."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reports.chapters.cfd import Loss
from reports.render import render
from reports.summary import summarise
from tests.reports.folder import Folder, training
from training.cfd import figures

MS = 1e-3
STEPS = {"silent": 40, "alone": 36, "one": 70}
MODES = {"eth2g5": {"blocking": 60, "overlapped": 48}, "eth10g": {"blocking": 44, "overlapped": 43}}
METHOD = {"split": "2x1", "halo_bytes_busiest": 655360, "steps": 4}


def folder(launches: int = 1, noise: float = 0.01, **more: Any) -> Folder:
    """A flow on both networks, with times that vary by ``noise``."""
    f, rng = Folder(launches), np.random.default_rng(5)
    for launch in range(1, launches + 1):
        for fabric, modes in MODES.items():
            f.job(fabric, launch)
            samples = {part: ms * MS * rng.normal(1, noise, 12) for part, ms in (modes | STEPS).items()}
            metrics = figures.metrics(samples, figures.Size(64**3, 64**3 // 2, 2))
            f.add("cfd", fabric, launch=launch, workload="euler 64x64x64", algorithm="library", metrics=metrics,
                  method=METHOD, **more)  # fmt: skip
    return f


def text(f: Folder, directory: Path) -> tuple[str, dict[int, str]]:
    """The whole report in one line, and chapters 4, 6 and 7 of it."""
    whole = render(f.write(directory), "text")
    cuts = {n: whole.index(f"\n{n} ", whole.index("\n1 System and method")) for n in range(1, 9)}
    return whole, {n: " ".join(whole[cuts[n] : cuts[n + 1]].split()) for n in (4, 6, 7)}


@pytest.fixture(scope="module")
def chapters(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    return text(folder(), tmp_path_factory.mktemp("cfd"))[1]


def test_chapter_6_sets_modes_and_fabrics_side_by_side(chapters: dict[int, str]) -> None:
    told = chapters[6]
    assert told.startswith("6 Training and CFD")
    assert "Nothing to show" not in told
    assert "euler 64x64x64: 2 ranks" in told
    assert "ranks 2x1 in x and y, halos of 655.4 kB twice a step" in told
    assert re.search(r"eth2g5 blocking (59|60)\.\d+ \[", told)
    assert re.search(r"eth10g blocking 4[34]\.\d+ \[", told)
    assert told.count(" overlapped ") >= 4


def test_it_names_what_strong_scaling_is_lost_to(chapters: dict[int, str]) -> None:
    told = chapters[6]
    assert "overlapped 1.4" in told  # 70 / 48
    assert "times one rank's speed, of 2: most is lost to communication, " in told  # of 48: 1 shares, 4 together, 8
    assert "most is lost to ranks computing at once, " in told  # of 43: 1, 4 and 3
    (s, _) = summarise(folder(noise=0).records)
    loss = Loss.of(s, "overlapped")
    assert loss is not None
    assert [round(x / MS, 6) for x in (loss.ideal, loss.shares, loss.together, loss.messages)] == [35, 1, 4, 8]
    assert list(loss.causes) == ["communication", "ranks computing at once", "uneven shares and ghosts"]


def test_chapter_7_says_whether_the_fabric_matters(chapters: dict[int, str]) -> None:
    told = chapters[7]
    assert (
        "cfd, euler 64x64x64, eth2g5 against eth10g (EMULATED): blocking: THE SLOWER FABRIC COSTS TIME (step 1.3"
        in told
    )
    assert re.search(r"blocking step ms (59|60)\.", told)
    assert "silent step ms (control) " in told


def test_no_difference_and_no_interval_are_said(tmp_path: Path) -> None:
    assert "NO DIFFERENCE SHOWS" in text(folder(noise=0.6), tmp_path / "noisy")[1][7]
    few = Folder()
    for fabric, modes in MODES.items():
        few.job(fabric)
        times = {part: np.full(3, ms * MS) for part, ms in (modes | STEPS).items()}
        metrics = figures.metrics(times, figures.Size(64**3, 64**3 // 2, 2))
        few.add("cfd", fabric, workload="euler 64x64x64", metrics=metrics, method=METHOD)
    assert "blocking: NO CONCLUSION, no intervals to compare" in text(few, tmp_path / "few")[1][7]


def test_the_range_of_a_few_launches_is_no_verdict(tmp_path: Path) -> None:
    told = text(folder(2), tmp_path)[1][7]
    assert "blocking: NO CONCLUSION, only a range of 2 launches, where a verdict takes 6 (step 1.3" in told
    assert "COSTS TIME" not in told


def test_other_chapters_leave_it_to_6_and_7(chapters: dict[int, str]) -> None:
    assert "cells_per_s" not in chapters[4]
    assert "euler" not in chapters[4]


def test_beside_training_both_are_told(tmp_path: Path) -> None:
    f = folder(2)
    training(f, 1)
    told = text(f, tmp_path)[1]
    assert "resnet50 64px batch 16: 2 ranks" in told[6]
    assert "CFD. A compressible flow" in told[6]
    assert "resnet50" in told[7]
    assert "cfd, euler 64x64x64" in told[7]


def test_without_it_chapters_are_as_they_were(tmp_path: Path) -> None:
    f = Folder()
    f.job("eth10g")
    training(f, 1)
    told = text(f, tmp_path)[1]
    assert told[6].startswith("6 Training ---")
    assert "CFD" not in told[6] + told[7]


def test_a_flow_that_broke_up_has_no_numbers_and_its_reason_stands_in_chapter_8(tmp_path: Path) -> None:
    f = Folder()
    f.job("eth10g")
    f.add("cfd", "eth10g", workload="euler 8x8x8 cfl 8", status="failed", reason="unstable in step 2 (cfl 8): ...")
    whole, told = text(f, tmp_path)
    assert "CFD. Nothing to show: no such case has numbers (1 failed)" in told[6]
    assert "unstable in step 2 (cfl 8)" in whole


def test_one_rank_alone_says_nothing_of_a_fabric(tmp_path: Path) -> None:
    f = Folder()
    f.job("shm")
    metrics = figures.metrics({"blocking": np.full(8, 0.07)}, figures.Size(64**3, 64**3, 1))
    f.add("cfd", "shm", ranks=1, workload="euler 64x64x64", metrics=metrics, method={"split": "1x1"})
    told = text(f, tmp_path)[1]
    assert "3.745" in told[6]  # Mcells/s
    assert "communication" not in told[6].replace("Modes: blocking exchanges", "")
    assert "euler" not in told[7]


def test_lines_fit_the_page_and_json_has_the_findings(tmp_path: Path) -> None:
    whole, _ = text(folder(6), tmp_path)
    section = whole[whole.index("CFD. A compressible") : whole.index("\n7 Does")].splitlines()
    assert max(map(len, section)) <= 100
    data = json.loads(render(tmp_path, "json"))
    found = [finding for finding in data["findings"] if "exposed_fraction" in finding["values"]]
    assert found[0]["values"]["workload"] == "euler 64x64x64"
