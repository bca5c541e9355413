"""The worker: every rank of a supervised job. Cases come on standard input, records leave on standard output."""

from __future__ import annotations

import argparse
import faulthandler
import json
import mmap
import os
import socket
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from fabrics.errors import CannotRun, UserError
from fabrics.model import Fabric
from microbench import mpi, registry
from microbench.case import Case
from microbench.page import SIZE_BYTES, Page
from microbench.proving import prove_job
from suite import session, settings, watchdog
from suite.binding import bind
from suite.protocol import encode, pack

Emit = Callable[[Mapping[str, Any]], None]


class Watched:
    """The worker's side of its watchdog: a page to tell on, and a bell that wakes it when there is a new deadline."""

    def __init__(self, page: Page, bell: int | None = None) -> None:
        self.page, self._bell = page, bell

    @classmethod
    def by(cls, shared: int | None, bell: int | None) -> Watched:
        """Watched through what the watchdog handed down, or by nobody where a worker was started without one."""
        if shared is None:
            return cls(Page())
        page = Page(mmap.mmap(shared, SIZE_BYTES))
        os.lseek(shared, SIZE_BYTES, os.SEEK_SET)
        faulthandler.register(watchdog.ASK, shared, all_threads=False)
        return cls(page, bell)

    def enter(self, stage: str, case: int = -1, deadline_s: float | None = None) -> None:
        """What this rank does from now on, of which case, and within what time; None leaves the time as it is."""
        if deadline_s is None:
            self.page.enter(stage, case, self.page.deadline_ns)
            return
        self.page.enter(stage, case, time.monotonic_ns() + int(deadline_s * 1e9))
        if self._bell is not None:
            os.write(self._bell, b"\0")


def main(argv: list[str] | None = None) -> int:
    """Start MPI, take the job from rank 0's input, run its cases."""
    args = _parser().parse_args(argv)
    watched = Watched.by(args.page, args.bell)
    watched.enter("MPI's start")
    emit = _claim_stdout()
    os.environ.update(settings.own(args.settings, mpi.launched_rank()))
    bind(args.cpus, mpi.launched_rank())
    MPI = mpi.start(args.thread_level)  # noqa: N806 - the module's own name
    try:
        _serve(MPI, emit, watched)
    except BaseException as error:
        emit(
            {
                "event": "raised",
                "rank": MPI.COMM_WORLD.Get_rank(),
                "host": socket.gethostname(),
                "error": _one_line(error),
                "told": isinstance(error, UserError | CannotRun),  # in words that are a user's to read
            }
        )
        session.abort(MPI, error)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m suite.worker")
    parser.add_argument("--thread-level", default="single", choices=mpi.THREAD_LEVELS)
    parser.add_argument("--cpus", default="", help="a processor list per rank, such as 0:1 or 0,1:0,1; +0 is a place")
    parser.add_argument("--settings", default="", help="variables that differ by rank")
    parser.add_argument("--page", type=int, metavar="FD", help="what this rank shares with its watchdog")
    parser.add_argument("--bell", type=int, metavar="FD", help="a pipe that wakes its watchdog")
    return parser


def _one_line(error: BaseException) -> str:
    text = str(error).splitlines()
    if text and isinstance(error, UserError | CannotRun):
        return text[0]
    return f"{type(error).__name__}: {text[0] if text else ''}".rstrip(": ")


def _claim_stdout() -> Emit:
    """Standard output for events alone: what libraries print goes to standard error, as log."""
    events = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def emit(event: Mapping[str, Any]) -> None:
        events.write(b"\n" + encode(event))  # which may come to stand inside another rank's line: see wire.Stream
        events.flush()

    return emit


def _serve(MPI: Any, emit: Emit, watched: Watched) -> None:  # noqa: N803 - the module's own name
    comm = MPI.COMM_WORLD
    first = comm.Get_rank() == 0
    spec = comm.bcast(json.loads(sys.stdin.readline()) if first else None, root=0)
    given = {"roles": tuple(spec["roles"]), "launch": spec["launch"], "seed": spec["seed"], "pages": spec["pages"]}
    job = session.open_job(MPI, Fabric.from_dict(spec["fabric"]), watched.page, spec.get("hosts", ()), **given)
    table = registry.load(spec["modules"])
    level = mpi.provided_level(MPI)
    watched.enter("the probe")
    begun = time.monotonic()
    proof = prove_job(job)
    if first:
        emit({"event": "job", "proof_s": time.monotonic() - begun, **session.describe(job, proof, level)})
    for number, data in enumerate(spec["cases"]):
        case = Case(**data)
        watched.enter("Python code of the case", number, case.deadline_s)
        if first:
            emit({"event": "start", "case": number})
        outcome = session.run_case(job, case, table)
        if first:
            record = json.loads(session.compose(job, case, outcome, proof, level).to_json())
            watched.enter(watchdog.BETWEEN, deadline_s=watchdog.BETWEEN_S)
            emit({"event": "record", "case": number, "record": record, "samples": pack(outcome.samples)})
            _await_stored(number)
        else:
            watched.enter(watchdog.BETWEEN)  # rank 0 may still be at work on this case: its deadline stands
        session.quiet_barrier(job)  # no rank begins, or dies in, a case before the last one's record is safe
    watched.enter(watchdog.SHUTDOWN, deadline_s=watchdog.BETWEEN_S)
    if first:
        emit({"event": "end"})


def _await_stored(number: int) -> None:
    """Wait for the supervisor's word that the record is on disk; its silence means that it has gone."""
    if sys.stdin.readline().strip() != f"stored {number}":
        raise CannotRun("the supervisor has gone: nobody stores these records")


if __name__ == "__main__":
    sys.exit(main())
