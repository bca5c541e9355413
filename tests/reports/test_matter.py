"""Chapter 7 over planted records: ratios of training beside those of microbenchmarks, and what is concluded."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from reports import beside
from reports.load import load
from reports.render import render
from reports.view import view
from tests.reports import folder as planted
from tests.reports import steps
from tests.reports.folder import Folder, metric

PAIR = {"gloo": 1.10, "mpi": 1.00}


def chapter(f: Folder, folder: Path) -> str:
    text = render(f.write(folder))
    return text[text.index("\n7 Does the fabric") : text.index("\n8 Verdicts")]


def flat(text: str) -> str:
    return " ".join(text.split())


def findings(folder: Path) -> list[dict[str, Any]]:
    return [found for found in json.loads(render(folder, "json"))["findings"] if found["chapter"] == 7]


def allreduce(f: Folder, backend: str, slow_s: float, fast_s: float, **more: Any) -> None:
    for fabric, time_s in (("eth2g5", slow_s), ("eth10g", fast_s)):
        f.add("allreduce", fabric, 26 << 20, backend=backend, dtype="float32", metrics={"time": metric(time_s)}, **more)


def both(f: Folder, slow: dict[str, float] = PAIR, fast: dict[str, float] | None = None) -> None:
    for fabric, found in (("eth2g5", slow), ("eth10g", fast or {mode: 0.9 * s for mode, s in slow.items()})):
        steps.add(f, fabric, found)
        planted.point_to_point(f, fabric, 1)


def cells(text: str, label: str) -> list[list[str]]:
    return [re.split(r"  +", line)[1:] for line in text.splitlines() if line.startswith(f"{label}  ")]


def test_each_model_has_a_table_of_point_to_point_allreduce_and_training(tmp_path: Path) -> None:
    f = Folder()
    both(f)
    allreduce(f, "gloo", 0.2, 0.1, algorithm="gloo")
    allreduce(f, "mpi", 0.3, 0.1)
    text = chapter(f, tmp_path)
    table = text[text.index(", at a glance: ") : text.index("eth2g5 against eth10g (2.5 Gbit/s against 10 Gbit/s, "
                 "EMULATED); ratio")]  # fmt: skip
    assert cells(table, "latency, 8 B") == [["62.03 us", "1.07x [1.05, 1.09]"]]
    assert cells(table, "bandwidth, 4 MiB")[0][1].startswith("3.96x [")
    assert cells(table, "allreduce gloo, 26 MiB") == [["200.0 ms", "2.00x [1.96, 2.04]"]]
    assert cells(table, "allreduce mpi, 26 MiB") == [["300.0 ms", "3.00x [2.94, 3.06]"]]
    assert cells(table, "step, gloo") == [["1100.0 ms", "1.11x [1.07, 1.16]"]]
    assert cells(table, "step, mpi") == [["1000.0 ms", "1.11x [1.07, 1.16]"]]
    assert cells(table, "no-op step (control)") == [["850.0 ms", "1.00x [0.98, 1.02]"]]
    assert cells(table, "exposed %, mpi")[0][0].startswith("15.0 [14.7, 15.3]")
    assert table.count("EMULATED") == 2


def test_one_sentence_tells_of_the_first_exchange_and_in_short_of_the_others(tmp_path: Path) -> None:
    f = Folder()
    both(f)
    text = flat(chapter(f, tmp_path))
    assert "EMULATED) by gloo: THE SLOWER FABRIC COSTS TIME: exposed communication 250.0 [245.0, 255.0] ms" in text
    short = "By mpi the step is 1.11x [1.07, 1.16], exposed 150.0 [147.0, 153.0] ms against 50.00 [49.00, 51.00] ms."
    assert short in text
    (found,) = findings(tmp_path)
    assert found["values"]["exchanges"]["mpi"]["verdict"] == "THE SLOWER FABRIC COSTS TIME"
    assert found["values"]["exchanges"]["mpi"]["exposed"]["value"] == pytest.approx(3.0)
    assert found["values"]["step"]["low"] < 1.111 < found["values"]["step"]["high"]


def test_exchanges_can_differ_in_what_they_show(tmp_path: Path) -> None:
    """One exchange hides what another exposes: the finding keeps them apart."""
    f = Folder()
    both(f, {"gloo": 1.10, "mpi": 0.95}, {"gloo": 0.95, "mpi": 0.95})
    chapter(f, tmp_path)
    (found,) = findings(tmp_path)
    assert found["values"]["verdict"] == "THE SLOWER FABRIC COSTS TIME"
    assert found["values"]["exchanges"]["mpi"]["verdict"].startswith("NO DIFFERENCE SHOWS")


def test_only_the_pair_that_differs_most_stands_in_the_first_lines(tmp_path: Path) -> None:
    third = planted.fabrics()[-2] | {"name": "eth1g", "rate_bits_per_s": 1e9}
    f = Folder(run={"fabrics": [*planted.fabrics(), third]})
    for fabric, step_s in (("eth1g", 1.4), ("eth2g5", 1.1), ("eth10g", 1.0)):
        steps.add(f, fabric, {"gloo": step_s}, hosts=planted.LAB_HOSTS)
    text = chapter(f, tmp_path)
    told = {(found["values"]["slow"], found["values"]["fast"]): found["short"] for found in findings(tmp_path)}
    assert told == {("eth1g", "eth2g5"): False, ("eth1g", "eth10g"): True, ("eth2g5", "eth10g"): False}
    assert cells(text, "step, gloo")[0] == ["1400.0 ms", "1.27x [1.22, 1.32]", "1.40x [1.35, 1.46]"]


def test_a_model_that_ran_on_one_network_has_no_table(tmp_path: Path) -> None:
    f = Folder()
    both(f)
    steps.add(f, "eth10g", {"gloo": 2.0}, workload="vgg16")
    assert "vgg16, at a glance" not in flat(chapter(f, tmp_path))


@pytest.mark.parametrize(
    ("exchange", "backend", "algorithm"),
    [("gloo", "gloo", "gloo"), ("gloo+64M", "gloo", "gloo"), ("mpi", "mpi", ""), ("mpi-ring+unfused", "mpi", "ring"),
     ("dpu", "mpi", ""), ("", "gloo", "gloo")],
)  # fmt: skip
def test_the_allreduce_beside_an_exchange_is_of_its_own_library(
    tmp_path: Path, exchange: str, backend: str, algorithm: str
) -> None:
    f = Folder()
    both(f)
    allreduce(f, "gloo", 0.2, 0.1, algorithm="gloo")
    allreduce(f, "mpi", 0.3, 0.1)
    allreduce(f, "mpi", 0.3, 0.1, algorithm="ring")
    v = view(load(f.write(tmp_path)))
    found = beside.allreduce(v, "eth2g5", "eth10g", v.of("train")[0], exchange)
    assert found is not None
    assert (found[0].backend, found[0].algorithm) == (backend, algorithm)


def test_ranks_on_dpus_train_nothing(tmp_path: Path) -> None:
    f = Folder()
    steps.add(f, "eth2g5", PAIR, ranks=4, roles=("host", "host", "dpu", "dpu"), hosts=("h0", "h1", "d0", "d1"))
    steps.add(f, "eth2g5", {"gloo": 1.0})
    assert [beside.trainers(s) for s in view(load(f.write(tmp_path))).of("train")] == [2, 2]


@pytest.mark.parametrize(
    ("slow", "fast", "noop", "verdict"),
    [(0.95, 1.05, 0.85, "THE SLOWER FABRIC COSTS LESS, which it cannot by itself"),
     (1.30, 1.05, 0.85, "THE SLOWER FABRIC COSTS TIME"),
     (1.05, 1.05, 0.85, "NO DIFFERENCE SHOWS in exposed communication"),
     (0.95, 1.05, 0.70, "NO DIFFERENCE SHOWS in exposed communication")],
)  # fmt: skip
def test_a_slower_fabric_that_comes_out_better_is_not_called_equal(
    tmp_path: Path, slow: float, fast: float, noop: float, verdict: str
) -> None:
    """It cannot be better by itself: that says something of the measurement, and is said."""
    f = Folder()
    for fabric, step_s, noop_s in (("eth2g5", slow, noop), ("eth10g", fast, 0.85 if noop == 0.85 else 0.80)):
        steps.add(f, fabric, {"gloo": step_s}, noop_s=noop_s)
    text = flat(chapter(f, tmp_path))
    (found,) = findings(tmp_path)
    assert found["values"]["verdict"].startswith(verdict)
    assert f"by gloo: {verdict}" in text or f"EMULATED): {verdict}" in text


def test_a_shorter_time_that_is_no_clear_share_of_the_step_may_cost_less(tmp_path: Path) -> None:
    """The slower fabric's machine is twice as fast: exposed time is half, its share of the step the same."""
    f = Folder()
    steps.add(f, "eth2g5", {"gloo": 0.55}, noop_s=0.425)
    steps.add(f, "eth10g", {"gloo": 1.10}, noop_s=0.850)
    said = "THE SLOWER FABRIC MAY COST LESS, which it cannot by itself: exposed communication is shorter, but not"
    assert said in flat(chapter(f, tmp_path))


@pytest.mark.parametrize(("launches", "judged"), [(1, True), (2, False), (5, False), (6, True)])
def test_no_verdict_rests_on_the_range_of_a_few_launches(tmp_path: Path, launches: int, judged: bool) -> None:
    """Two launches on each side lie apart by chance once in three, so it takes six, or the samples of one."""
    f = Folder(launches)
    for launch in range(1, launches + 1):
        steps.add(f, "eth2g5", {"gloo": 1.30 + 0.001 * launch}, launch=launch)
        steps.add(f, "eth10g", {"gloo": 1.00 + 0.001 * launch}, launch=launch)
    text = flat(chapter(f, tmp_path))
    (found,) = findings(tmp_path)
    assert found["values"]["verdict"] == ("THE SLOWER FABRIC COSTS TIME" if judged else "NO CONCLUSION")
    assert ("COSTS TIME" in text) == judged
    few = f"NO CONCLUSION: exposed communication has only a range of {launches} launches, where a verdict takes 6: 4"
    assert (few in text) == (not judged)


def test_nor_does_one_on_whole_steps(tmp_path: Path) -> None:
    f = Folder(2)
    for launch in (1, 2):
        for fabric, step_s in (("eth2g5", 1.3), ("eth10g", 1.0)):
            f.add("train", fabric, launch=launch, backend="gloo", workload="m", metrics={"step": metric(step_s)})
    said = "NO CONCLUSION: range of 2 launches, where a verdict takes 6: step 1.30x [1.30, 1.30]."
    assert said in flat(chapter(f, tmp_path))
