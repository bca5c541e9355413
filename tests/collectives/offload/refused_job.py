"""Windows that must be refused: ``python -m tests.collectives.offload.refused_job closed|token`` prints the reasons."""

from __future__ import annotations

import dataclasses
import json
import os
import sys

from collectives.offload import window
from collectives.offload.channel import why_not
from collectives.offload.layout import layout_of
from collectives.offload.party import Crew
from fabrics.model import Fabric
from microbench import mpi
from suite import session


def main(scenario: str) -> None:
    """Make host 0 offer what is not its memory."""
    MPI = mpi.start("single")  # noqa: N806 - the module's own name
    job = session.open_job(MPI, Fabric("here", "tcp", (), emulated=True), roles=("host", "host", "dpu", "dpu"))
    crew = Crew(job, layout_of(job.roles, job.hosts))
    original = window.Window._offer

    def offer(self: window.Window, sizes: tuple[int, int]) -> window.Offer:
        true = original(self, sizes)
        if job.rank:
            return true
        if scenario == "token":
            return dataclasses.replace(true, token=bytes(len(true.token)))
        return dataclasses.replace(true, memory=os.open("/dev/null", os.O_RDONLY))

    window.Window._offer = offer  # type: ignore[method-assign]
    reasons = job.comm.gather(why_not(crew, "window"), root=0)
    window.Window._offer = original  # type: ignore[method-assign]
    again = why_not(crew, "window")
    crew.close()
    if job.rank == 0:
        print(json.dumps(reasons if not again else [again]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
