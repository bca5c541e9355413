"""Who did it: what DPUs must have sent, and what tallies and counters say."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from collectives.offload.layout import layout_of
from collectives.overlap import evidence
from collectives.overlap.evidence import Meter, Seen, least_bytes, seen

PAIR = layout_of(("host",) * 2 + ("dpu",) * 2, ("a", "b", "x", "y"))
FOUR_ON_TWO = layout_of(("host",) * 4 + ("dpu",) * 2, tuple("abcdxy"))
FOUR = layout_of(("host",) * 4 + ("dpu",) * 4, tuple("abcdwxyz"))
ONE = layout_of(("host", "host", "dpu"), ("a", "b", "x"))


@pytest.mark.parametrize(("operation", "pair", "four_on_two", "four"), [
    ("allreduce", 2 * 400, 2 * 400, 6 * 400),
    ("broadcast", 400, 400, 3 * 400),
    ("allgather", 2 * 400, 4 * 400, 4 * 3 * 400),
    ("alltoall", 2 * 200, 4 * 200, 4 * 300),
])  # fmt: skip
def test_what_an_operation_takes_among_dpus(operation: str, pair: int, four_on_two: int, four: int) -> None:
    found = [least_bytes(operation, 100, 4, layout) for layout in (PAIR, FOUR_ON_TWO, FOUR)]
    assert found == [pair, four_on_two, four]
    assert least_bytes(operation, 100, 4, ONE) == 0


def test_blocks_that_the_hosts_do_not_divide_are_counted_exactly() -> None:
    assert least_bytes("alltoall", 3, 4, PAIR) == 4 * (1 + 1)  # blocks of 2 and 1, of 1 and 2: each keeps its larger
    assert least_bytes("alltoall", 1, 4, PAIR) == 0


def test_a_dpu_that_did_less_than_asked_is_found() -> None:
    assert Seen(46, (46, 46), 800, None).why_unused == ""
    assert Seen(46, (46, 45), 800, None).why_unused == "46 operations were asked for, the DPUs did 46, 45"
    assert "the DPUs did 0, 0" in Seen(46, (0, 0), 800, 10**9).why_unused


def test_dpus_whose_devices_sent_too_little_did_not_do_it_whatever_they_say() -> None:
    assert Seen(10, (10, 10), 8000, 8000).why_unused == ""
    assert Seen(10, (10, 10), 8000, 7999).why_unused == (
        "10 operations take 8000 B among the DPUs, whose devices sent 7999 B"
    )
    assert Seen(10, (10, 10), 8000, 7999).as_dict()["why_unused"]


def test_rows_of_all_ranks_become_one_view_of_each_mode() -> None:
    rows = np.array([[0, -1, 0, -1], [0, -1, 0, -1], [7, 500, 9, 100], [7, 600, 8, 200]], float)
    found = seen(["staged", "window"], {"staged": 7, "window": 9}, 100, rows, (2, 3))
    assert found["staged"] == Seen(7, (7, 7), 700, 1100)
    assert found["window"] == Seen(9, (9, 8), 900, 300)


def test_where_nothing_is_counted_the_tally_alone_speaks() -> None:
    rows = np.array([[0, -1], [0, -1], [7, -1]], float)
    assert seen(["staged"], {"staged": 7}, 100, rows, (2,))["staged"].sent_bytes is None


def test_of_the_workers_on_a_machine_one_reads_its_devices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fabric = SimpleNamespace(devices={"x": ("eth1",)})
    jobs: list[Any] = [SimpleNamespace(rank=rank, hosts=("a", "b", "x", "x"), fabric=fabric) for rank in range(4)]
    assert [Meter.of(job, (2, 3)).reads for job in jobs] == [False, False, True, False]
    counts = iter([{"eth0": (0, 0), "eth1": (5, 10)}, {"eth0": (0, 999), "eth1": (50, 110)}] * 2)
    monkeypatch.setattr(evidence.counters, "read", lambda: next(counts))
    meter = Meter.of(jobs[2], (2, 3))
    for _ in range(2):
        meter.begin()
        meter.end("staged")
    assert meter.sent == {"staged": 200}
