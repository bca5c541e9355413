"""Point to point: latency, bandwidth of a 64-deep window, and the same both ways at once.

Latency is half of a ping-pong's round trip on rank 0. A bandwidth sample is one window: 64 messages and a
4-byte acknowledgement, timed by the sender; bidirectional windows are timed by the slower of the two ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from microbench import check
from microbench.buffers import allocate
from microbench.case import Case, Outcome
from microbench.dtypes import DTYPES, counted, dtype, elements, mpi_type
from microbench.engine import CallSpec, requests, statuses
from microbench.job import Job
from microbench.measure import measure, slowest
from microbench.outcome import median, outcome, rate_metric, time_metrics
from microbench.registry import Benchmark
from microbench.staging import memory
from microbench.stats import metric
from microbench.sync import Own

WINDOW = 64
PRECISION = 0.01
_DATA, _ACK = 1, 2


class Pair:
    """The buffers of one rank of a pair, and what an iteration does with them; of ranks 0 and 1 the first sends."""

    def __init__(self, job: Job, case: Case, peer: int | None = None) -> None:
        kind = dtype(case.dtype or "int8")
        self.job, self.nbytes = job, case.nbytes or 0
        self.count, self.type = elements(self.nbytes, kind), mpi_type(job.engine.MPI, kind)
        job.agree(case.benchmark, count=self.count, dtype=kind.name)
        self.peer = 1 - job.rank if peer is None else peer
        self.first = job.rank < self.peer
        self.memory = memory(job, case.device)
        self.send, self.receive = self.memory.buffer(self.nbytes, sent=True), self.memory.buffer(self.nbytes)
        self.send[:] = check.pattern(self.nbytes, job.rank)
        self.ack = allocate(4, job.pages)
        self.status = statuses(2 * WINDOW)
        self.requests = requests(2 * WINDOW, job.engine.MPI)

    def message(self, name: str, *slot: Any) -> CallSpec:
        """One call that sends or receives this pair's data: ``MPI_Send``, ``MPI_Irecv``, ..."""
        buffer = self.send if name.endswith("end") else self.receive
        tail = slot if name != "MPI_Recv" else (self.status,)
        name = counted(self.job.engine, name, self.count)
        return (name, buffer, self.count, self.type, self.peer, _DATA, self.job.comm, *tail)

    def pingpong(self) -> list[CallSpec]:
        """One message there and one back."""
        there, back = self.message("MPI_Send"), self.message("MPI_Recv")
        return self.memory.calls([there, back] if self.first else [back, there])

    def window(self) -> list[CallSpec]:
        """64 messages from the first to the second of the pair, acknowledged once."""
        comm, byte = self.job.comm, self.job.engine.MPI.BYTE
        name = "MPI_Isend" if self.first else "MPI_Irecv"
        posts = [self.message(name, self.requests[i]) for i in range(WINDOW)]
        ack: CallSpec = ("MPI_Recv", self.ack, 4, byte, self.peer, _ACK, comm, self.status)
        if not self.first:
            ack = ("MPI_Send", self.ack, 4, byte, self.peer, _ACK, comm)
        return self.memory.calls([*posts, ("MPI_Waitall", WINDOW, self.requests, self.status), ack])

    def both_ways(self) -> list[CallSpec]:
        """64 messages each way, receives posted first."""
        posts = [self.message("MPI_Irecv", self.requests[i]) for i in range(WINDOW)]
        posts += [self.message("MPI_Isend", self.requests[WINDOW + i]) for i in range(WINDOW)]
        return self.memory.calls([*posts, ("MPI_Waitall", 2 * WINDOW, self.requests, self.status)])

    def verify(self, body: Sequence[CallSpec], receivers: tuple[int, ...]) -> dict[str, Any]:
        """Run once on poisoned receive buffers and compare what the receivers got."""
        check.poison(self.receive)
        self.memory.upload()
        self.job.comm.Barrier()
        self.job.engine.program(*body).run(1)
        self.memory.download()
        expected = check.pattern(self.nbytes, self.peer) if self.job.rank in receivers else None
        return check.verify(self.receive, expected, self.job.sum, self.job.seed)


def _latency(job: Job, case: Case) -> Outcome:
    pair = Pair(job, case)
    body = pair.pingpong()
    validation = pair.verify(body, (0, 1))
    got = measure(job, case, body, Own("ping-pong"), lambda times: times[0] / 2)
    if job.rank:
        return Outcome()
    got.method.update(pair.memory.method())
    return outcome(got, time_metrics(got), validation, (0,), direction="ping-pong")


def _stream(job: Job, case: Case, ways: int) -> Outcome:
    pair = Pair(job, case)
    body = pair.window() if ways == 1 else pair.both_ways()
    validation = pair.verify(body, (1,) if ways == 1 else (0, 1))
    reported = (0,) if ways == 1 else (0, 1)
    sync = Own("acknowledgement" if ways == 1 else "exchange")
    got = measure(job, case, body, sync, lambda times: slowest(times[list(reported)]))
    if job.rank:
        return Outcome()
    metrics = {
        "bandwidth": rate_metric(ways * WINDOW * pair.nbytes, got, "0 B carry no bandwidth"),
        "time": metric(median(got), "s"),
    }
    got.method.update({"window": WINDOW, **pair.memory.method()})
    return outcome(got, metrics, validation, reported, direction="uni" if ways == 1 else "bi")


def _bandwidth(job: Job, case: Case) -> Outcome:
    return _stream(job, case, ways=1)


def _bibw(job: Job, case: Case) -> Outcome:
    return _stream(job, case, ways=2)


_TYPES = tuple(DTYPES)
BENCHMARKS = (
    Benchmark("latency", "half round trip of a ping-pong", _latency, 2, 2, True, _TYPES, PRECISION),
    Benchmark("bandwidth", "64-deep window, one way", _bandwidth, 2, 2, True, _TYPES, PRECISION),
    Benchmark("bibw", "64-deep windows both ways at once", _bibw, 2, 2, True, _TYPES, PRECISION),
)
