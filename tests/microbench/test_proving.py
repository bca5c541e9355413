"""Which ranks a job's probe joins: pure."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from microbench.proving import probe_pairs, prove_job


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
    names = tuple(hosts.split())
    job: Any = SimpleNamespace(hosts=names, size=len(names))
    assert probe_pairs(job) == pairs


def test_one_rank_proves_nothing() -> None:
    job: Any = SimpleNamespace(hosts=("a",), size=1, rank=0)
    assert prove_job(job).verdict == "unknown"
