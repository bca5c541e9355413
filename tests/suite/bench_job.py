"""Commands of ``fabricbench bench`` one after the other in one job, which starts only once for all of them.

``mpiexec -n 2 python -m tests.suite.bench_job '[["allreduce", "--sizes", "8"], ...]'``: rank 0 prints what each prints,
and after it a line ``exit CODE``.
"""

from __future__ import annotations

import json
import sys

from microbench import mpi
from suite import cli

END = "exit "


def main(commands: str) -> None:
    """Run them."""
    for arguments in json.loads(commands):
        code = cli.main(["bench", *arguments])
        if mpi.launched_rank() == 0:
            print(f"{END}{code}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
