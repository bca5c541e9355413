"""What the engine does in a real job of two ranks; prints findings of rank 0 as JSON."""

from __future__ import annotations

import json
import os
import sys
import threading
import time

import numpy as np

from microbench import mpi
from microbench.buffers import allocate
from microbench.clocks import IDENTITY, ClockModel
from microbench.engine import Engine, LoopError, Program, durations, requests, stamped, statuses

MPI = mpi.start(sys.argv[1] if len(sys.argv) > 1 else "single")
COMM = MPI.COMM_WORLD.Dup()
COMM.Set_errhandler(MPI.ERRORS_RETURN)
RANK, PEER = COMM.Get_rank(), 1 - COMM.Get_rank()
ENGINE = Engine(MPI)


def message(n: int) -> tuple[Program, np.ndarray, np.ndarray]:
    send, receive = allocate(n), allocate(n)
    send[:] = RANK + 1
    there = ("MPI_Send", send, n, MPI.BYTE, PEER, 1, COMM)
    back = ("MPI_Recv", receive, n, MPI.BYTE, PEER, 1, COMM, statuses(1))
    return ENGINE.program(*stamped((there, back) if RANK == 0 else (back, there))), send, receive


def caught(kind: type[BaseException], *calls: object) -> str:
    try:
        ENGINE.program(*calls).run(5)
    except kind as error:
        return str(error)
    return "nothing raised"


def watchdog() -> list[str]:
    """What another thread sees while rank 0 waits inside the loop for a message that rank 1 delays."""
    seen: list[str] = []
    buffer, status = allocate(8), statuses(1)
    if RANK == 0:
        thread = threading.Thread(target=lambda: (time.sleep(0.2), seen.append(ENGINE.where())))
        thread.start()
        ENGINE.program("stamp", ("MPI_Recv", buffer, 8, MPI.BYTE, 1, 5, COMM, status)).run(1)
        thread.join()
    else:
        time.sleep(0.5)
        COMM.Send([buffer, 8, MPI.BYTE], dest=0, tag=5)
    return [*seen, ENGINE.where()]


def quiet_wait() -> list[float]:
    """A request completed through poll() with no descriptors and a cap of 1 ms; and its CPU time."""
    buffer, status, slot = allocate(8), statuses(1), requests(1, MPI)
    fds = np.zeros(1, "i8")
    if RANK == 0:
        start = time.process_time()
        post = ("MPI_Irecv", buffer, 8, MPI.BYTE, 1, 6, COMM, slot)
        wait = ("test_until", slot, status, 4, fds, 0, 1)
        times = ENGINE.program("stamp", post, wait, "stamp").run(1)
        return [float(durations(times)[0]) * 1e-9, time.process_time() - start]
    time.sleep(0.3)
    COMM.Send([buffer, 8, MPI.BYTE], dest=0, tag=6)
    return []


def lags() -> list[int]:
    """How long three lags of a list took, of which the middle one is none."""
    drawn, place = np.array([3_000_000, 0, 1_000_000, 50_000_000], "i8"), np.zeros(1, "u8")
    place[0] = drawn.ctypes.data
    times = durations(ENGINE.program("stamp", ("lag", place), "stamp").run(3))
    return [*times.tolist(), int(place[0]) - drawn.ctypes.data]


def bell() -> dict[str, object]:
    """A pipe as a bell between threads: rung before and after somebody listens, and then left by its ringer."""
    heard, rung = os.pipe()
    fds = np.array([(heard, 1, 0)], [("fd", "i4"), ("events", "i2"), ("revents", "i2")])
    progress = (ENGINE.function("MPI_Iprobe"), MPI.ANY_SOURCE, 9, COMM)
    hear = ENGINE.program("stamp", ("hear", *progress, fds, 1, 5), "stamp")
    ring, word = ENGINE.program(("ring", rung), ("look", np.zeros(1, "i8"))), time.process_time()
    ring.run(2)
    hear.run(2)
    thread = threading.Timer(0.2, os.write, (rung, bytes(8)))
    thread.start()
    waited = int(durations(hear.run(1))[0])
    thread.join()
    spent = time.process_time() - word
    os.close(rung)
    alone = caught(LoopError, ("hear", 0, 0, 0, 0, fds, 1, 5))
    os.close(heard)
    return {"waited_ns": waited, "cpu_s": spent, "alone": alone, "closed": caught(LoopError, ("ring", rung))}


def wait(at: np.ndarray, slack_ns: int, clock: ClockModel) -> Program:
    """A stamp, a wait of ``slack_ns`` told by a clock, a stamp: the margin is the column in between."""
    slack = np.array([slack_ns], "i8")
    return ENGINE.program("stamp", ("deadline", at, slack), ("wait_until", at, clock.words()), "stamp")


def other_clock(at: np.ndarray) -> list[int]:
    """How far waits end from the times that a model of a clock 1 s ahead, 100 ppm fast since 10 s, gives."""
    now = time.monotonic_ns()
    model = ClockModel(now - 10_000_000_000, 1_000_000_000, 1e-4, 0.0)
    at[:] = model.to_global(np.array([now + 3_000_000], "i8"))
    margin, end = ENGINE.program(("wait_until", at, model.words()), "stamp").run(1)[0]
    return [int(margin), int(end) - now - 3_000_000]


def main() -> None:
    program, send, receive = message(1000)
    times = program.run(7)
    at = np.zeros(1, "i8")
    waited = wait(at, 2_000_000, IDENTITY).run(3)
    passed = wait(at, -1, IDENTITY).run(4)
    nothing = ENGINE.program(("work", 1)).run(4)
    words = np.zeros(16, "i8")
    ENGINE.program(("stream", words, 16, 3)).run(2)
    kept, copied = np.arange(6, dtype="u1"), np.zeros(6, "u1")
    ENGINE.program(("copy", copied[1:], kept, 4), ("copy", copied, kept[5:], 0)).run(2)
    work = ENGINE.program("stamp", ("work", 10_000), "stamp", ("work", 1_000_000), "stamp").run(5)
    findings = {
        "level": mpi.provided_level(MPI),
        "shape": list(times.shape),
        "increasing": bool(np.all(np.diff(times.reshape(-1)) >= 0)),
        "received": bool(np.all(receive == PEER + 1)),
        "sent_unchanged": bool(np.all(send == RANK + 1)),
        "deadline_kept": bool(np.all(durations(waited) >= 2_000_000)),
        "margins": [int(waited[:, 1].min()), int(waited[:, 1].max()), int(passed[:, 1].max())],
        "other_clock": other_clock(at),
        "no_stamps": list(nothing.shape),
        "streamed": sorted(set(words.tolist())),
        "copied": copied.tolist(),
        "work_scales": bool(np.median(np.diff(work, axis=1)[:, 1]) > 10 * np.median(np.diff(work, axis=1)[:, 0])),
        "napped": bool(durations(ENGINE.program("stamp", ("nap", 3_000_000), "stamp").run(1))[0] >= 3_000_000),
        "lags": lags(),
        "bell": bell(),
        "error": caught(LoopError, ("work", 1), ("MPI_Send", send, -5, MPI.BYTE, PEER, 1, COMM)),
        "arity": caught(TypeError, ("MPI_Send", send, 1)),
        "unknown": caught(KeyError, ("MPI_Frobnicate",)),
        "watchdog": watchdog(),
        "quiet": quiet_wait(),
    }
    if RANK == 0:
        print(json.dumps(findings))


if __name__ == "__main__":
    main()
