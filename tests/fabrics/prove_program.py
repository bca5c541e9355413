"""A rank of a job that does nothing but its proof: rank 0 prints it as a line of JSON."""

import json
import os
import sys
import time
from dataclasses import asdict

from fabrics.model import Fabric
from microbench import mpi
from microbench.proving import prove_job
from suite import session


def main() -> None:
    fabric, payload = Fabric.from_dict(json.loads(sys.argv[1])), int(sys.argv[2])
    job = session.open_job(mpi.start(), fabric)
    job.comm.Barrier()
    start = time.monotonic()
    proof = prove_job(job, payload or None)
    took_s = job.max(time.monotonic() - start)
    if job.rank == 0:
        os.write(1, (json.dumps({"proof": asdict(proof), "took_s": took_s}) + "\n").encode())


main()
