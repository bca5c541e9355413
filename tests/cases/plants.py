"""What is planted in these cases; its benchmarks are loaded with ``--module tests.cases.plants``."""

from __future__ import annotations

from fabrics.errors import CannotRun, UserError
from microbench.case import Case, Outcome
from microbench.job import Job
from microbench.registry import Benchmark

PLANTED_S = 0.05  # by which a first call is slower, or a rank later
SIZES = (256, 1024, 4096, 16384)  # of a sweep
RANGE, BROKEN_FROM = tuple(range(196608, 204801, 1024)), 200704  # sizes, and those of them whose sum is wrong
LONELY = "planted: size -8 B is less than 0"
ALIKE = "planted: nobody can do this"


def _first_rank_refuses(job: Job, case: Case) -> Outcome:
    """Rank 0 alone finds its argument wrong, when the others already wait for it."""
    if job.rank == 0:
        raise UserError(LONELY)
    job.comm.Barrier()
    return Outcome()


def _last_rank_refuses(job: Job, case: Case) -> Outcome:
    if job.rank == job.size - 1:
        raise CannotRun(LONELY)
    job.comm.allreduce(1)
    return Outcome()


def _all_refuse(job: Job, case: Case) -> Outcome:
    raise CannotRun(ALIKE)


BENCHMARKS = (
    Benchmark("plant_first_refuses", "a planted fault", _first_rank_refuses, min_ranks=1, sized=False),
    Benchmark("plant_last_refuses", "a planted fault", _last_rank_refuses, min_ranks=1, sized=False),
    Benchmark("plant_all_refuse", "a planted fault", _all_refuse, min_ranks=1, sized=False),
)
