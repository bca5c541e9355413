"""What the program on every host tells: two or three of it side by side, on addresses of the loopback interface."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from fabrics import launched, reach
from fabrics.discover import addresses_here
from fabrics.reach import Task, addresses, pairs
from tests import jobs

HOSTS = ("127.0.0.11", "127.0.0.12", "127.0.0.13")
LANE = tuple((rank, "lo", address) for rank, address in enumerate(HOSTS))


def free_ports(count: int = 2) -> tuple[int, ...]:
    """Ports that nobody listens on."""
    found = [socket.create_server((HOSTS[0], 0)) for _ in range(count)]
    ports = tuple(each.getsockname()[1] for each in found)
    for each in found:
        each.close()
    return ports


def task(*lanes: Any, ports: tuple[int, ...] = (), connect_s: float = 0.3, until_s: float = 0.6) -> Task:
    return Task("planted", ports or free_ports(), connect_s, until_s, lanes or (LANE,))


def told(asked: Task, *ranks: int, **delays_s: float) -> list[list[dict[str, Any]]]:
    async def late(rank: int) -> list[dict[str, Any]]:
        await asyncio.sleep(delays_s.get(f"rank{rank}", 0.0))
        return await pairs(asked, rank)

    async def all_of() -> list[list[dict[str, Any]]]:
        return await asyncio.gather(*map(late, ranks))

    return asyncio.run(all_of())


def test_addresses_are_those_that_psutil_tells() -> None:
    wanted = {name: sorted(own) for name, own in addresses_here().items()}
    assert {name: sorted(own) for name, own in addresses().items() if own} == wanted
    assert set(addresses()) == {name for _, name in socket.if_nameindex()}


def test_hosts_that_reach_each_other_say_nothing_and_stay_no_longer() -> None:
    assert told(task(until_s=60.0), 0, 1, 2) == [[], [], []]


def test_a_host_that_starts_late_is_waited_for() -> None:
    assert told(task(until_s=5.0), 0, 1, 2, rank2=0.4) == [[], [], []]


def test_a_host_that_never_starts_is_missed_by_the_others() -> None:
    rows = told(task(), 0, 1)
    assert rows == [[{"lane": 0, "to": 2, "why": "connection refused"}]] * 2


def test_each_lane_is_judged_by_itself() -> None:
    gone = ((0, "nope0", HOSTS[0]), (1, "lo", HOSTS[1]))
    first, second = told(task(LANE[:2], gone), 0, 1)
    assert first == [{"lane": 1, "to": 1, "why": "no such device"}]
    assert second == []


@pytest.mark.parametrize(("address", "why"), [("127.0.0.99", "connection refused"), ("240.0.0.1", "")])
def test_an_address_where_nobody_is(address: str, why: str) -> None:
    away = ((0, "lo", HOSTS[0]), (1, "lo", address))
    (rows,) = told(task(away), 0)
    assert [(row["lane"], row["to"]) for row in rows] == [(0, 1)]
    assert rows[0]["why"].endswith(why)
    assert rows[0]["why"]


def test_nobody_else_is_taken_for_a_host() -> None:
    """A stranger on the first port: one that listens and says nothing, and one that answers anything."""
    asked = task(ports=free_ports(3))
    with socket.create_server((HOSTS[1], asked.ports[0])), socket.create_server((HOSTS[2], asked.ports[0])):
        assert told(Task("planted", asked.ports, 0.2, 3.0, asked.lanes), 0, 1, 2) == [[], [], []]
    other = Task("of another run", asked.ports, 0.2, 0.4, asked.lanes)

    async def both() -> Any:
        return await asyncio.gather(pairs(other, 0), pairs(Task("planted", asked.ports, 0.2, 0.4, asked.lanes), 1))

    mine, theirs = asyncio.run(both())
    assert {row["to"] for row in mine} == {1, 2}
    assert {row["to"] for row in theirs} == {0, 2}


def test_without_a_free_port_a_host_says_so() -> None:
    asked = task(ports=free_ports(1))
    with socket.create_server((HOSTS[0], asked.ports[0])):
        (rows,) = told(asked, 0)
    assert {"lane": 0, "to": None, "why": "no port is free there"} in rows


def test_a_task_is_read_back() -> None:
    text = json.dumps(
        {"nonce": "n", "ports": [1, 2], "connect_s": 2, "until_s": 5, "lanes": [[[0, "lo", HOSTS[0]]], []]}
    )
    assert Task.from_json(text) == Task("n", (1, 2), 2.0, 5.0, (((0, "lo", HOSTS[0]),), ()))


def test_the_program_tells_one_fact_a_line() -> None:
    done = jobs.python("-m", "fabrics.reach", "survey", env={"PMI_RANK": "3"})
    rows = [json.loads(line) for line in done.out.splitlines() if line]
    assert done.code == 0, done.err
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert rows[-1] == {"rank": 3, "done": socket.gethostname(), "boot_id": boot_id, "lab_host": ""}
    assert {row["interface"]: row["addresses"] for row in rows[:-1]} == addresses()
    assert all(line.startswith("{") for line in done.out.splitlines() if line)


def test_it_needs_the_standard_library_alone() -> None:
    root = str(Path(reach.__file__).parents[1])
    code = f"import sys; sys.path.append({root!r}); from fabrics import reach; reach.main(['survey'])"
    done = jobs.python("-I", "-S", "-c", code)
    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize(
    ("environment", "rank"),
    [({}, 0), ({"PMI_RANK": "2"}, 2), ({"PMIX_RANK": "1", "SLURM_PROCID": "4"}, 1), ({"SLURM_PROCID": "4"}, 4)],
)
def test_the_rank_is_the_launcher_s(environment: dict[str, str], rank: int) -> None:
    assert launched.rank(environment) == rank
    assert reach.launched is launched
