"""Which descriptors are polled, when a trial passes, and when none is made."""

from __future__ import annotations

import os
import select
from types import SimpleNamespace

import pytest

from collectives.offload.waiting import Trial, choose, epoll_descriptors, spin
from fabrics.errors import UserError


def test_epoll_descriptors_are_found_and_no_others():
    before = epoll_descriptors()
    other = os.eventfd(0)
    with select.epoll() as epoll:
        assert sorted([*before, epoll.fileno()]) == epoll_descriptors()
    os.close(other)
    assert epoll_descriptors() == before


@pytest.mark.parametrize(
    ("trial", "passed"),
    [
        (Trial(300e-6, 0.01, 2), True),
        (Trial(0.4, 0.01, 2), False),  # woken by the cap
        (Trial(300e-6, 0.95, 2), False),  # a descriptor that is always ready: the wait burns the core
        (Trial(300e-6, 0.01, 0), False),
    ],
)
def test_a_trial_passes_when_the_message_and_nothing_else_woke_the_rank(trial, passed):
    assert trial.passed is passed


def test_ranks_of_a_real_fabric_spin_without_a_trial():
    job = SimpleNamespace(fabric=SimpleNamespace(emulated=False))  # no communicator: a trial would fail
    waiting = choose(job)
    assert waiting.strategy == "spin"
    assert "real" in waiting.as_dict()["why"]
    assert waiting.call(0, None)[-2:] == (0, 0)


def test_spinning_can_be_asked_for_and_nothing_else():
    job = SimpleNamespace(fabric=SimpleNamespace(emulated=True))
    assert choose(job, "spin").strategy == "spin"
    with pytest.raises(UserError, match="auto or spin"):
        choose(job, "nap")


def test_failed_trials_are_kept_with_the_record():
    kept = spin("messages do not wake ranks 1", (Trial(1e-3, 0.0, 2), Trial(0.4, 0.0, 2))).as_dict()
    assert kept["selftest"]["passed"] == [True, False]
    assert kept["selftest"]["wake_us"] == [1000.0, 400000.0]
