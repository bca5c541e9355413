"""A speed set by measuring it: on planted clocks, and on a lab."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from fabrics.errors import CannotRun, UserError
from fabrics.lab import cluster, groups
from fabrics.lab.config import parse_speed
from microbench.stats import Interval
from suite import labspeed
from tests import jobs, labs


@pytest.fixture(scope="module")
def lab() -> Iterator[cluster.Lab]:
    """A lab whose members may have a quota."""
    with labs.or_skip("speed") as made:
        if groups.controller() is None:
            pytest.skip("no cpu controller of control groups is mounted here")
        yield made


class Planted:
    """Burners of a member whose work goes at ``rate(quota)`` of a core, and of one without quota."""

    def __init__(self, lab: cluster.Lab, monkeypatch: pytest.MonkeyPatch, member: str, rate) -> None:
        self.lab, self.member, self.rate, self.quotas = lab, member, rate, []
        monkeypatch.setattr(labspeed, "_pair", self.pair)

    def pair(self, *_: object) -> float:
        self.quotas.append(cluster.load(self.lab.name).cpus[self.member])
        return self.rate(self.quotas[-1])


def test_a_member_goes_at_its_speed_within_three_percent(lab: cluster.Lab) -> None:
    after, seen = labspeed.calibrate(lab, "d0", 0.25)
    assert abs(seen.value / 0.25 - 1) <= labspeed.TOLERANCE
    assert after.speeds == {"d0": seen.value}
    assert cluster.load(lab.name) == after
    line = labspeed.told("d0", after, seen)
    assert line.startswith(
        f"lab {lab.name}: d0 at {100 * seen.value:.3g} % of its speed without a quota (95 % interval"
    )
    assert "of a core in periods of 10 ms" in line
    status = next(row for row in json.loads(jobs.inside("lab", "status", "--json").out) if row["name"] == lab.name)
    assert status["speeds"] == {"d0": seen.value}
    assert status["cpu_cores"]["d0"] == pytest.approx(0.25, rel=0.2)
    assert f"(measured speed {100 * seen.value:.3g} %)" in jobs.inside("lab", "status").out


def test_a_quota_of_a_quarter_is_measured_as_about_a_quarter(lab: cluster.Lab) -> None:
    held = cluster.limit_cpu(lab, 0.25, "d1")
    command = [sys.executable, "-m", "microbench.burner", "0"]
    with labspeed._burner(command, "free") as free, labspeed._burner(held.enter("d1", command), "held") as slow:
        ratios = sorted(labspeed._pair(free, slow, 2_000_000) for _ in range(3))
    assert 0.15 < ratios[1] < 0.4


def test_a_quota_that_gives_less_is_corrected(lab: cluster.Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = Planted(lab, monkeypatch, "d1", lambda quota: 0.9 * quota)
    after, seen = labspeed.calibrate(lab, "d1", 0.5)
    assert seen.value == pytest.approx(0.5, rel=0.01)
    assert after.cpus["d1"] == pytest.approx(0.5 / 0.9, rel=0.01)
    assert len(planted.quotas) == 2 * 6
    assert cluster.limit_cpu(after, 0.5, "d1").speeds.get("d1") is None  # set anew, it is not known any more


def test_a_speed_that_is_not_reached_is_refused_and_leaves_all_as_it_was(
    lab: cluster.Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = cluster.note_speed(cluster.limit_cpu(lab, 0.3, "h1"), "h1", 0.29)
    Planted(lab, monkeypatch, "h1", lambda quota: min(0.4, quota))
    with pytest.raises(CannotRun, match="h1 was seen at 40 % of its speed, and 60 % was asked for"):
        labspeed.calibrate(before, "h1", 0.6)
    now = cluster.load(lab.name)
    assert (now.cpus["h1"], now.speeds["h1"]) == (0.3, 0.29)


def test_a_quota_that_the_kernel_refuses_is_told(lab: cluster.Lab) -> None:
    done = jobs.inside("lab", "speed", "--name", lab.name, "5%", "--host", "h0")
    assert done.code == 4
    assert "a CPU quota of 500 us in 10000 us is refused by the kernel" in done.err
    assert "h0" not in cluster.load(lab.name).cpus


def test_none_takes_the_quotas_of_the_dpus_away(lab: cluster.Lab) -> None:
    cluster.limit_cpu(lab, 0.5, "d0")
    done = jobs.inside("lab", "speed", "--name", lab.name, "none")
    assert (done.code, done.err) == (0, f"lab {lab.name}: d0 without quota\nlab {lab.name}: d1 without quota\n")
    assert not {"d0", "d1"} & set(cluster.load(lab.name).cpus)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fast",), "speed 'fast': a fraction above 0 and below 1, such as 0.25 or 25%"),
        (("1.5",), "speed '1.5'"),
        (("0",), "speed '0'"),
        (("nan",), "speed 'nan'"),
        (("25%", "--host", "x9"), "has no host x9: one of h0, h1, d0, d1"),
    ],
)
def test_usage_errors_are_one_line(lab: cluster.Lab, words: tuple[str, ...], said: str) -> None:
    done = jobs.inside("lab", "speed", "--name", lab.name, *words)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert said in done.err


def test_speeds_are_fractions_or_percentages() -> None:
    assert (parse_speed("25%"), parse_speed("0.25"), parse_speed("12.5%")) == (0.25, 0.25, 0.125)


def test_a_speed_without_a_quota_cannot_be_noted(lab: cluster.Lab) -> None:
    free = cluster.limit_cpu(lab, None, "h0")
    with pytest.raises(UserError, match="h0 has no CPU quota"):
        cluster.note_speed(free, "h0", 0.5)


def test_a_process_that_ends_is_told_in_its_own_words() -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('no such processor')"]
    with (
        labspeed._burner(command, "lab x, d0") as ended,
        pytest.raises(CannotRun, match="lab x, d0: no such processor"),
    ):
        ended.ns(1000, 10)


def test_a_process_that_does_not_answer_is_given_up_and_reaped() -> None:
    process: list[subprocess.Popen[str]] = []
    with (
        pytest.raises(CannotRun, match=r"lab x, d0: fixed work took over 0\.2 s|lab x, d0: fixed work took over 0 s"),
        labspeed._burner([sys.executable, "-c", "import time; time.sleep(60)"], "lab x, d0") as deaf,
    ):
        process.append(deaf._process)
        deaf.ns(1000, 0.2)
    assert process[0].returncode is not None


def test_what_is_told_does_without_an_interval() -> None:
    config = cluster.LabConfig("x")
    lab = cluster.Lab(config, {}, cpus={"d0": 0.263})
    line = labspeed.told("d0", lab, Interval(0.25, None, None, 1))
    assert line == (
        "lab x: d0 at 25 % of its speed without a quota, by a CPU quota of 26.3 % of a core in periods of 10 ms"
    )
