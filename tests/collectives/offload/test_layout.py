"""Who is a DPU's, whom it serves, and what cannot be."""

from __future__ import annotations

import pytest

from collectives.offload.layout import layout_of, shared_out
from fabrics.errors import CannotRun


def roles(hosts: int, dpus: int) -> tuple[str, ...]:
    return ("host",) * hosts + ("dpu",) * dpus


def test_one_dpu_for_each_host() -> None:
    layout = layout_of(roles(3, 3), ("a", "b", "c", "x", "y", "z"))
    assert layout.hosts == (0, 1, 2)
    assert layout.dpus == ((3,), (4,), (5,))
    assert layout.served == ((0,), (1,), (2,))
    assert layout.workers == layout.most_served == 1


def test_neighbours_share_a_dpu_and_sizes_differ_by_one() -> None:
    layout = layout_of(roles(5, 2), ("m",) * 7)
    assert layout.served == ((0, 1, 2), (3, 4))
    assert [layout.dpu_of(host) for host in range(5)] == [0, 0, 0, 1, 1]
    assert layout.most_served == 3


def test_consecutive_ranks_are_one_dpus_workers() -> None:
    layout = layout_of(roles(2, 4), ("h0", "h1", "d0", "d0", "d1", "d1"), workers=2)
    assert layout.dpus == ((2, 3), (4, 5))
    assert [layout.worker(rank) for rank in (2, 3, 4, 5)] == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_one_dpu_may_serve_all() -> None:
    assert layout_of(roles(3, 1), ("m",) * 4).served == ((0, 1, 2),)


@pytest.mark.parametrize(
    ("cast", "workers", "said"),
    [
        (roles(2, 0), 1, "needs 2 or more hosts"),
        (roles(1, 1), 1, "needs 2 or more hosts"),
        ((), 1, "none for its 0 ranks"),
        (("host", "dpu", "host", "dpu"), 1, "host,dpu,host,dpu"),
        (("host", "host", "gpu"), 1, "host,host,gpu"),
        (roles(2, 3), 1, "3 DPUs for 2 hosts"),
        (roles(2, 3), 2, "3 DPU ranks are no whole number of DPUs of 2 workers"),
        (roles(2, 2), 0, "no whole number"),
    ],
)
def test_what_cannot_be_is_told_in_a_line(cast: tuple[str, ...], workers: int, said: str) -> None:
    with pytest.raises(CannotRun, match=said) as told:
        layout_of(cast, ("m",) * len(cast), workers)
    assert "\n" not in str(told.value)


def test_workers_of_one_dpu_are_on_one_machine() -> None:
    with pytest.raises(CannotRun, match=r"ranks 2, 3 are to be one DPU's 2 workers: they run on d0 and d1"):
        layout_of(roles(2, 2), ("h0", "h1", "d0", "d1"), workers=2)


@pytest.mark.parametrize("count", [0, 1, 7, 100])
@pytest.mark.parametrize("parts", [1, 2, 3, 7])
def test_runs_follow_each_other_and_cover_all(count: int, parts: int) -> None:
    runs = shared_out(count, parts)
    assert [index for start, length in runs for index in range(start, start + length)] == list(range(count))
    lengths = [length for _, length in runs]
    assert max(lengths) - min(lengths) <= 1
    assert lengths == sorted(lengths, reverse=True)
