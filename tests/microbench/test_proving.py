"""Which ranks a job's probe joins, and with how much: pure."""

from __future__ import annotations

from itertools import chain, combinations
from types import SimpleNamespace
from typing import Any

import pytest

from microbench.proving import PAYLOAD_BYTES, pair_bytes, probe_rounds, prove_job


@pytest.mark.parametrize(
    ("hosts", "pairs"),
    [
        ("a", []),
        ("a a", [(0, 1)]),
        ("a a a", [(0, 1)]),
        ("a b", [(0, 1)]),
        ("a a b b", [(0, 2)]),
        ("a b c", [(0, 1), (0, 2), (1, 2)]),
        ("b a b", [(0, 1)]),
    ],
)
def test_each_pair_of_hosts_is_probed_once(hosts: str, pairs: list[tuple[int, int]]) -> None:
    assert sorted(chain.from_iterable(probe_rounds(hosts.split()))) == pairs


@pytest.mark.parametrize("hosts", range(2, 18))
def test_pairs_of_a_round_are_apart_and_rounds_are_few(hosts: int) -> None:
    rounds = probe_rounds([f"h{host}" for host in range(hosts)])
    assert len(rounds) == hosts - 1 + hosts % 2
    assert sorted(chain.from_iterable(rounds)) == list(combinations(range(hosts), 2))
    for pairs in rounds:
        ranks = list(chain.from_iterable(pairs))
        assert len(set(ranks)) == len(ranks)


def test_every_rail_is_probed_by_the_first_rank_that_uses_it() -> None:
    hosts = ["a"] * 4 + ["b"] * 4
    assert probe_rounds(hosts, (0, 0, 1, 1)) == [[(0, 4)], [(2, 6)]]
    assert probe_rounds(["a", "a", "a", "b"], (0, 1)) == [[(0, 3)], []]  # b's only rank uses the first
    assert probe_rounds(["a", "a"], (0, 1)) == [[(0, 1)]]


def test_a_host_sends_no_more_where_there_are_more_hosts() -> None:
    assert {pair_bytes(hosts) for hosts in (2, 3, 4)} == {PAYLOAD_BYTES}
    totals = {hosts: pair_bytes(hosts) * (hosts - 1) for hosts in range(5, 30)}
    assert all(2 * PAYLOAD_BYTES <= total < 2 * PAYLOAD_BYTES + (4 << 20) * hosts for hosts, total in totals.items())
    assert pair_bytes(1000) == 4 << 20


def test_one_rank_proves_nothing() -> None:
    job: Any = SimpleNamespace(hosts=("a",), size=1, rank=0, fabric=SimpleNamespace(rails=()))
    assert prove_job(job).verdict == "unknown"
