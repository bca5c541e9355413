"""Work ahead: in order, bounded, with deadlines, and no thread is left behind."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from itertools import count

import pytest

from fabrics.errors import CannotRun, UserError
from training.data.prefetch import THREAD_NAME, Prefetch, held

PATIENT_S, IMPATIENT_S = 20.0, 0.05


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith(THREAD_NAME)]


def numbers(work: Callable[[int], int]) -> Callable[[], Callable[[], int]]:
    """Orders 0, 1, 2, ..., each of which gives what ``work`` makes of its number."""
    following = count()
    return lambda: partial(work, next(following))


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_results_come_in_order_and_the_threads_end(workers: int) -> None:
    made = Prefetch("planted", numbers(lambda number: number * number), workers, PATIENT_S)
    assert [made.take() for _ in range(20)] == [number * number for number in range(20)]
    assert bool(threads()) == bool(workers)
    made.close()
    made.close()
    assert threads() == []


def test_results_come_in_order_whichever_is_made_first() -> None:
    second = threading.Event()

    def work(number: int) -> int:
        if number == 0:
            assert second.wait(PATIENT_S)
        elif number == 1:
            second.set()
        return number

    made = Prefetch("planted", numbers(work), 2, PATIENT_S)
    assert [made.take() for _ in range(4)] == [0, 1, 2, 3]
    made.close()


@pytest.mark.parametrize("workers", [1, 2])
def test_no_more_is_made_ahead_than_said(workers: int) -> None:
    begun, full = [], threading.Semaphore(0)

    def work(number: int) -> int:
        begun.append(number)
        full.release()
        return number

    made = Prefetch("planted", numbers(work), workers, PATIENT_S)
    made.take()
    for _ in range(held(workers)):
        assert full.acquire(timeout=PATIENT_S)
    assert not full.acquire(timeout=0.1)
    assert sorted(begun) == list(range(held(workers)))
    made.close()


def test_without_threads_nothing_is_made_ahead_and_the_caller_makes_it() -> None:
    makers: list[threading.Thread] = []

    def work(number: int) -> int:
        makers.append(threading.current_thread())
        return number

    made = Prefetch("planted", numbers(work), 0, PATIENT_S)
    assert made.take() == 0
    assert makers == [threading.current_thread()]


@pytest.mark.parametrize("workers", [0, 1])
def test_what_a_thread_raises_is_raised_to_the_caller_in_its_turn(workers: int) -> None:
    def work(number: int) -> int:
        if number == 2:
            raise UserError("planted: image 2 is broken")
        return number

    made = Prefetch("planted", numbers(work), workers, PATIENT_S)
    assert [made.take(), made.take()] == [0, 1]
    with pytest.raises(UserError, match="image 2 is broken"):
        made.take()
    made.close()
    assert threads() == []


def test_a_thread_that_does_not_deliver_is_told_within_the_deadline_and_close_returns() -> None:
    release = threading.Event()
    made = Prefetch("planted", numbers(lambda number: int(release.wait(PATIENT_S))), 1, IMPATIENT_S)
    with pytest.raises(CannotRun, match=r"^planted: no batch within 0\.05 s: a thread still reads it$"):
        made.take()
    made.close()  # it has waited once already
    left = threads()
    assert len(left) == 1
    release.set()
    left[0].join(PATIENT_S)
    assert not left[0].is_alive()


def test_close_does_not_wait_for_ever_for_a_thread_either() -> None:
    release, begun = threading.Event(), threading.Event()

    def work(number: int) -> int:
        if number:
            begun.set()
            assert release.wait(PATIENT_S)
        return number

    made = Prefetch("planted", numbers(work), 1, IMPATIENT_S)
    try:
        made.take()
        assert begun.wait(PATIENT_S)
        with pytest.raises(CannotRun, match="a thread still reads it"):
            made.close()
    finally:
        left = threads()
        release.set()
    for thread in left:
        thread.join(PATIENT_S)
    assert threads() == []
