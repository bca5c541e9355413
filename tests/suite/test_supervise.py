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


def test_a_shutdown_that_hangs_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suite.supervise.BETWEEN_S", 0.5)
    ending, _, log = job("tell(event='job'); tell(event='end'); time.sleep(600)")
    assert ending == Ending("ok")
    assert "did not shut down" in log[-1]


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
