"""The worker: every rank of a supervised job. Cases come on standard input, records leave on standard output."""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
from collections.abc import Callable, Mapping
from typing import Any

from fabrics.errors import CannotRun
from fabrics.model import Fabric
from microbench import mpi, registry
from microbench.case import Case
from microbench.proving import prove_job
from suite import session
from suite.protocol import encode, pack

Emit = Callable[[Mapping[str, Any]], None]


def main(argv: list[str] | None = None) -> int:
    """Start MPI, take the job from rank 0's input, run its cases."""
    parser = argparse.ArgumentParser(prog="python -m suite.worker")
    parser.add_argument("--thread-level", default="single", choices=mpi.THREAD_LEVELS)
    parser.add_argument("--cpus", default="", help="a processor list per rank, such as 0:1 or 0,1:0,1")
    args = parser.parse_args(argv)
    emit = _claim_stdout()
    bind(args.cpus, mpi.launched_rank())
    MPI = mpi.start(args.thread_level)  # noqa: N806 - the module's own name
    try:
        _serve(MPI, emit)
    except BaseException as error:
        emit(
            {
                "event": "raised",
                "rank": MPI.COMM_WORLD.Get_rank(),
                "host": socket.gethostname(),
                "error": _one_line(error),
            }
        )
        session.abort(MPI, error)
    return 0


def _one_line(error: BaseException) -> str:
    text = str(error).splitlines()
    return f"{type(error).__name__}: {text[0] if text else ''}".rstrip(": ")


def bind(cpus: str, rank: int) -> None:
    """Bind this process to its list's entry, before anything starts threads."""
    lists = cpus.split(":") if cpus else []
    if rank < len(lists) and lists[rank]:
        os.sched_setaffinity(0, {int(cpu) for cpu in lists[rank].split(",")})


def _claim_stdout() -> Emit:
    """Standard output for events alone: what libraries print goes to standard error, as log."""
    events = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def emit(event: Mapping[str, Any]) -> None:
        events.write(encode(event))
        events.flush()

    return emit


def _serve(MPI: Any, emit: Emit) -> None:  # noqa: N803 - the module's own name
    comm = MPI.COMM_WORLD
    first = comm.Get_rank() == 0
    spec = comm.bcast(json.loads(sys.stdin.readline()) if first else None, root=0)
    settings = {"roles": tuple(spec["roles"]), "launch": spec["launch"], "seed": spec["seed"], "pages": spec["pages"]}
    job = session.open_job(MPI, Fabric.from_dict(spec["fabric"]), **settings)
    table = registry.load(spec["modules"])
    level = mpi.provided_level(MPI)
    proof = prove_job(job)
    if first:
        emit({"event": "job", **session.describe(job, proof, level)})
    for number, data in enumerate(spec["cases"]):
        case = Case(**data)
        if first:
            emit({"event": "start", "case": number})
        outcome = session.run_case(job, case, table)
        if first:
            record = json.loads(session.compose(job, case, outcome, proof, level).to_json())
            emit({"event": "record", "case": number, "record": record, "samples": pack(outcome.samples)})
            _await_stored(number)
        session.quiet_barrier(job)  # no rank begins, or dies in, a case before the last one's record is safe
    if first:
        emit({"event": "end"})


def _await_stored(number: int) -> None:
    """Wait for the supervisor's word that the record is on disk; its silence means that it has gone."""
    if sys.stdin.readline().strip() != f"stored {number}":
        raise CannotRun("the supervisor has gone: nobody stores these records")


if __name__ == "__main__":
    sys.exit(main())
