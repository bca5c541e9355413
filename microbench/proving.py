"""The probe of a job: send a known payload, read every host's counters around it, judge.

Cases whose own wire traffic nobody knows (a library's collectives, 8-byte messages) inherit this verdict.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fabrics import counters
from fabrics.model import Proof
from fabrics.proof import judge, payload_needed
from microbench.buffers import allocate
from microbench.engine import requests, statuses

if TYPE_CHECKING:
    from microbench.job import Job

PAYLOAD_BYTES = 64 << 20
_MESSAGE_BYTES, _WINDOW = 1 << 20, 4
_WINDOW_BYTES = _WINDOW * _MESSAGE_BYTES
_FULL_PEERS, _MOST_BYTES = 3, 2 * PAYLOAD_BYTES
_QUIET_S = 0.2
_SETTLE_S = 1.2
_LONGEST_S = 1.0
_TAG = 77
_MOST_REPEATS = 16

Counts = dict[str, tuple[int, int]]


def prove(job: Job, traffic: Callable[[], None], sent_bytes: int, received_bytes: int) -> Proof:
    """Run ``traffic`` on every rank between two readings of every host's counters.

    ``sent_bytes`` and ``received_bytes`` are this rank's lower bounds of one run of it, which is repeated where the
    background is so loud that one would drown, for about a second at most: beyond, more time brings more background.
    Counters are read before anything is gathered over the fabric.
    """
    quiet, quiet_s, _ = _watched(job, _pause, 0, 0)
    loudest = job.max(max((max(rise) for rise in quiet.values()), default=0) / quiet_s)
    smallest = -job.max(-float(max(sent_bytes, received_bytes) or payload_needed(0)))
    wanted = min(_MOST_REPEATS, math.ceil(payload_needed(loudest) / smallest))

    def probe() -> int:
        start = time.monotonic()
        traffic()
        took_s = job.max(time.monotonic() - start)
        more = max(0, min(wanted, int(_LONGEST_S / took_s)) - 1)
        for _ in range(more):
            traffic()
        return 1 + more

    seen, seen_s, times = _watched(job, probe, sent_bytes, received_bytes)
    background = counters.scaled(quiet, seen_s / quiet_s)
    return _verdict(job, (sent_bytes * times, received_bytes * times), seen, background)


def _pause() -> int:
    time.sleep(_QUIET_S)
    return 1


def _watched(job: Job, act: Callable[[], int], sent: int, received: int) -> tuple[Counts, float, int]:
    """This host's rises while every rank acts, for how long, and how often it did, as ``act`` returns.

    ``sent`` and ``received`` are the bytes of acting once; waits for drivers that refresh once a second.
    """
    job.comm.Barrier()
    before, start = counters.read(), time.monotonic()
    job.comm.Barrier()  # nobody sends before everybody has read
    times = act()
    job.comm.Barrier()
    took = time.monotonic() - start
    due = [d for d in job.fabric.devices.get(job.hosts[job.rank], ())]
    until = time.monotonic() + _SETTLE_S
    while True:
        rises = counters.delta(before, counters.read())
        rx, tx = (sum(rises.get(d, (0, 0))[i] for d in due) for i in (0, 1))
        whole = rx >= received * times and tx >= sent * times
        if whole or not (due and sent + received) or time.monotonic() > until:
            return rises, took, times
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


def probe_rounds(hosts: Sequence[str], rails: Sequence[int] = ()) -> list[list[tuple[int, int]]]:
    """Which ranks a job's probe joins, round after round, so that no rank is in two pairs of a round.

    Each pair of hosts meets once, by the first rank of each, and with ``rails`` once more for each further device, by
    the first local rank that uses it. Bytes within a host are not among them, unless there is one host alone.
    """
    ranks: dict[str, list[int]] = {}
    for rank, host in enumerate(hosts):
        ranks.setdefault(host, []).append(rank)
    if len(ranks) == 1:
        return [[(0, 1)]] if len(hosts) > 1 else []
    rounds: list[list[tuple[int, int]]] = []
    for local in sorted({rails.index(device) for device in rails}) or [0]:
        rounds += _tournament([own[local] for own in ranks.values() if len(own) > local])
    return rounds


def _tournament(ranks: Sequence[int]) -> list[list[tuple[int, int]]]:
    """All pairs in as few rounds as there can be, by the circle method: one place stays, the others move on by one."""
    places: list[int | None] = [*ranks, *[None] * (len(ranks) % 2)]
    rounds = []
    for _ in range(len(places) - 1):
        opposite = zip(places[: len(places) // 2], reversed(places), strict=False)
        rounds.append([(min(a, b), max(a, b)) for a, b in opposite if a is not None and b is not None])
        places.insert(1, places.pop())
    return rounds


def pair_bytes(hosts: int) -> int:
    """What a pair sends: 64 MiB; in jobs of more than four hosts, each host's share of 128 MiB, in whole windows.

    One of a host's N - 1 pairs that goes another way then still is a part of 1 / (N - 1) of its payload.
    """
    if hosts - 1 <= _FULL_PEERS:
        return PAYLOAD_BYTES
    return -(-_MOST_BYTES // ((hosts - 1) * _WINDOW_BYTES)) * _WINDOW_BYTES


def prove_job(job: Job, payload_bytes: int | None = None) -> Proof:
    """The proof that all cases of the job inherit; ``payload_bytes`` a pair, in whole windows of 4 MiB."""
    rounds = probe_rounds(job.hosts, job.fabric.rails)
    if not rounds:
        return Proof("unknown", "one rank: nothing to send")
    each = payload_bytes or pair_bytes(len(set(job.hosts)))
    mine = [pair for pairs in rounds for pair in pairs if job.rank in pair]
    sent = each * sum(first == job.rank for first, _ in mine)
    return prove(job, lambda: _send(job, mine, each), sent, each * len(mine) - sent)


def _send(job: Job, pairs: Sequence[tuple[int, int]], each: int) -> None:
    """This rank's pairs in turn: the payload as windows of 1 MiB messages from the first rank to the second."""
    MPI = job.engine.MPI  # noqa: N806 - the module's own name
    buffer, slots, states = allocate(_MESSAGE_BYTES), requests(_WINDOW, MPI), statuses(_WINDOW)
    for a, b in pairs:
        name, peer = ("MPI_Isend", b) if job.rank == a else ("MPI_Irecv", a)
        posts = [(name, buffer, _MESSAGE_BYTES, MPI.BYTE, peer, _TAG, job.comm, slots[i]) for i in range(_WINDOW)]
        job.engine.program(*posts, ("MPI_Waitall", _WINDOW, slots, states)).run(each // _WINDOW_BYTES)
