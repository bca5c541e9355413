"""Deadlines and endings, with plain processes in the place of an MPI job."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest

from suite.supervise import Ending, supervise
from tests import jobs

TELL = "import json,sys,time,os,subprocess; from suite.protocol import encode\n" \
    "def tell(**e): sys.stdout.buffer.write(encode(e)); sys.stdout.buffer.flush()\n" \
    "def record(k): tell(event='record', case=k); assert sys.stdin.readline().strip() == f'stored {k}'\n" \
    "spec = json.loads(sys.stdin.readline())\n"  # fmt: skip


def job(
    body: str, deadline_s: float = 30, start_s: float = 30, cases: int = 2
) -> tuple[Ending, list[dict[str, Any]], list[str]]:
    events: list[dict[str, Any]] = []
    log: list[str] = []
    spec = {"roles": ["host"] * 2, "cases": [{"deadline_s": deadline_s}] * cases}
    command = [sys.executable, "-c", TELL + body]
    ending = supervise(command, os.environ, spec, events.append, log.append, start_s)
    return ending, events, log


def test_a_whole_job() -> None:
    ending, events, log = job(
        "tell(event='job'); tell(event='start', case=0); print('chatter'); print('more', file=sys.stderr); record(0);"
        "tell(event='start', case=1); record(1); tell(event='end')"
    )
    assert ending == Ending("ok")
    assert [e["event"] for e in events] == ["job", "start", "record", "start", "record", "end"]
    assert sorted(log) == ["chatter", "more"]


def test_a_hang_ends_at_the_cases_deadline() -> None:
    ending, events, _ = job("tell(event='job'); tell(event='start', case=1); time.sleep(600)", deadline_s=0.5)
    assert (ending.status, ending.case) == ("timeout", 1)
    assert "passed its deadline" in ending.reason
    assert len(events) == 2


def test_silence_ends_at_the_starts_deadline() -> None:
    ending, _, _ = job("time.sleep(600)", start_s=0.5)
    assert (ending.status, ending.case) == ("timeout", None)


def test_a_death_in_a_case_is_told_with_code_and_last_words() -> None:
    ending, _, _ = job(
        "tell(event='job'); tell(event='start', case=0);"
        "print('last words', file=sys.stderr); sys.stderr.flush(); os._exit(7)"
    )
    assert ending == Ending("failed", "a rank ended early, with exit code 7: last words", 0)


def test_a_job_that_does_not_start_is_told() -> None:
    ending, _, _ = job("sys.exit('no such fabric')")
    assert ending == Ending("failed", "the job did not start (exit code 1): no such fabric", None)


def test_a_raising_rank_is_named() -> None:
    ending, _, _ = job(
        "tell(event='job'); tell(event='start', case=0);"
        "tell(event='raised', rank=1, host='h1', error='ValueError: x'); os._exit(4)"
    )
    assert ending == Ending("failed", "rank 1 on h1 raised ValueError: x", 0)


@pytest.mark.parametrize(
    ("pause_s", "code", "said"),
    [
        (0.0, -9, "rank 0 on h0 was killed by SIGKILL; then rank 1 on h1 raised LoopError: x"),
        (0.6, -9, "rank 1 on h1 raised LoopError: x"),  # by the launcher, which rank 1 had asked to end the job
        (0.0, 4, "rank 1 on h1 raised LoopError: x"),
    ],
)
def test_a_killed_rank_is_the_cause_of_what_others_raise(pause_s: float, code: int, said: str) -> None:
    ending, _, _ = job(
        "tell(event='job'); tell(event='start', case=0);"
        "tell(event='raised', rank=1, host='h1', error='LoopError: x');"
        f"time.sleep({pause_s}); tell(event='died', rank=0, host='h0', case=0, code={code}, where=''); os._exit(4)"
    )
    assert ending == Ending("failed", said, 0)


@pytest.mark.parametrize(
    ("first", "then", "said"),
    [
        (14, -9, "rank 0 on h0 was killed by SIGKILL; then rank 1 on h1 exited with code 14"),
        (14, -6, "rank 1 on h1 exited with code 14"),  # SIGABRT: the library gave up
        (-11, -9, "rank 1 on h1 was killed by SIGSEGV"),
        (14, 15, "rank 1 on h1 exited with code 14"),
    ],
)
def test_a_killed_rank_is_the_cause_of_others_that_leave(first: int, then: int, said: str) -> None:
    ending, _, _ = job(
        f"tell(event='job'); tell(event='start', case=0); tell(event='died', rank=1, host='h1', case=0, code={first});"
        f"tell(event='died', rank=0, host='h0', case=0, code={then}); os._exit(4)"
    )
    assert ending == Ending("failed", said, 0)


def test_a_shutdown_that_hangs_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suite.supervise.BETWEEN_S", 0.5)
    ending, _, log = job("tell(event='job'); tell(event='end'); time.sleep(600)")
    assert ending.status == "ok"
    assert ending.reason.startswith("did not shut down within 0.5 s")
    assert log[-1] == f"the job {ending.reason}; its results are safe"


@pytest.mark.parametrize("stubborn", ["", "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);"])
def test_no_descendant_survives(stubborn: str) -> None:
    child = f"{stubborn} import time; time.sleep(600)"
    ending, events, _ = job(
        f"p = subprocess.Popen([sys.executable, '-c', {child!r}], start_new_session=True); time.sleep(0.3);"
        "tell(event='job', pid=p.pid); tell(event='start', case=0); time.sleep(600)",
        deadline_s=0.5,
    )
    assert ending.status == "timeout"
    assert not jobs.lives(events[0]["pid"])


def test_a_child_whose_parent_died_is_ended_too() -> None:
    _, events, _ = job(
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True,"
        " stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL);"
        "tell(event='job', pid=p.pid); time.sleep(0.5); os._exit(1)"
    )
    assert not jobs.lives(events[0]["pid"])


RANKS = "[tell(event='rank', rank=r, host=f'h{r}', pid=1) for r in (0, 1)]; tell(event='job');"
DIED = "tell(event='died', rank=1, host='h1', code=-9, where='the wait for the next case', case={case}); os._exit(9)"


@pytest.mark.parametrize(("case", "lost"), [(-1, None), (1, 1)])
def test_a_death_between_cases_is_told_and_costs_only_a_case_that_had_begun(case: int, lost: int | None) -> None:
    ending, *_ = job(f"{RANKS} tell(event='start', case=0); record(0); {DIED.format(case=case)}")
    said = "rank 1 on h1 was killed by SIGKILL (last in the wait for the next case)"
    assert ending == Ending("failed", said, lost)


def test_what_follows_the_first_death_is_not_its_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suite.supervise._DYING_S", 0.5)
    ending, *_ = job(
        f"{RANKS} tell(event='start', case=0); tell(event='died', rank=1, host='h1', code=3, where='x', case=0);"
        "tell(event='raised', rank=0, host='h0', error='reset'); tell(event='died', rank=0, host='h0', code=4, case=0);"
        "time.sleep(600)"
    )
    assert ending == Ending("failed", "rank 1 on h1 exited with code 3 (last in x)", 0)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("", "rank 1 on h1 is stopped (last in here); rank 0 on h0 is in there"),
        ("tell(event='continued', rank=1, where='here');", "rank 1 on h1 is silent; rank 0 on h0 is in there"),
    ],
)
def test_a_deadline_tells_what_each_rank_has_said_of_itself(more: str, said: str) -> None:
    ending, *_ = job(
        f"{RANKS} tell(event='start', case=0); tell(event='stopped', rank=1, where='here'); {more}"
        "time.sleep(0.5); tell(event='stuck', rank=0, where='there'); time.sleep(600)",
        deadline_s=0.5,
    )
    assert ending == Ending("timeout", f"passed its deadline of 0.5 s: {said}", 0)


def test_a_rank_that_never_started_is_told() -> None:
    ending, *_ = job("tell(event='rank', rank=0, host='h0', pid=1); time.sleep(600)", start_s=0.5)
    said = "the start passed its deadline of 0.5 s: rank 0 on h0 is silent; rank 1 has not started"
    assert ending == Ending("timeout", said, None)


def test_what_outlives_a_launcher_that_died_is_not_waited_for() -> None:
    ending, *_ = job(
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True);"
        "tell(event='job'); time.sleep(0.3); os._exit(5)"
    )
    assert ending == Ending("failed", "a rank ended early, with exit code 5", None)
