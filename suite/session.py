"""Running cases inside an MPI job: what the supervised worker and a user's own job have in common."""

from __future__ import annotations

import os
import socket
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict, replace
from types import ModuleType
from typing import Any, NoReturn

from fabrics import launched
from fabrics.errors import CannotRun, UserError
from fabrics.lab.inside import lab_host
from fabrics.model import Fabric, Proof
from microbench import memory, mpi
from microbench.case import Case, Invalid, Outcome, Unsupported
from microbench.device import missing
from microbench.engine import Engine
from microbench.job import Job
from microbench.page import Page
from microbench.record import Record, shared_machines, shared_words
from microbench.registry import Benchmark, Registry
from suite import leftovers
from suite.launch import LOCAL

ABORT_CODE = 4
_LOOK_S = 0.0005
_LONGEST_QUEUE = 5


def open_job(
    MPI: ModuleType,  # noqa: N803 - the module's own name
    fabric: Fabric,
    page: Page | None = None,
    planned: Sequence[str] = (),
    **settings: Any,
) -> Job:
    """The job of all ranks of COMM_WORLD, in a communicator of its own; errors return, so that they can be told.

    The loop tells on ``page`` where it is. ``planned`` has the host of each rank, by the name that it was given; a job
    that nobody planned is emulated where ranks are in hosts of a lab.
    """
    comm = MPI.COMM_WORLD.Dup()
    comm.Set_errhandler(MPI.ERRORS_RETURN)
    me = (MPI.Get_processor_name(), tuple(sorted(os.sched_getaffinity(0))), lab_host())
    rows = comm.allgather(me)
    hosts, cpus = by_plan([host for host, *_ in rows], planned), tuple(c for _, c, _ in rows)
    fabric = by_lab(fabric, planned, [lab for *_, lab in rows])
    if not fabric.hosts:
        fabric = replace(fabric, hosts=tuple(dict.fromkeys(hosts)))
    return Job(Engine(MPI, page), comm, fabric, hosts, cpus=cpus, **settings)


def by_lab(fabric: Fabric, planned: Sequence[str], labs: Sequence[str]) -> Fabric:
    """The fabric, emulated where nobody planned the job and some of its ranks are in hosts of a lab."""
    return replace(fabric, emulated=True) if not planned and any(labs) else fabric


def by_plan(found: Sequence[str], planned: Sequence[str]) -> tuple[str, ...]:
    """The hosts by their planned names; CannotRun where ranks are not together, or apart, as planned."""
    if not planned or set(planned) == {LOCAL}:
        return tuple(found)
    first: dict[str, int] = {}
    for rank, (name, host) in enumerate(zip(planned, found, strict=True)):
        other = first.setdefault(host, rank)
        if planned[other] != name:
            where = f"on {planned[other]} and on {name}"
            raise CannotRun(f"ranks {other} and {rank} were to run {where}: both run on {host}")
        apart = next((r for r in range(rank) if planned[r] == name and found[r] != host), None)
        if apart is not None:
            raise CannotRun(f"ranks {apart} and {rank} were to run on {name}: they run on {found[apart]} and on {host}")
    return tuple(planned)


def run_case(job: Job, case: Case, registry: Registry) -> Outcome:
    """One case on every rank; what all ranks raise alike becomes an outcome's status."""
    benchmark = registry.get(case.benchmark)
    if job.size < benchmark.min_ranks:
        raise CannotRun(f"{case.benchmark} needs {benchmark.min_ranks} ranks: this job has {job.size}")
    if benchmark.exact_ranks and job.size != benchmark.exact_ranks:
        raise CannotRun(f"{case.benchmark} takes exactly {benchmark.exact_ranks} ranks: this job has {job.size}")
    job.agree(case.benchmark, case=case.id, iterations=case.max_iterations, seconds=case.budget_s)
    if reason := missing(job.comm, case.device) or _too_large(job, case, benchmark):
        return Outcome("skipped", reason)
    try:
        return benchmark.run(job, case)
    except Unsupported as error:
        return Outcome("unsupported", str(error))
    except Invalid as error:
        return Outcome("invalid", str(error))


def _too_large(job: Job, case: Case, benchmark: Benchmark) -> str:
    """Why the case does not fit into the fullest host or the tightest limit, or nothing; the same on every rank."""
    if not case.nbytes:
        return ""
    left, limit = memory.available_bytes(), memory.allowed_bytes()
    rows = job.comm.allgather((left, limit))
    limits = [allowed for _, allowed in rows if allowed is not None]
    least, largest = min(available for available, _ in rows), case.nbytes * benchmark.largest_buffer(job.size)
    return memory.shortage(largest, job.hosts, job.fabric.emulated, least, min(limits, default=None))


def compose(job: Job, case: Case, outcome: Outcome, proof: Proof, thread_level: str) -> Record:
    """The record of an outcome, on rank 0."""
    known = outcome.proof or proof
    MPI = job.engine.MPI  # noqa: N806 - the module's own name
    per_host = max(job.hosts.count(host) for host in job.hosts)
    return Record(
        **case.identity(),
        status=outcome.status,
        reason=outcome.reason,
        mpi=mpi.make(MPI.Get_library_version()),
        thread_level=thread_level,
        direction=outcome.direction,
        ranks=job.size,
        ranks_per_host=per_host,
        hosts=job.hosts,
        roles=job.roles,
        reported_ranks=outcome.reported_ranks,
        placement=outcome.placement or placement(job),
        launch=job.launch,
        proof=known.verdict,
        emulated=job.fabric.emulated,
        oversubscribed=job.oversubscribed,
        metrics=outcome.metrics,
        method={"seed": job.seed, **outcome.method, **_shared(job, outcome)},
        validation=outcome.validation,
        counters={} if outcome.proof is None else outcome.proof.as_dict(),
    )


def _shared(job: Job, outcome: Outcome) -> dict[str, Any]:
    """The outcome's warnings with one more where ranks that are called DPUs run on a machine of hosts."""
    told = shared_words(shared_machines(job.hosts, job.roles))
    return {"warnings": [told, *outcome.method.get("warnings", ())]} if told else {}


def placement(job: Job) -> str:
    """Which rank runs where, as read back: ``h0:0 h1:1``."""
    return " ".join(f"{host}:{','.join(map(str, cpus))}" for host, cpus in zip(job.hosts, job.cpus, strict=True))


def describe(job: Job, proof: Proof, thread_level: str) -> dict[str, Any]:
    """What ``run.json`` keeps of a job."""
    return {
        "launch": job.launch,
        "fabric": job.fabric.name,
        "hosts": job.hosts,
        "roles": job.roles,
        "cpus": job.cpus,
        "thread_level": thread_level,
        "mpi": mpi.make(job.engine.MPI.Get_library_version()),
        "proof": asdict(proof),
        "oversubscribed": job.oversubscribed,
    }


def quiet_barrier(job: Job) -> None:
    """A barrier that sleeps between looks, so that waiting ranks leave the cores to those that still work."""
    request = job.comm.Ibarrier()
    while not request.Test():
        time.sleep(_LOOK_S)


def _last_words(rank: int, error: BaseException) -> list[str]:
    """One line for what a user can mend, else the traceback; each line marked with its rank and host."""
    mark = f"[rank {rank} on {socket.gethostname()}]"
    if isinstance(error, UserError | CannotRun):
        return [f"{mark} {error}"]
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno is not None):
        return [f"{mark} {type(error).__name__}: {error or 'out of memory'}"]
    return [f"{mark} {line}" for line in traceback.format_exc().splitlines()]


def abort(MPI: ModuleType, error: BaseException) -> NoReturn:  # noqa: N803 - the module's own name
    """End the whole job. The lowest failing rank speaks first, and by ending the job silences the others."""
    rank = MPI.COMM_WORLD.Get_rank()
    time.sleep(min(rank, _LONGEST_QUEUE) * (launched.FORWARDING_S + 0.1))
    if not isinstance(error, BrokenPipeError):  # the reader of our output left, as `head` does
        print("\n".join(_last_words(rank, error)), file=sys.stderr, flush=True)
    leftovers.remove_own()
    time.sleep(launched.FORWARDING_S)
    code = getattr(error, "exit_code", ABORT_CODE)
    MPI.COMM_WORLD.Abort(code)
    os._exit(code)  # where the library lets an aborted rank return
