"""Whether hosts reach each other: what is asked, what is told, and what a lab says."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from fabrics.lab import cluster
from fabrics.model import Fabric
from suite import reachable
from suite.plan import JobPlan
from suite.reachable import check, check_jobs, members
from suite.survey import Answers, Survey, ask, survey
from tests import jobs, labs
from tests.fabrics import planted

HOSTS = ("h0", "h1", "h2")
ADDRESSES = {
    host: {"lo": ["127.0.0.1/8"], "eth0": [f"10.1.0.{n}/24", "fe80::1/64"], "ib0": [f"10.2.0.{n}/24"], "bare": []}
    for n, host in enumerate(HOSTS, 1)
}
ETH = Fabric("eth", "tcp", HOSTS, dict.fromkeys(HOSTS, ("eth0",)))


def job(fabric: Fabric, *hosts: str) -> JobPlan:
    return JobPlan(1, 1, fabric, hosts, ("host",) * len(hosts), ((0,),) * len(hosts), ())


def nowhere(hosts: Sequence[str], program: Sequence[str]) -> list[str]:
    raise AssertionError("nothing is to be started")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A cluster of three hosts in words: what it is asked, and what it answers."""
    seen: dict[str, Any] = {"rows": {}, "survey": Survey(ADDRESSES)}

    def answer(start: Any, hosts: Any, arguments: Sequence[str], within_s: float) -> Answers:
        seen["task"], seen["within_s"] = json.loads(arguments[1]), within_s
        rows = {host: seen["rows"].get(host, []) for host in hosts}
        return Answers(rows, frozenset(seen.get("done", hosts)), seen.get("noise", ()), 0.1)

    monkeypatch.setattr(reachable, "survey", lambda start, hosts: seen["survey"])
    monkeypatch.setattr(reachable, "ask", answer)
    return seen


def why(fabric: Fabric, hosts: tuple[str, ...] = HOSTS) -> str:
    return check([(fabric, hosts)], nowhere).unreachable.get(fabric.name, "")


def test_only_networks_between_hosts_are_asked_for() -> None:
    local = Fabric("tcp-lo", "tcp", ("vm",), {"vm": ("lo",)})
    ib = Fabric("ib", "ib", HOSTS, dict.fromkeys(HOSTS, ("mlx5_0:1",)))
    plans = [job(local, "localhost", "localhost"), job(ib, "h0", "h1"), job(Fabric("shm", "shm", ("vm",)), "vm")]
    assert members(plans) == []
    assert check_jobs(plans, lambda fabric: nowhere) == reachable.Reach()
    before = {"eth": "no route h0 -> h1 on eth (connection timed out)"}
    assert check_jobs(plans, lambda fabric: nowhere, before).unreachable == before
    both = [job(ETH, "h0", "h0", "h1"), job(ETH, "h1", "h2")]
    assert members(both) == [(ETH, HOSTS)]


def test_what_was_found_before_gives_way_to_what_is_found_now(asked: dict[str, Any]) -> None:
    before = {"eth": "no route h0 -> h1 on eth (connection timed out)", "gone": "no route"}
    assert check_jobs([job(ETH, *HOSTS)], lambda fabric: nowhere, before).unreachable == {"gone": "no route"}


def test_every_host_is_asked_once_with_its_own_address(asked: dict[str, Any]) -> None:
    assert why(ETH) == ""
    assert asked["task"]["lanes"] == [[[n, "eth0", f"10.1.0.{n + 1}"] for n in range(3)]]
    assert asked["task"]["connect_s"] == 2.0
    assert asked["task"]["until_s"] < asked["within_s"] < 10


def test_rails_meet_rail_by_rail_and_are_named(asked: dict[str, Any]) -> None:
    rails = Fabric("rails", "tcp", HOSTS, {"h0": ("eth0", "ib0"), "h1": ("eth0", "ib0"), "h2": ("eth0",)})
    asked["rows"] = {"h0": [{"rank": 0, "lane": 1, "to": 2, "why": "connection timed out"}]}
    assert why(rails) == "no route h0 -> h2 on rails by ib0 (connection timed out)"
    assert [[end[1] for end in lane] for lane in asked["task"]["lanes"]] == [["eth0"] * 3, ["ib0", "ib0", "eth0"]]


def test_the_first_pair_is_named_and_the_others_counted(asked: dict[str, Any]) -> None:
    row = {"lane": 0, "why": "connection timed out"}
    asked["rows"] = {"h0": [{**row, "to": 2}], "h1": [{**row, "to": 2}], "h2": [{**row, "to": None, "why": "busy"}]}
    assert why(ETH) == "no route h0 -> h2 on eth (connection timed out); and 2 more"
    asked["rows"] = {"h2": [{**row, "to": None, "why": "no port is free there"}]}
    assert why(ETH) == "h2 cannot listen on eth (no port is free there)"


@pytest.mark.parametrize(
    ("devices", "reason"),
    [
        ({"h0": ("eth0",), "h1": ("bare",), "h2": ("eth0",)}, "h1 has no address on bare"),
        ({"h0": ("eth0",), "h1": ("eth9",), "h2": ("eth0",)}, "h1 has no interface eth9: it has lo, eth0, ib0, bare"),
        ({"h0": ("eth0",), "h1": ("eth0",)}, "h2 has no device of eth"),
        ({}, "eth has no devices"),
        ({host: ("lo",) for host in HOSTS}, "h0 and h1 both have 127.0.0.1 on lo: it leads to no other host"),
    ],
)
def test_a_fabric_without_ends_is_told_at_once(
    asked: dict[str, Any], devices: dict[str, tuple[str, ...]], reason: str
) -> None:
    assert why(Fabric("eth", "tcp", HOSTS, devices)) == reason
    assert "task" not in asked


def test_a_silent_host_fails_the_fabrics_it_is_on_alone(asked: dict[str, Any]) -> None:
    asked["survey"] = Survey({host: ADDRESSES[host] for host in HOSTS[:2]}, {"h2": "h2 did not answer within 5 s"})
    found = check([(ETH, HOSTS), (Fabric("two", "tcp", HOSTS, ETH.devices), HOSTS[:2])], nowhere)
    assert found.unreachable == {"eth": "h2 did not answer within 5 s"}
    assert found.pairs == 8
    asked["survey"], asked["done"], asked["noise"] = Survey(ADDRESSES), ("h0", "h1"), ["Connection closed"]
    assert why(ETH) == "h2 did not tell what it reaches (Connection closed)"


def spawner(code: str) -> Any:
    """A launcher of the poor: runs ``code`` in place of the program, with ``rank`` and the words it was given."""

    def start(hosts: Sequence[str], program: Sequence[str]) -> list[str]:
        lines = f"import json, os, sys, time\nranks, words = {len(hosts)}, {list(program)!r}\n{code}"
        return [sys.executable, "-c", lines]

    return start


SAYS = "for rank in range(ranks): print(json.dumps({'rank': rank, 'interface': 'e0', 'addresses': ['10.0.0.1/8']}))\n"
ENDS = "for rank in range(ranks): print(json.dumps({'rank': rank, 'done': 'x'}), flush=True)\n"


def test_a_survey_is_read_beside_noise() -> None:
    noise = "print('[mpiexec@h0] hello'); print('{torn'); print('{\"rank\": 99, \"done\": 1}')\n"
    found = survey(spawner(noise + SAYS + ENDS), HOSTS)
    assert found.addresses == {host: {"e0": ["10.0.0.1/8"]} for host in HOSTS}
    assert found.silent == {}


def test_a_host_that_does_not_come_to_its_end_is_silent() -> None:
    code = f"{SAYS}{ENDS}".replace("range(ranks)", "(0, 2)") + "print('ssh: h1: no such host', file=sys.stderr)"
    found = survey(spawner(code), HOSTS)
    assert set(found.addresses) == {"h0", "h2"}
    assert found.silent == {"h1": "h1 did not answer: ssh: h1: no such host"}


@pytest.mark.parametrize(
    ("host", "heard"),
    [
        ("h1", "ssh: connect to host h1 port 2223: Connection refused"),
        ("h2", "me@h2: Permission denied (publickey)."),
        ("h10", ""),  # of which nothing is said, and what is heard is of others
        ("h", ""),
    ],
)
def test_what_ssh_says_of_a_host_is_preferred_to_what_the_launcher_says(host: str, heard: str) -> None:
    lines = [
        "[mpiexec@h1] launch failed on h10", "ssh: connect to host h1 port 2223: Connection refused",
        "me@h2: Permission denied (publickey).", "lost connection", "[mpiexec@h0] main (mpiexec.c:270): error",
    ]  # fmt: skip
    asked: dict[str, list[dict[str, str]]] = {name: [] for name in ("h", "h1", "h2", "h10")}
    assert Answers(asked, frozenset(), lines, 0.1).heard(host) == heard
    assert Answers(asked, frozenset(), lines[3:], 0.1).heard(host) == "lost connection"
    assert Answers(asked, frozenset(), lines[:1], 0.1).heard(host) == lines[0]
    assert Answers(asked, frozenset(), (), 0.1).heard(host) == ""


@pytest.mark.parametrize("code", ["time.sleep(600)", SAYS + ENDS + "time.sleep(600)"])
def test_a_launcher_that_stays_is_ended(code: str) -> None:
    start = time.monotonic()
    told = ask(spawner(code), HOSTS, ["survey"], 1.0)
    assert time.monotonic() - start < 60
    assert (told.done == frozenset(HOSTS)) is ("done" in code)
    assert not [p for p in psutil.Process().children(recursive=True) if "time.sleep(600)" in " ".join(p.cmdline())]


@pytest.fixture(scope="module")
def lab() -> Iterator[cluster.Lab]:
    with labs.or_skip("reach") as made:
        yield made


def test_the_survey_of_a_lab_is_what_it_was_made_of(lab: cluster.Lab) -> None:
    found = planted.surveyed(lab)
    assert found.silent == {}
    wanted = {
        member: {"lo": ["127.0.0.1/8"]}
        | {network: [f"{lab.address(member, network)}/24"] for network in lab.config.networks}
        for member in lab.config.members
    }
    assert found.addresses == wanted
    assert found.labs == {member: f"{lab.name}/{member}" for member in lab.config.members}
    assert len(set(found.boot_ids.values())) == len(lab.config.members)
    assert found.one_machine(("h0",)) == "h0 is a host of a lab"


def test_hosts_and_dpus_reach_each_other_until_one_is_cut_off(lab: cluster.Lab) -> None:
    both = [planted.on_lab(lab, name) for name in ("eth2g5", "eth10g")]
    assert planted.reached(lab, *both, hosts=lab.config.members).unreachable == {}
    planted.break_route(lab, "d1", "eth10g")
    found = planted.reached(lab, *both, hosts=lab.config.members)
    assert list(found.unreachable) == ["eth10g"]
    assert found.unreachable["eth10g"].startswith("no route h0 -> d1 on eth10g (connection timed out); and 5 more")
    assert planted.reached(lab, *both).unreachable == {}  # the hosts alone still do
    assert found.pairs == 24


def test_a_run_over_whole_fabrics_says_that_it_tried(lab: cluster.Lab, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('launches = 1\nbudget_s = 0.05\n[latency]\nsizes = "8"\n')
    where = ("--fabric", "eth2g5", "--fabric", "shm", "--lab", lab.name, "-o", str(tmp_path / "run"))
    done = jobs.fabricbench("run", "--plan", str(plan), *where)
    assert done.code == 0, done.err
    reach: Mapping[str, Any] = json.loads((tmp_path / "run" / "run.json").read_text())["reachability"]
    assert (reach["pairs"], reach["unreachable"]) == (2, {})
    assert reach["took_s"] > 0
