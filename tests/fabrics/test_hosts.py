"""Hosts files and Slurm's allocations: what they stand for, and where they cannot be meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabrics.errors import CannotRun, UserError
from fabrics.hosts import MOST_HOSTS, Host, allocation, expand, parse, read, split

FILE = """
# two racks
node[01-02] slots=2 user=me port=2222 python=/opt/py/bin/python3 mpi=/opt/mpich   # the fast ones
big ranks=8 dpu=big-bf

big-bf arch=arm64 python=/usr/bin/python3
fd00::17 slots=1
10.1.0.9
"""


def test_a_hosts_file_is_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text(FILE)
    two = {"ranks": 2, "user": "me", "port": 2222, "python": "/opt/py/bin/python3", "mpi_prefix": "/opt/mpich"}
    assert read(path) == (
        Host("node01", **two),
        Host("node02", **two),
        Host("big", ranks=8, dpu="big-bf"),
        Host("big-bf", arch="aarch64", python="/usr/bin/python3"),
        Host("fd00::17"),
        Host("10.1.0.9"),
    )


def test_dpus_are_told_from_hosts() -> None:
    hosts, dpus = split(parse("b dpu=b-bf\na dpu=a-bf\nc\nb-bf arch=aarch64", "f"))
    assert [host.name for host in hosts] == ["b", "a", "c"]
    assert dpus == (Host("b-bf", arch="aarch64"), Host("a-bf"))


def test_a_range_of_hosts_has_a_range_of_dpus() -> None:
    assert [(host.name, host.dpu) for host in parse("n[01-03] dpu=n[01-03]-bf", "f")] == [
        ("n01", "n01-bf"),
        ("n02", "n02-bf"),
        ("n03", "n03-bf"),
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "hosts file f names no host"),
        ("# none\n\n", "hosts file f names no host"),
        ("a\nb\na", "hosts file f: a stands on line 1 and on line 3"),
        ("node[1-3]\n\nnode2 slots=2", "hosts file f: node2 stands on line 1 and on line 3"),
        ("node[1-3,2]", "hosts file f: node2 stands twice on line 1"),
        ("a dpu=x\nb dpu=x", "hosts file f: dpu x stands on line 1 and on line 2"),
        ("a dpu=a", "line 1: a is named as its own dpu"),
        ("a dpu=b\nb dpu=c", "line 1: b is a DPU of a and has a dpu"),
        ("node[1-3] dpu=bf1", "line 1: 1 DPUs for 3 hosts"),
        ("a\nb cores=4", "line 2: there is no 'cores': allowed are slots, ranks, user, port, "),
        ("a b", "line 1: 'b': one host or range a line"),
        ("a slots=2 ranks=2", "line 1: ranks stands twice, slots and ranks being one"),
        ("a user=x user=y", "line 1: user stands twice"),
        ("a slots=0", "line 1: slots=0: slots takes a whole number from 1 to 4096"),
        ("a slots=two", "slots=two: slots takes a whole number"),
        ("a slots=", "slots=: slots takes a whole number"),
        ("a port=70000", "port=70000: port takes a whole number from 1 to 65535"),
        ("a mpi=mpich", "mpi=mpich: mpi takes the folder"),
        ("a arch=vax", "arch=vax: arch takes one of x86_64, "),
        ("a python=", "python=: python takes a program"),
        ("node01:2", "line 1: 'node01:2' is no host name or address: write node01 slots=2"),
        ("-a", "line 1: '-a' is no host name"),
        ("no_de!", "'no_de!' is no host name"),
        ("node[1-", r"'node\[1-': a \[ without its \]"),
        ("node1]", "a ] without its \\["),
        ("node[3-1]", "range 3-1 runs backwards"),
        ("node[1-x]", "range '1-x': two whole numbers"),
        ("a,,b", "an empty name"),
        ("n[1-99999999]", f"more than {MOST_HOSTS} hosts"),
        ("n[1-999]m[1-999]", f"more than {MOST_HOSTS} hosts"),
    ],
)
def test_what_cannot_be_meant_is_told_by_line(text: str, error: str) -> None:
    with pytest.raises(UserError, match=error):
        parse(text, "f")


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read hosts file .*none: No such file"):
        read(tmp_path / "none")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="cannot read hosts file"):
        read(tmp_path / "binary")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a", "a"),
        ("a,b", "a b"),
        ("n[1-3]", "n1 n2 n3"),
        ("n[01-03,20]", "n01 n02 n03 n20"),
        ("n[8-11]", "n8 n9 n10 n11"),
        ("n[098-101]", "n098 n099 n100 n101"),
        ("n[1-2]-ib", "n1-ib n2-ib"),
        ("r[1-2]n[01-02,9]", "r1n01 r1n02 r1n9 r2n01 r2n02 r2n9"),
        ("a[1-2,4],b[01-02]x[1,3]", "a1 a2 a4 b01x1 b01x3 b02x1 b02x3"),
        ("x[a[1-2],b,c[3,5]]", "xa1 xa2 xb xc3 xc5"),
        ("[1-2]n", "1n 2n"),
        ("n[5]", "n5"),
        ("c[1,1-2]", "c1 c1 c2"),
        ("gpu-a,gpu-b[1-2],login1", "gpu-a gpu-b1 gpu-b2 login1"),
    ],
)
def test_brackets_stand_for_names_in_their_order(text: str, names: str) -> None:
    assert expand(text) == tuple(names.split())


@pytest.mark.parametrize("text", ["", ",", "a,", "n[]", "n[1,]", "n[1-]", "n[-1]", "n[2-1]", "n[1", "n]1[", "n[1-2-3]"])
def test_brackets_that_stand_for_nothing_are_told(text: str) -> None:
    with pytest.raises(ValueError, match=r"empty name|range|without its"):
        expand(text)


@pytest.mark.parametrize(
    ("nodes", "tasks", "hosts"),
    [
        ("node[01-04]", "2(x3),1", [("node01", 2), ("node02", 2), ("node03", 2), ("node04", 1)]),
        ("a,b[1-2]", "4,1(x2)", [("a", 4), ("b1", 1), ("b2", 1)]),
        ("a", "16", [("a", 16)]),
        ("a,b", "", [("a", 1), ("b", 1)]),
    ],
)
def test_an_allocation_of_slurm(nodes: str, tasks: str, hosts: list[tuple[str, int]]) -> None:
    environment = {"SLURM_JOB_NODELIST": nodes} | ({"SLURM_TASKS_PER_NODE": tasks} if tasks else {})
    assert allocation(environment) == tuple(Host(name, count) for name, count in hosts)


def test_outside_slurm_there_is_no_allocation() -> None:
    assert allocation({}) is None
    assert allocation({"SLURM_JOB_NODELIST": "", "SLURM_TASKS_PER_NODE": "2"}) is None
    assert allocation({"SLURM_NODELIST": "a", "SLURM_TASKS_PER_NODE": "3"}) == (Host("a", 3),)


@pytest.mark.parametrize(
    ("nodes", "tasks", "why"),
    [
        ("node[01-04]", "2(x3)", "has 4 nodes, and SLURM_TASKS_PER_NODE=.* 3"),
        ("node[01-02]", "2(3)", r"'2\(3\)': a count"),
        ("node[01-02]", "2,,2", "'': a count"),
        ("node[02-01]", "2(x2)", "runs backwards"),
        ("a", "1(x99999999)", "a count, or one and how many"),
    ],
)
def test_an_allocation_that_cannot_be_read_is_told(nodes: str, tasks: str, why: str) -> None:
    with pytest.raises(CannotRun, match=why):
        allocation({"SLURM_JOB_NODELIST": nodes, "SLURM_TASKS_PER_NODE": tasks})
