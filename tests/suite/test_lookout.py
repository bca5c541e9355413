"""What watches a job of the user's: pure, but for one job that is interrupted while its ranks wait for each other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from microbench.page import Page
from suite import launch
from suite.lookout import STILL_S, Lookout, Stillness

SOON_S = 8.0  # of which nearly one is given to what the launcher has to forward


@pytest.fixture
def page() -> Page:
    """One that a loop has been in."""
    page = Page(memory := bytearray(4096))
    page.show(b"stamp\nMPI_Wait", 100)
    memory[:16] = (1).to_bytes(8, sys.byteorder) + (17).to_bytes(8, sys.byteorder)
    return page


def proc(folder: Path, states: str) -> list[tuple[str, int]]:
    """Processes in these states, and their seats; a space: it has gone."""
    for pid, state in enumerate(states):
        if state != " ":
            (folder / str(pid)).mkdir()
            (folder / str(pid) / "stat").write_text(f"{pid} (a (b) c) {state} 1 2 3")
    return [("vm", pid) for pid in range(len(states))]


def told(page: Page, seats: list[tuple[str, int]], folder: Path, rank: int = 0) -> list[str]:
    watched = Stillness(rank, page, folder)
    watched.seats = seats
    return [watched.told(now_s) for now_s in (100.0, 100.0 + STILL_S / 2, 101.0 + STILL_S, 200.0)]


def test_a_rank_that_is_stopped_is_named_once(page: Page, tmp_path: Path) -> None:
    assert told(page, proc(tmp_path, "RST "), tmp_path) == [
        "", "",
        "rank 0 has been in MPI_Wait (call 1) in iteration 17 of 100 for 21 s; rank 2 on vm is stopped,"
        " rank 3 on vm has ended (Ctrl-C ends the job)",
        "",
    ]  # fmt: skip


def test_a_long_call_is_told_as_what_it_is(page: Page, tmp_path: Path) -> None:
    (_, _, line, _) = told(page, proc(tmp_path, "RRS"), tmp_path)
    assert line.endswith("for 21 s; no rank of its host is stopped (Ctrl-C ends the job)")


def test_python_at_work_and_loops_that_move_are_not_told(page: Page, tmp_path: Path) -> None:
    idle = Page()
    seats = proc(tmp_path, "RR")
    assert told(idle, seats, tmp_path) == [""] * 4
    watched = Stillness(0, page, tmp_path)
    watched.seats = seats
    for step in range(5):
        page.show(b"%d\n%d" % (step, step), 100)
        assert watched.told(15.0 * step) == ""


def test_rank_1_speaks_only_where_rank_0_is_the_one(page: Page, tmp_path: Path) -> None:
    assert told(page, proc(tmp_path, "RRT"), tmp_path, rank=1) == [""] * 4
    assert "rank 0 on vm is stopped" in told(page, [("vm", 2), ("vm", 1)], tmp_path, rank=1)[2]


def test_processes_of_other_hosts_are_not_looked_for(page: Page, tmp_path: Path) -> None:
    proc(tmp_path, "RT")
    assert "no rank of its host" in told(page, [("vm", 0), ("other", 1), ("other", 77)], tmp_path)[2]


@pytest.mark.parametrize("before", [signal.default_int_handler, signal.SIG_IGN])
def test_a_watch_leaves_signals_and_threads_as_they_were(before: Any) -> None:
    found, threads = signal.signal(signal.SIGINT, before), threading.active_count()
    try:
        with Lookout().on_watch():
            assert (signal.getsignal(signal.SIGINT) is before) == (before is signal.SIG_IGN)
            assert threading.active_count() == threads + 1
        assert signal.getsignal(signal.SIGINT) is before
        assert threading.active_count() == threads
    finally:
        signal.signal(signal.SIGINT, found)


def _heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_one_ctrl_c_ends_hosts_and_their_dpu() -> None:
    words = ("--sizes", "8,4M", "--seconds", "0.4", "--chunk", "4M", "--compare", "host,staged", "--json")
    bench = [sys.executable, "-m", "suite.cli", "bench", "offload_allreduce", *words, "--roles", "host,host,dpu"]
    process = subprocess.Popen(
        launch.job_command(launch.find_launcher(), ("localhost",) * 3, bench, {}),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, start_new_session=True,
        env=launch.clean_environment(), preexec_fn=_heed_interrupts,  # noqa: PLW1509 - no threads
    )  # fmt: skip
    try:
        assert process.stdout is not None and '"nbytes":8,' in process.stdout.readline()
        time.sleep(0.3)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, err = process.communicate(timeout=SOON_S)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130
    assert "fabricbench: interrupted" in err
    assert "Traceback" not in err
