"""Apples and oranges: what is not compared, and how the difference is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reports.comparison.alike import pair, words
from tests.reports.comparison.planted import allreduce, noisy, side
from tests.reports.folder import METHOD, Folder


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"proof": "unknown"}, "proof: proved against unknown"),
        ({"thread_level": "multiple"}, "thread level: single against multiple"),
        ({"method": {**METHOD, "pages": "huge"}}, "page policy: small against huge"),
        ({"method": {**METHOD, "sync": "round-time"}}, "start of the ranks: barrier against round-time"),
        ({"hosts": ("n4", "n5")}, "hosts: localhost,localhost against n4,n5"),
        ({"ranks_per_host": 2}, "ranks a host: 0 against 2"),
        ({"oversubscribed": True}, "oversubscribed: no against yes"),
        ({"emulated": True}, "emulated: no against yes"),
        ({"device": "cuda"}, "device: cpu against cuda"),
    ],
)
def test_a_difference_is_named_and_nothing_is_compared(more: dict[str, Any], told: str) -> None:
    other = allreduce(noisy(2))
    other.records[:] = [replace(record, **more) for record in other.records]
    found = pair(side(allreduce(noisy(1))), side(other))
    assert not found.pairs
    assert [refused.differences for refused in found.refused] == [(told,)]


@pytest.mark.parametrize(
    ("more", "told"),
    [({"ranks": 3}, "ranks: 2 against 3"), ({"recipe": "job"}, "recipe: pure against job"), ({}, None)],
)
def test_another_id_is_set_beside_what_it_resembles(more: dict[str, Any], told: str | None) -> None:
    found = pair(side(allreduce(noisy(1))), side(allreduce(noisy(2), **more)))
    if told is None:
        assert len(found.pairs) == 1 and not found.refused
    else:
        assert not found.pairs
        assert [told in refused.differences for refused in found.refused] == [True]


def test_other_hosts_may_be_asked_for() -> None:
    old, new = side(allreduce(noisy(1))), side(allreduce(noisy(2), hosts=("n4", "n5")))
    assert not pair(old, new).pairs
    assert len(pair(old, new, other_hosts=True).pairs) == 1


def test_another_library_may_be_what_is_compared() -> None:
    other = allreduce(noisy(2))
    other.records[:] = [replace(record, mpi="Open MPI 5.0.11") for record in other.records]
    assert len(pair(side(allreduce(noisy(1))), side(other)).pairs) == 1


def test_what_one_side_alone_has_is_told() -> None:
    found = pair(side(allreduce(noisy(1), 2)), side(allreduce(noisy(2))))
    assert found.only_old == ("allreduce/roce0/pure/mpi/float32/16B/2r",) and not found.only_new
    assert pair(side(Folder()), side(allreduce(noisy(1)))).only_new == ("allreduce/roce0/pure/mpi/float32/8B/2r",)


def test_a_case_in_words() -> None:
    (case,) = side(allreduce(noisy(1), algorithm="ring")).cases.values()
    assert words(case) == "allreduce 2 ranks 8 B on roce0 (ring)"
