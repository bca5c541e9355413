"""The pytest plugin: planted samples for what pytest-benchmark makes of them, few real jobs for what takes ranks."""

from __future__ import annotations

import json
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from fabrics.errors import UserError
from suite import launch, pytest_jobs
from tests import jobs

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = any(point.name == "fabricbench" for point in metadata.entry_points(group="pytest11"))
PLUGIN = () if INSTALLED else ("-p", "suite.pytest_plugin")
QUIET = ("-p", "no:cacheprovider", *PLUGIN)
PLANTED = """
import numpy as np, pytest
from microbench.record import Metric, Record
from suite import pytest_jobs

SLOWER = {slower}

@pytest.fixture(autouse=True)
def planted(monkeypatch):
    def launched(words, hosts, env, timeout_s):
        status = "unsupported" if "float16" in words else "invalid" if "int8" in words else "ok"
        times = np.array([[1000, 3000, 2000, 9000], [2000, 2000, 4000, 1000]]) * SLOWER
        samples = {{"time": times, "valid": np.array([[1, 1, 1, 0]])}}
        record = Record("allreduce/x", words[1], "shm", status, "planted", ranks=len(hosts), reported_ranks=(0, 1),
                        metrics={{"time": Metric(3e-6, "s", 3)}}, method={{"batched": 2}}, hosts=tuple(hosts))
        return [pytest_jobs.Measured(record, samples)]
    monkeypatch.setattr(pytest_jobs, "launched", launched)
"""
TESTS = """
import pytest

def test_plain(fabric_benchmark):
    assert fabric_benchmark("allreduce", size=8).ranks == 2

@pytest.mark.benchmark(group="mine", min_rounds=7)
def test_marked(fabric_benchmark):
    fabric_benchmark("latency", size=8)
"""
STATISTICS = [0.001e-3, 0.0015e-3, 0.002e-3]  # the longer of two ranks, two operations a sample, the last left out


def run(pytester: pytest.Pytester, tests: str, *options: str, slower: float = 1.0) -> pytest.RunResult:
    pytester.makeconftest(PLANTED.format(slower=slower))
    pytester.makepyfile(test_planted=tests)
    return pytester.runpytest_inprocess(*QUIET, *options)


def saved(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())["benchmarks"]
    return found


def test_the_plugin_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"fabricbench": "suite.pytest_plugin"}


def test_statistics_are_exactly_those_of_the_samples(pytester: pytest.Pytester) -> None:
    run(pytester, TESTS, "--benchmark-json=out.json").assert_outcomes(passed=2)
    plain, marked = saved(pytester.path / "out.json")
    assert plain["stats"]["data"] == pytest.approx(STATISTICS, rel=1e-12)
    assert (plain["stats"]["rounds"], plain["stats"]["median"]) == (3, pytest.approx(1.5e-6, rel=1e-12))
    assert plain["extra_info"]["fabricbench"]["metrics"]["time"]["value"] == 3e-6
    assert (plain["group"], marked["group"], marked["options"]["min_rounds"]) == (None, "mine", 7)
    assert marked["stats"]["data"] == pytest.approx([0.25e-6, 0.75e-6, 0.5e-6], rel=1e-12)  # rank 0's, halved


def test_save_compare_and_fail(pytester: pytest.Pytester) -> None:
    """A public case: what is compared is named, and a slow-down fails, where no slow-down does not."""
    gate = ("--benchmark-compare=0001", "--benchmark-compare-fail=median:10%")
    assert run(pytester, TESTS, "--benchmark-save=before").ret == 0
    assert run(pytester, TESTS, *gate).ret == 0
    slow = run(pytester, TESTS, *gate, "--benchmark-group-by=name", slower=1.5)
    assert slow.ret != 0
    slow.stderr.fnmatch_lines(["Performance has regressed:", "*test_marked (0001_before)*: 50.0* > 10.0*"])
    slow.stdout.fnmatch_lines(["*benchmark 'test_marked': 2 tests*"])


@pytest.mark.filterwarnings("ignore")
def test_a_baseline_of_another_host_is_compared_by_its_path_and_a_missing_one_is_told(
    pytester: pytest.Pytester,
) -> None:
    """A public case: comparing breaks when the machine's id changes; a baseline that is not there must not pass."""
    assert run(pytester, TESTS, "--benchmark-json=base.json").ret == 0
    base = pytester.path / "base.json"
    base.write_text(base.read_text().replace(json.loads(base.read_text())["machine_info"]["node"], "another-host"))
    gate = "--benchmark-compare-fail=median:10%"
    assert run(pytester, TESTS, f"--benchmark-compare={base}", gate).ret == 0
    assert run(pytester, TESTS, f"--benchmark-compare={base}", gate, slower=1.2).ret != 0
    assert run(pytester, TESTS, "--benchmark-compare=0007", gate).ret != 0


def test_what_the_library_lacks_is_skipped_and_what_came_back_wrong_fails(pytester: pytest.Pytester) -> None:
    tests = """
def test_lacks(fabric_benchmark): fabric_benchmark("allreduce", size=8, dtype="float16")
def test_wrong(fabric_case): fabric_case("allreduce", size=8, dtype="int8")
def test_told(fabric_case): assert fabric_case("allreduce", size=8, dtype="int8", check=False).status == "invalid"
def test_twice(fabric_benchmark):
    fabric_benchmark("allreduce", size=8)
    fabric_benchmark("allreduce", size=64)
def test_bad(fabric_case): fabric_case("allreduce", ranks=0)
"""
    result = run(pytester, tests, "-W", "error", "-rs")
    result.assert_outcomes(passed=1, failed=3, skipped=1)
    result.stdout.fnmatch_lines(["*allreduce/x: invalid: planted", "*a test is one benchmark*", "*at least one rank*"])
    result.stdout.fnmatch_lines(["SKIPPED*allreduce/x: unsupported: planted"])


@pytest.mark.parametrize("option", ["--benchmark-disable", "--benchmark-cprofile=tottime", "--benchmark-only"])
def test_options_of_pytest_benchmark_go_with_it(pytester: pytest.Pytester, option: str) -> None:
    run(pytester, TESTS, option, "-W", "error").assert_outcomes(passed=2)


def test_hosts_take_turns(pytester: pytest.Pytester) -> None:
    tests = 'def test_it(fabric_case): assert fabric_case("barrier", ranks=3).hosts == ("h0", "h1", "h0")'
    run(pytester, tests, "--fabric-hosts=h0,h1").assert_outcomes(passed=1)


def test_options_are_those_of_bench() -> None:
    words = pytest_jobs.arguments(
        "latency", {"size": "64K", "thread_level": "multiple", "compare": ["host"], "dtype": None}
    )
    assert words[4:] == ["--sizes", "64K", "--thread-level", "multiple", "--compare", "host"]
    with pytest.raises(UserError, match="at most 10000 samples"):
        pytest_jobs.parsed(pytest_jobs.arguments("latency", {"iterations": 10001}))
    with pytest.raises(UserError, match="unrecognized arguments: --speed"):
        pytest_jobs.parsed(pytest_jobs.arguments("latency", {"speed": 3}))


def test_a_launched_job_gives_its_samples_and_a_mistake_is_told(pytester: pytest.Pytester) -> None:
    """Pytest has imported MPI itself, and its variables name another job: neither reaches the job that it launches."""
    tests = """
def test_real(fabric_benchmark):
    record = fabric_benchmark("allreduce", ranks=2, size=1024, seconds=0.05)
    assert (record.ranks, record.validation["checked_bytes"]) == (2, 2048)
def test_mistake(fabric_case): fabric_case("latency", size="12junk")
"""
    pytester.makepyfile(test_launched=tests)
    result = pytester.runpytest_subprocess(*QUIET, "--benchmark-json=out.json", timeout=60)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*latency: malformed size '12junk'*"])
    (found,) = saved(pytester.path / "out.json")
    assert found["stats"]["median"] == found["extra_info"]["fabricbench"]["metrics"]["time"]["value"]


RANKS = """
import os, pytest
RANK = int(os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0")))

def test_measured(fabric_benchmark):
    assert fabric_benchmark("latency", ranks=2, size=8, seconds=0.05).metrics["time"].value > 0

def test_plain(): print("said by", RANK)
def test_rank_one_fails(): assert [1, RANK] == [1, 0]
def test_rank_one_skips():
    if RANK: pytest.skip("not here")
def test_other_ranks(fabric_case): fabric_case("barrier", ranks=3)
@pytest.mark.xfail(strict=True)
def test_expected(): assert False
"""


def under_mpiexec(path: Path, *options: str) -> jobs.Done:
    program = [sys.executable, "-m", "pytest", *QUIET, *options, str(path)]
    return jobs.run(launch.job_command(launch.find_launcher(), ("localhost",) * 2, program, {}))


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> tuple[jobs.Done, Path]:
    directory = tmp_path_factory.mktemp("ranks")
    path = directory / "test_ranks.py"
    path.write_text(RANKS)
    files = (f"--benchmark-json={directory / 'out.json'}", f"--junitxml={directory / 'out.xml'}")
    return under_mpiexec(path, "-q", "-W", "error", *files), directory


def test_under_mpiexec_rank_0_reports_and_a_failing_rank_fails_all(together: tuple[jobs.Done, Path]) -> None:
    done, directory = together
    assert done.code == 1
    assert done.out.count("test session starts") + done.out.count("2 failed, 2 passed, 1 skipped, 1 xfailed") == 1
    assert "rank 0 passed, rank 1 failed" in done.out
    assert "assert [1, 1] == [1, 0]" in done.out
    assert "rank 0 passed, rank 1 skipped" in done.out
    (found,) = saved(directory / "out.json")
    assert found["stats"]["median"] == found["extra_info"]["fabricbench"]["metrics"]["time"]["value"]
    assert (directory / "out.xml").read_text().count("<testcase") == 6


def test_a_rank_that_leaves_before_a_collective_is_told_and_ends_the_job(tmp_path: Path) -> None:
    """Public cases: one rank raises, the others wait for ever, and pytest keeps the exception to itself."""
    path = tmp_path / "test_left.py"
    path.write_text(RANKS + """
def test_left(fabric_case):
    if RANK: raise RuntimeError("left early")
    fabric_case("allreduce", size=8, seconds=0.05)
""")  # fmt: skip
    done = under_mpiexec(path, "-q", "--fabric-deadline=3", "-k", "test_left")
    assert done.code not in (0, 5)
    assert "RuntimeError: left early" in done.err
    assert "not all ranks came there within 3 s" in done.err


def test_ranks_with_other_tests_do_not_begin(tmp_path: Path) -> None:
    path = tmp_path / "test_other.py"
    path.write_text(RANKS + "\nif RANK:\n    def test_more(): pass\n")
    done = under_mpiexec(path, "-q")
    assert done.code not in (0, 5)
    assert "collected other tests than rank 0 (7 and 6)" in done.out + done.err
