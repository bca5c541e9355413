"""Nobody waits for ever: a fault of one rank, and one that is missing, too many or there twice, end all in a line."""

from __future__ import annotations

import sys
import threading
from datetime import timedelta
from typing import Any

import pytest

from suite import launch
from tests import jobs
from tests.cases.plants import ALIKE, LONELY

PROGRAM = ("-m", "suite.cli", "bench")


def lines(done: jobs.Done) -> list[str]:
    return [line for line in done.err.splitlines() if line.startswith(("fabricbench", "[rank"))]


@pytest.mark.parametrize(
    ("first", "others", "code", "said"),
    [
        (("latency", "--sizes=-8"), ("latency", "--sizes", "8"), 2, "rank 0: malformed size '-8'"),
        (("latency", "--sizes", "8"), ("latency", "--frobnicate"), 2, "rank 1: unrecognized arguments: --frobnicate"),
        (("latency", "--module", "no.such"), ("latency",), 2, "rank 0: no module 'no'"),
    ],
)
def test_an_argument_that_only_one_rank_finds_wrong_ends_them_all(
    first: tuple[str, ...], others: tuple[str, ...], code: int, said: str
) -> None:
    """An argument that fails on one rank before it has started MPI, where the others would wait for it."""
    job = [sys.executable, *PROGRAM]
    command = [launch.find_launcher().path, "-n", "1", *job, *first, ":", "-n", "1", *job, *others]
    done = jobs.run(command, timeout_s=20)
    assert (done.code, done.out) == (code, "")
    (line,) = lines(done)
    assert line.startswith(f"fabricbench: {said}")


@pytest.mark.parametrize(
    ("fault", "ranks", "rank", "code"), [("plant_first_refuses", 3, 0, 2), ("plant_last_refuses", 2, 1, 4)]
)
def test_an_argument_that_one_rank_refuses_in_the_benchmark_ends_them_all(
    fault: str, ranks: int, rank: int, code: int
) -> None:
    """A plain error of one rank while the others are in a collective that it will never enter."""
    done = jobs.mpi(ranks, *PROGRAM, fault, "--module", "tests.cases.plants", timeout_s=30)
    assert done.code == code
    (line,) = lines(done)
    assert line.startswith(f"[rank {rank} on ") and line.endswith(LONELY)
    assert "Traceback" not in done.err


def test_what_all_ranks_refuse_alike_is_told_once_and_ends_in_order() -> None:
    """The counterpart: the same error on every rank needs nobody to be ended by force."""
    done = jobs.mpi(2, *PROGRAM, "plant_all_refuse", "--module", "tests.cases.plants", timeout_s=30)
    assert (done.code, lines(done)) == (4, [f"fabricbench: {ALIKE}"])
    assert "Abort" not in done.err


def meeting(size: int, ranks: list[int], timeout_s: float) -> list[str]:
    """What each of ``ranks`` is told when just these come to a store that expects ``size``: sockets, a thread each."""
    distributed: Any = pytest.importorskip("torch.distributed")
    from collectives.backends import rendezvous

    wait = timedelta(seconds=20)
    hosted = distributed.TCPStore("127.0.0.1", 0, is_master=True, timeout=wait, wait_for_workers=False)
    told = ["nothing"] * len(ranks)

    def come(place: int) -> None:
        store = distributed.TCPStore("127.0.0.1", hosted.port, is_master=False, timeout=wait, wait_for_workers=False)
        told[place] = rendezvous.census(store, ranks[place], size, timeout_s)

    threads = [threading.Thread(target=come, args=(place,), daemon=True) for place in range(len(ranks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    return told


@pytest.mark.parametrize(
    ("size", "ranks", "timeout_s", "said"),
    [
        (3, [0, 1, 2], 15, ""),
        (3, [0, 1], 0.5, "expected ranks 0 to 2, seen 0, 1 within 0.5 s: rank 2 did not come"),
        (4, [0], 0.5, "expected ranks 0 to 3, seen 0 within 0.5 s: ranks 1, 2, 3 did not come"),
        (2, [0, 0], 15, "expected ranks 0 to 1, seen 0, 0: 0 came more than once"),
    ],
)
def test_an_absent_rank_and_one_that_came_twice_are_told_to_all(
    size: int, ranks: list[int], timeout_s: float, said: str
) -> None:
    """A group that expects another number of processes than was started: no endless wait, expected and seen named."""
    assert meeting(size, ranks, timeout_s) == [said] * len(ranks)


def test_a_surplus_rank_is_told_so() -> None:
    """One process more than the group expects: it is told at least, and those within the group if it came in time."""
    first, second, surplus = meeting(2, [0, 1, 2], 15)
    assert surplus.startswith("expected ranks 0 to 1, seen ") and surplus.endswith("2: 2 too many")
    assert {first, second} <= {"", surplus}


def test_without_rank_0_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that serves the meeting place and judges who came is itself the one that does not come."""
    pytest.importorskip("torch.distributed")
    monkeypatch.setattr("collectives.backends.rendezvous._GRACE_S", 0.3)
    assert meeting(2, [1], 0.2) == ["expected ranks 0 to 1: rank 0 did not say within 0.5 s who came"]
