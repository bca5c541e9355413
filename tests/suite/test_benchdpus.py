"""Ranks on DPUs and options of overlap in a user's own job: pure, but for the command's own words."""

from __future__ import annotations

import argparse
import json
import re
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from fabrics.errors import CannotRun, UserError
from microbench.case import Case, Outcome
from microbench.registry import Benchmark
from suite import benchdpus
from tests import jobs
from tests.suite import bench_job


def benchmark(kind: Any) -> Benchmark:
    return Benchmark(f"{kind or 'plain'}_x", "", lambda job, case: Outcome(), kind=kind)


def arguments(text: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--thread-level", default="single")
    benchdpus.add(parser)
    return parser.parse_args(text.split())


def options(kind: str, text: str) -> dict[str, Any]:
    return benchdpus.case_options(arguments(text), benchmark(kind))


def test_options_and_workload_are_those_of_a_plan() -> None:
    given = options("offload", "--roles host,host,dpu --compare host,staged --fraction 1/2 --skew 0.5 --chunk 64K")
    assert given["workload"] == "compute 0.5x, skew 0.5, chunk 65536 B"
    assert given["options"] == {
        "compare": ["host", "staged"], "fraction": 0.5, "skew": 0.5, "outstanding": 1, "compute": "registers",
        "placement": "auto", "workers": 1, "chunk": 65536,
    }  # fmt: skip
    assert options("overlap", "")["options"]["compare"] == ["host", "probes16", "probes64"]
    assert options("", "") == options("dpu", "--dpus d0") == {}


@pytest.mark.parametrize(
    ("kind", "text", "error", "said"),
    [
        ("offload", "", UserError, "has ranks on DPUs: say which with --roles host,host,dpu,dpu or --dpus NAMES"),
        ("dpu", "", UserError, "has ranks on DPUs"),
        ("", "--dpus d0", UserError, "plain_x has no ranks on DPUs: leave out --dpus"),
        ("overlap", "--roles host,dpu", UserError, "overlap_x has no ranks on DPUs: leave out --roles"),
        ("overlap", "--workers 2", UserError, "overlap_x offloads nothing to DPUs: leave out --workers"),
        ("dpu", "--dpus d0 --skew 1", UserError, "dpu_x overlaps nothing with compute: leave out --skew"),
        ("", "--dpu-memory 1M", UserError, "plain_x offloads nothing to DPUs: leave out --dpu-memory"),
        ("offload", "--roles host,dpu --dpus d0", UserError, "say the same thing: give one of them"),
        ("offload", "--roles host,nic", UserError, "--roles host,nic: 'nic' is neither host nor dpu"),
        ("offload", "--dpus d0 --compare host,magic", UserError, "unknown mode 'magic'"),
        ("overlap", "--compare host,staged", UserError, "compare staged: only offload_* has DPUs"),
        ("offload", "--dpus d0 --fraction much", UserError, "fraction 'much': 0 to 100"),
        ("offload", "--dpus d0 --chunk 64K,1M", UserError, "--chunk 64K,1M: one size, such as 256K"),
        ("overlap", "--compare thread", UserError, "MPI's progress thread takes --thread-level multiple"),
    ],
)
def test_what_cannot_be_is_told_in_a_line(kind: str, text: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error) as caught:
        options(kind, text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_progress_thread_at_its_thread_level() -> None:
    assert options("overlap", "--compare host,thread --thread-level multiple")["options"]["compare"] == [
        "host",
        "thread",
    ]


def test_roles_are_given_by_rank_or_by_the_dpus_names() -> None:
    hosts = ("h0.lab", "d0.lab", "h1", "d1")
    assert benchdpus.roles(arguments("--dpus d0,d1"), hosts) == ("host", "dpu", "host", "dpu")
    assert benchdpus.roles(arguments("--dpus d0.lab"), hosts) == ("host", "dpu", "host", "host")
    assert benchdpus.roles(arguments("--roles host,host,dpu,dpu"), hosts) == ("host", "host", "dpu", "dpu")
    assert benchdpus.roles(arguments(""), hosts) == ()
    with pytest.raises(UserError, match="3 roles for 4 ranks"):
        benchdpus.roles(arguments("--roles host,host,dpu"), hosts)
    with pytest.raises(CannotRun, match=r"no rank runs on 'd7': the job's ranks are on h0\.lab, d0\.lab, h1, d1"):
        benchdpus.roles(arguments("--dpus d0,d7"), hosts)


@pytest.mark.parametrize(
    ("kind", "text", "roles", "nbytes", "said"),
    [
        ("dpu", "", "host,host", None, "dpu compares DPUs with hosts, and this job's roles are host,host: give each"),
        ("offload", "", "host,host,host", 8, "offload needs 2 or more hosts, then the ranks of their DPUs"),
        ("offload", "--workers 2", "host,host,dpu", 8, "1 DPU ranks are no whole number of DPUs of 2 workers each"),
        ("offload", "--chunk 64", "host,host,dpu", 1 << 20, "pieces of 64 B cut an allreduce of 1048576 B into 16384"),
        (
            "offload",
            "--dpu-memory 64",
            "host,host,dpu",
            65536,
            "64 B of a DPU's memory cut an allreduce of 65536",
        ),
        ("offload", "--chunk 1K", "host,host,dpu", 1 << 20, ""),
    ],
)
def test_what_was_asked_for_has_to_fit_the_job(kind: str, text: str, roles: str, nbytes: int | None, said: str) -> None:
    of = replace(benchmark(kind), name="dpu" if kind == "dpu" else "offload_allreduce")
    given = benchdpus.case_options(arguments(f"--roles {roles} {text}"), of)
    case = Case(of.name, "here", nbytes=nbytes, dtype="float32", options=given.get("options", {}))
    named = roles.split(",")
    with pytest.raises(CannotRun, match=said) if said else nullcontext():
        benchdpus.fit(of, [case], named, ["vm"] * len(named))


def test_without_dpus_the_command_says_so_before_it_starts() -> None:
    done = jobs.inside("bench", "offload_allreduce", "--sizes", "8")
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert "offload_allreduce has ranks on DPUs: say which" in done.err


FEW = ("--sizes", "16K", "--seconds", "0.2", "--iterations", "8", "--json")
ALONE = ("overlap_allreduce", *FEW, "--compare", "host,probes4")
WITH_DPU = ("offload_allreduce", *FEW, "--compare", "host,staged", "--fraction", "0.5", "--roles", "host,host,dpu")
WRONG = [("--roles", "host,dpu"), ("--dpus", "elsewhere")]


@pytest.fixture(scope="module")
def job() -> jobs.Done:
    """All of them in one job of three ranks."""
    wrong = [("offload_allreduce", "--sizes", "8", *more) for more in WRONG]
    done = jobs.mpi(3, "-m", "tests.suite.bench_job", json.dumps([ALONE, WITH_DPU, *wrong]))
    assert done.code == 0, done.err
    return done


def row(job: jobs.Done, number: int) -> dict[str, Any]:
    """The record that a command printed alone."""
    record, code = job.out.splitlines()[2 * number : 2 * number + 2]
    assert code == f"{bench_job.END}0", job.err
    return dict(json.loads(record))


def test_hosts_alone_overlap_in_a_job_of_any_size(job: jobs.Done) -> None:
    got = row(job, 0)
    assert (got["status"], got["ranks"], got["roles"]) == ("ok", 3, [])
    assert {"host.overlap", "probes4.exposed", "blocking.overall"} <= set(got["metrics"])


def test_roles_make_a_dpu_of_a_rank(job: jobs.Done) -> None:
    got = row(job, 1)
    assert (got["status"], got["roles"], got["workload"]) == ("ok", ["host", "host", "dpu"], "compute 0.5x")
    assert got["method"]["used"] == {"staged": True}
    assert re.fullmatch("DPU ranks share machine .+ with hosts: not a DPU", got["method"]["warnings"][0])


def test_roles_that_do_not_fit_the_job_are_told_once(job: jobs.Done) -> None:
    assert job.out.splitlines()[4:] == [f"{bench_job.END}2", f"{bench_job.END}4"]
    told = [line for line in job.err.splitlines() if line.startswith("fabricbench")]
    for line, (option, value) in zip(told, WRONG, strict=True):
        assert f"{option} {value}: " in line


def test_one_rank_overlaps_nothing() -> None:
    done = jobs.fabricbench("bench", "overlap_allreduce", "--sizes", "8")
    assert (done.code, done.err.strip()) == (4, "fabricbench: overlap_allreduce needs 2 ranks: this job has 1")
