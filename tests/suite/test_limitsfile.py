"""Limits files are strict: what cannot be meant names its line; the profiles are limits files."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabrics.errors import UserError
from reports.limits.model import Criterion, Range
from suite.limitsfile import PROFILES, parse, read_limits

BENCHMARKS = ("latency", "bandwidth", "bibw", "allreduce", "train")
GOOD = """\
# a comment
[[criterion]]
metric = "bandwidth"
benchmark = "bandwidth"
sizes = ["64K", "1M:"]
lower = 9.5
unit = "Gbit/s"
"""


def one(text: str) -> Criterion:
    (found,) = parse(text, "x", BENCHMARKS).criteria
    return found


def test_a_criterion_in_base_units() -> None:
    found = one(GOOD)
    assert (found.name, found.metric, found.line) == ("bandwidth of bandwidth", "bandwidth", 2)
    assert (found.lower, found.upper, found.reference, found.unit) == (9.5e9 / 8, None, None, "Gbit/s")
    assert found.selector.names == {"benchmark": ("bandwidth",)}
    assert found.selector.sizes == (Range(64 * 1024, 64 * 1024), Range(2**20))


def test_a_reference_in_a_unit_and_parts_of_it() -> None:
    text = GOOD.replace("lower = 9.5", "reference = 10\nlower = 0.9\nupper = 1.1\nwarn = 0.05")
    found = one(text)
    assert (found.reference, found.lower, found.upper, found.warn) == (1.25e9, 0.9, 1.1, 0.05)


def test_a_percentile_is_a_metric_of_its_own() -> None:
    text = '[[criterion]]\nmetric = "time"\npercentile = {}\nbenchmark = "latency"\nupper = 9\nunit = "us"'
    assert one(text.format(99)).metric == "time_p99"
    assert one(text.format(50)).metric == "time"
    assert one(text.format(50)).upper == pytest.approx(9e-6)


def test_judge_is_shared_and_may_be_each_ones_own() -> None:
    text = f'judge = ["emulated"]\n{GOOD}\n{GOOD}name = "b"\njudge = []\n'
    first, second = parse(text, "x", BENCHMARKS).criteria
    assert (first.judge, second.judge) == (frozenset({"emulated"}), frozenset())


def test_ranks_and_patterns() -> None:
    more = 'ranks = [2, "4:"]\nfabric = ["eth*", "!eth0"]\nkind = "tcp"\nalgorithm = "ring"\n'
    found = one(GOOD + more).selector
    assert found.ranks == (Range(2, 2), Range(4))
    assert found.names["fabric"] == ("eth*", "!eth0") and found.names["algorithm"] == ("ring",)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('metric = "bandwidth"', 'metric = "bandwith"', "line 3: metric = 'bandwith': unknown metric: one of time, "),
        ('metric = "bandwidth"', 'metric = ""', "line 3: metric = '': metric takes a metric such as"),
        ('benchmark = "bandwidth"', 'benchmark = "bw"', "line 4: benchmark = 'bw': unknown benchmark 'bw': one of all"),
        ('benchmark = "bandwidth"', "", "line 2: a criterion says its benchmark"),
        ('metric = "bandwidth"', "", "line 2: a criterion says its metric"),
        ("lower = 9.5", "lower = 9.5\nupper = 9", "line 6: lower = 9.5: it is above upper = 9: nothing could pass"),
        ("lower = 9.5", "", "line 2: it limits nothing: give lower, upper or both"),
        ("lower = 9.5", "lower = nan", "line 6: lower = nan: lower takes a number"),
        ("lower = 9.5", "lower = true", "line 6: lower = True: lower takes a number"),
        ('unit = "Gbit/s"', "", "line 2: a unit is missing: say in which unit the limit on bandwidth is"),
        ('unit = "Gbit/s"', 'unit = "us"', "line 7: unit = 'us': unit mismatch: bandwidth is in bytes/s, not in s"),
        ('unit = "Gbit/s"', 'unit = "Gb/s"', "line 7: unit = 'Gb/s': unit takes one of s, ms, us"),
        ('unit = "Gbit/s"', 'unit = "Gbit/s"\nreference = "line rate"', "line 7: unit = 'Gbit/s': lower and upper are"),
        ('sizes = ["64K", "1M:"]', "", "line 3: metric = 'bandwidth': a lower limit on bandwidth would judge 8 B mess"),
        ('sizes = ["64K", "1M:"]', 'sizes = "8:4M"', "line 5: sizes = '8:4M': a lower limit on bandwidth would judge "),
        ('sizes = ["64K", "1M:"]', 'sizes = ":4M"', "line 5: sizes = ':4M': a lower limit on bandwidth would judge 0 "),
        ('sizes = ["64K", "1M:"]', 'sizes = "12junk"', "line 5: sizes = '12junk': "),
        ('sizes = ["64K", "1M:"]', 'sizes = "4M:1M"', "line 5: sizes = '4M:1M': range '4M:1M' is empty: 1M is less th"),
        ('sizes = ["64K", "1M:"]', 'sizes = ":"', "line 5: sizes = ':': ':' is everything: leave the key out"),
        ('unit = "Gbit/s"', 'unit = "Gbit/s"\nranks = "two"', "line 8: ranks = 'two': 'two' is no number of ranks"),
        ('unit = "Gbit/s"', 'unit = "Gbit/s"\nkind = "ethernet"', "line 8: kind = 'ethernet': no fabric is of kind 'e"),
        ('unit = "Gbit/s"', 'unit = "Gbit/s"\nwarn = 5', "line 8: warn = 5: warn takes a part of the limit from 0"),
        ('unit = "Gbit/s"', 'unit = "Gbit/s"\njudge = ["all"]', "line 8: judge = ['all']: judge takes a list of emula"),
        ('unit = "Gbit/s"', 'unit = "Gbit/s"\nfabrics = "x"', "line 8: fabrics = 'x': there is no such key: allowed a"),
        ('unit = "Gbit/s"', 'unit = "Gbit/s"\npercentile = 99', "line 8: percentile = 99: there are percentiles of ti"),
        ('unit = "Gbit/s"', 'unit = "Gbit/s"\nreference = "spec"', "line 8: reference = 'spec': reference takes a num"),
        ('unit = "Gbit/s"', 'unit = "Gbit/s"\nreference = 10\nwarn = 0.1\nupper = -1', "line 6: lower = 9.5: it is ab"),
        ('unit = "Gbit/s"', 'unit = "Gbit/s"\npercentile = 99.0', "line 8: percentile = 99.0: percentile takes one of"),
        ('unit = "Gbit/s"', 'unit = "Gbit/s"\nname = "a\\nb"', "line 8: name = 'a\\nb': name takes a text"),
        ("# a comment", "launches = 3", "line 1: there is no 'launches': allowed are judge, baseline, criterion"),
        ("# a comment", 'judge = "emulated"', "line 1: judge = 'emulated': judge takes a list of emulated, oversubscr"),
        ("lower = 9.5", "lower = ", "limits x: Invalid value (at line 6, column 9)"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_names_its_line(old: str, new: str, said: str) -> None:
    assert old in GOOD
    with pytest.raises(UserError) as error:
        parse(GOOD.replace(old, new), "x", BENCHMARKS)
    assert said in str(error.value) and str(error.value).startswith("limits x")
    assert "\n" not in str(error.value)


def test_the_line_is_that_of_the_criterion_at_fault() -> None:
    second = GOOD.replace("9.5", "0.95").replace('"Gbit/s"', '"us"')
    with pytest.raises(UserError, match=r"line 14: unit = 'us': unit mismatch"):
        parse(GOOD + second, "x", BENCHMARKS)


def test_the_line_of_a_value_of_several_lines_is_its_first() -> None:
    text = GOOD.replace('sizes = ["64K", "1M:"]', '# which\nsizes = [\n  "64K",\n  "8",\n]')
    with pytest.raises(UserError, match="line 6: sizes"):
        parse(text, "x", BENCHMARKS)


def test_names_are_different() -> None:
    with pytest.raises(UserError, match="line 10: another criterion, on line 2, is named 'bandwidth of bandwidth' too"):
        parse(f"{GOOD}\n{GOOD}", "x", BENCHMARKS)


@pytest.mark.parametrize("text", ["", "criterion = 3", "criterion = []", 'judge = ["emulated"]'])
def test_limits_that_judge_nothing(text: str) -> None:
    with pytest.raises(UserError, match=r"judge nothing: add a \[\[criterion\]\]"):
        parse(text, "x", BENCHMARKS)


def test_time_has_no_line_rate_and_a_baseline_has_a_number_at_each_size() -> None:
    text = '[[criterion]]\nmetric = "time"\nbenchmark = "latency"\nreference = "{}"\nupper = 1.1\n'
    with pytest.raises(UserError, match="line 4: reference = 'line rate': unit mismatch: time is in s"):
        parse(text.format("line rate"), "x", BENCHMARKS)
    assert one(text.format("baseline")).reference == "baseline"
    rates = text.replace("time", "bandwidth").replace("upper = 1.1", "lower = 0.9")
    assert one(rates.format("baseline")).lower == 0.9
    with pytest.raises(UserError, match="line 2: metric = 'bandwidth': a lower limit"):
        parse(rates.format("line rate"), "x", BENCHMARKS)


@pytest.mark.parametrize("profile", PROFILES)
def test_profiles_parse(profile: str) -> None:
    limits = read_limits(profile, BENCHMARKS)
    assert limits.name == profile and len(limits.criteria) >= 5
    emulated = {frozenset({"emulated"})} if profile == "lab" else {frozenset[str]()}
    assert {criterion.judge for criterion in limits.criteria} == emulated


def test_a_file_and_its_baseline_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "limits.toml"
    path.write_text(f'baseline = "b.json"\n{GOOD}')
    assert read_limits(str(path), BENCHMARKS).baseline == str(tmp_path / "b.json")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("hpc100", "neither a file nor one of the profiles lan-10g, hpc-100g, lab"),
        ("no.toml", "cannot read limits no.to"),
    ],
)
def test_limits_that_are_not_there(name: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        read_limits(name, BENCHMARKS)
