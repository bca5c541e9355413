"""The probe of a job: send a known payload, read every host's counters around it, judge.

Cases whose own wire traffic nobody knows (a library's collectives, 8-byte messages) inherit this verdict.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from fabrics import counters
from fabrics.model import Proof
from fabrics.proof import judge, payload_needed
from microbench.buffers import allocate
from microbench.engine import requests, statuses

if TYPE_CHECKING:
    from microbench.job import Job

PAYLOAD_BYTES = 64 << 20
_MESSAGE_BYTES = 1 << 20
_QUIET_S = 0.2
_SETTLE_S = 1.5
_TAG = 77
_MOST_REPEATS = 16

Counts = dict[str, tuple[int, int]]


def prove(job: Job, traffic: Callable[[], None], sent_bytes: int, received_bytes: int) -> Proof:
    """Run ``traffic`` on every rank between two readings of every host's counters.

    ``sent_bytes`` and ``received_bytes`` are this rank's lower bounds of one run of it, which is repeated where the
    background is so loud that one would drown. Counters are read before anything is gathered over the fabric.
    """
    quiet, quiet_s = _watched(job, lambda: time.sleep(_QUIET_S), 0, 0)
    loudest = job.max(max((max(rise) for rise in quiet.values()), default=0) / quiet_s)
    smallest = -job.max(-float(max(sent_bytes, received_bytes) or payload_needed(0)))
    repeats = max(1, min(_MOST_REPEATS, math.ceil(payload_needed(loudest) / smallest)))

    def probe() -> None:
        for _ in range(repeats):
            traffic()

    seen, seen_s = _watched(job, probe, sent_bytes * repeats, received_bytes * repeats)
    background = counters.scaled(quiet, seen_s / quiet_s)
    return _verdict(job, (sent_bytes * repeats, received_bytes * repeats), seen, background)


def _watched(job: Job, act: Callable[[], None], sent: int, received: int) -> tuple[Counts, float]:
    """This host's rises while every rank acts, and for how long; waits for drivers that refresh once a second."""
    job.comm.Barrier()
    before, start = counters.read(), time.monotonic()
    job.comm.Barrier()  # nobody sends before everybody has read
    act()
    job.comm.Barrier()
    took = time.monotonic() - start
    due = [d for d in job.fabric.devices.get(job.hosts[job.rank], ())]
    until = time.monotonic() + _SETTLE_S
    while True:
        rises = counters.delta(before, counters.read())
        rx, tx = (sum(rises.get(d, (0, 0))[i] for d in due) for i in (0, 1))
        if (rx >= received and tx >= sent) or not (due and sent + received) or time.monotonic() > until:
            return rises, took
        time.sleep(0.02)


def _verdict(job: Job, payload: tuple[int, int], seen: Counts, background: Counts) -> Proof:
    rows = job.comm.gather((job.hosts[job.rank], payload, seen, background, counters.paths()), root=0)
    proof = None
    if rows is not None:
        sent: dict[str, int] = {}
        received: dict[str, int] = {}
        for host, (out, into), *_ in rows:
            sent[host] = sent.get(host, 0) + out
            received[host] = received.get(host, 0) + into
        # the ranks of a host share its counters: the first one's reading stands for them
        deltas, noise, paths = ({row[0]: row[i] for row in reversed(rows)} for i in (2, 3, 4))
        proof = judge(job.fabric, sent, received, deltas, noise, paths)
    verdict = job.decide(proof)
    if not isinstance(verdict, Proof):
        raise TypeError(f"no proof came from rank 0: {verdict!r}")
    return verdict


def probe_pairs(job: Job) -> list[tuple[int, int]]:
    """Which ranks the job's probe joins: the first rank of each host with that of each other, or two on one."""
    first = {host: rank for rank, host in reversed(list(enumerate(job.hosts)))}
    leaders = sorted(first.values())
    if len(leaders) == 1:
        return [(0, 1)] if job.size > 1 else []
    return [(a, b) for i, a in enumerate(leaders) for b in leaders[i + 1 :]]


def prove_job(job: Job) -> Proof:
    """The proof that all cases of the job inherit."""
    pairs = probe_pairs(job)
    if not pairs:
        return Proof("unknown", "one rank: nothing to send")
    mine = [(a, b) for a, b in pairs if job.rank in (a, b)]
    sent = sum(PAYLOAD_BYTES for a, _ in mine if a == job.rank)
    received = sum(PAYLOAD_BYTES for _, b in mine if b == job.rank)
    return prove(job, lambda: _send_pairs(job, pairs), sent, received)


def _send_pairs(job: Job, pairs: list[tuple[int, int]]) -> None:
    """Every pair in turn: the payload as windows of 1 MiB messages from the first rank to the second."""
    MPI, window = job.engine.MPI, 8  # noqa: N806 - the module's own name
    buffer, slots, states = allocate(_MESSAGE_BYTES), requests(window, MPI), statuses(window)
    for a, b in pairs:
        if job.rank in (a, b):
            name, peer = ("MPI_Isend", b) if job.rank == a else ("MPI_Irecv", a)
            posts = [(name, buffer, _MESSAGE_BYTES, MPI.BYTE, peer, _TAG, job.comm, slots[i]) for i in range(window)]
            job.engine.program(*posts, ("MPI_Waitall", window, slots, states)).run(
                PAYLOAD_BYTES // _MESSAGE_BYTES // window
            )
