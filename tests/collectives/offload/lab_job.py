"""The engine on a lab: ``python -m tests.collectives.offload.lab_job DEVICE NBYTES TRANSPORTS``.

Rank 0 prints, by transport: pure and overlapped times with compute of the same length, the bytes that each rank's
device sent for each operation, and the chunk table.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import numpy as np

from collectives.offload.channel import Channel, why_not
from collectives.offload.layout import layout_of
from collectives.offload.party import Crew
from collectives.offload.tune import choose_chunk
from fabrics import counters
from fabrics.model import Fabric
from microbench import mpi
from microbench.dtypes import dtype
from microbench.engine import durations, requests, stamped, statuses
from suite import session

TIMES = 12
CPUS = sorted(os.sched_getaffinity(0))


def pure(crew: Crew, kind: Any, count: int) -> float:
    """The hosts' own allreduce, in ns on rank 0; DPUs sleep."""
    crew.quiet.barrier()
    found = 0.0
    if not crew.is_dpu:
        engine, slot = crew.job.engine, requests(1, crew.job.engine.MPI)
        MPI = engine.MPI  # noqa: N806 - the module's own name
        send, receive = np.ones(count, kind.numpy), np.ones(count, kind.numpy)
        call = ("MPI_Iallreduce", send, receive, count, MPI.FLOAT, MPI.SUM, crew.hosts_comm, slot)
        times = engine.program(*crew.meet(), *stamped([call, ("MPI_Wait", slot, statuses(1))])).run(TIMES)
        found = float(np.median(durations(times)[2:]))
    crew.quiet.barrier()
    return crew.quiet.decide(found)[0]


def timed(crew: Crew, channel: Channel, work: list[Any]) -> list[float]:
    """Median overall, post and wait time in ns on rank 0."""
    crew.quiet.barrier()
    engine, found = crew.job.engine, [0.0] * 3
    if crew.is_dpu:
        engine.program(*channel.serve()).run(TIMES)
    else:
        wait = channel.wait(gentle=not crew.is_busy)
        program = engine.program(*crew.meet(), "stamp", *channel.post(), "stamp", *work, "stamp", *wait, "stamp")
        times = program.run(TIMES)[2:]
        found = [float(np.median(times[:, b] - times[:, a])) for a, b in ((0, 3), (0, 1), (2, 3))]
    crew.quiet.barrier()
    return crew.quiet.decide(*found)


def computed(crew: Crew, work: list[Any]) -> float:
    """The work alone, in ns on rank 0."""
    crew.quiet.barrier()
    found = 0.0
    if crew.job.rank == 0:
        found = float(np.median(durations(crew.job.engine.program(*stamped(work)).run(TIMES))))
    crew.quiet.barrier()
    return crew.quiet.decide(found)[0]


def measured(crew: Crew, transport: str, kind: Any, count: int, target_ns: float, per_step: float) -> dict[str, Any]:
    """One transport, tuned."""
    tuned = choose_chunk(crew, "allreduce", kind, count, transport, budget_s=1.0)
    channel = Channel(crew, "allreduce", kind, count, transport, chunk_bytes=tuned.chunk_bytes)
    if not crew.is_dpu:
        channel.send.view(kind.numpy)[:] = crew.host + 1
    alone = timed(crew, channel, [])
    channel.poison()
    before = counters.read()
    work = [("work", int(target_ns / per_step))] if crew.job.rank == 0 else [("nap", int(target_ns))]
    compute = computed(crew, work)
    overall = timed(crew, channel, work)
    sent = counters.delta(before, counters.read())
    hosts = len(crew.layout.hosts)
    right = crew.is_dpu or bool((channel.receive.view(kind.numpy) == hosts * (hosts + 1) / 2).all())
    rows = crew.comm.gather((sent, right), root=0)
    found = {
        "table": [row | {"pure_s": round(row["pure_s"], 5)} for row in tuned.table],
        "pure_ms": alone[0] / 1e6,
        "overall_ms": overall[0] / 1e6,
        "post_ms": overall[1] / 1e6,
        "wait_ms": overall[2] / 1e6,
        "compute_ms": compute / 1e6,
        "overlap": (alone[0] + compute - overall[0]) / min(alone[0], compute),
    }
    if rows is not None:
        found |= {"sent": [row[0] for row in rows], "right": all(row[1] for row in rows)}
    channel.close()
    return found


def main(device: str, nbytes: str, transports: str) -> None:
    """Run and tell."""
    os.sched_setaffinity(0, {CPUS[min(mpi.launched_rank(), 1, len(CPUS) - 1)]})
    MPI = mpi.start("single")  # noqa: N806 - the module's own name
    job = session.open_job(MPI, Fabric(device, "tcp", (), emulated=True), roles=("host", "host", "dpu", "dpu"))
    crew = Crew(job, layout_of(job.roles, job.hosts))
    kind = dtype("float32")
    count = int(nbytes) // kind.nbytes
    steps = 200_000
    crew.quiet.barrier()
    per_step = 0.0
    if job.rank == 0:
        per_step = float(np.median(durations(job.engine.program(*stamped([("work", steps)])).run(40))[10:])) / steps
    (per_step,) = crew.quiet.decide(per_step)
    target = pure(crew, kind, count)
    found: dict[str, Any] = {"waiting": crew.waiting.strategy, "host_pure_ms": target / 1e6, "times": TIMES}
    for transport in transports.split(","):
        reason = why_not(crew, transport)
        found[transport] = reason or measured(crew, transport, kind, count, target, per_step)
    crew.close()
    if job.rank == 0:
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
