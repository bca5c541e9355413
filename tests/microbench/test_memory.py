"""Both figures are told before anything is allocated."""

from __future__ import annotations

from pathlib import Path

import pytest

from microbench.memory import available_bytes, shortage

GIB = 1 << 30


def test_what_fits_is_not_complained_of() -> None:
    assert shortage(GIB, ("a", "b"), False, 6 * GIB) == ""
    assert shortage(0, ("a", "a", "a"), False, 1) == ""


def test_ranks_that_share_a_host_need_more() -> None:
    told = shortage(GIB, ("a", "a", "b"), False, 6 * GIB)
    assert told == "needs 8.59 GB for 2 ranks on a host, of which 6.44 GB are available"


def test_hosts_of_a_lab_share_one_memory() -> None:
    assert shortage(GIB, ("h0", "h1"), True, 6 * GIB)
    assert not shortage(GIB, ("h0", "h1"), True, 12 * GIB)


def test_a_process_has_a_limit_of_its_own() -> None:
    assert shortage(GIB, ("a", "a", "a"), False, 64 * GIB, 5 * GIB) == ""  # three processes, a limit for each
    told = shortage(GIB, ("a",), False, 64 * GIB, 3 * GIB)
    assert told == "needs 4.29 GB a rank, of which a process's limit (ulimit -v) leaves 3.22 GB"


V2 = ("0::/slurm/job_7/step_0\n", "", "memory.max", "memory.current", "inactive_file")
V1 = (
    "4:cpu,memory:/slurm/job_7/step_0\n1:pids:/\n0::/\n",
    "memory",
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    "total_inactive_file",
)


@pytest.mark.parametrize(("own", "top", "limit", "used", "cache"), [V2, V1])
def test_the_group_of_the_process_and_those_above_it_bound_it(
    tmp_path: Path, own: str, top: str, limit: str, used: str, cache: str
) -> None:
    (tmp_path / "own").write_text(own)
    job = tmp_path / top / "slurm" / "job_7"
    (job / "step_0").mkdir(parents=True)
    (job / "step_0" / limit).write_text("max\n")
    (job / "step_0" / used).write_text("500\n")
    assert available_bytes(tmp_path, tmp_path / "own") > 1 << 20
    (job / limit).write_text("10000\n")
    (job / used).write_text("7000\n")
    assert available_bytes(tmp_path, tmp_path / "own") == 3000
    (job / "memory.stat").write_text(f"anon 5\n{cache} 2500\n")
    assert available_bytes(tmp_path, tmp_path / "own") == 5500
    (job / "step_0" / limit).write_text("400\n")
    assert available_bytes(tmp_path, tmp_path / "own") == 0


def test_this_machine_has_memory() -> None:
    assert available_bytes() > 1 << 20
