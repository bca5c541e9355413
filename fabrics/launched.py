"""Which rank of a job this process is, as its launcher tells it. Standard library alone."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # as type checkers know it: importing typing would take longer than all the rest
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FORWARDING_S = 0.3  # a launcher that ends a job drops what it has not yet read of its output
RANK_VARIABLES = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID")


def rank(environment: Mapping[str, str] = os.environ) -> int:
    """This process's rank, before MPI is started and whether or not it ever is; 0 outside a job."""
    return first_number(RANK_VARIABLES, 0, environment)


def first_number(names: Sequence[str], default: int, environment: Mapping[str, str] = os.environ) -> int:
    """The value of the first of these variables that holds a whole number."""
    return next((int(environment[name]) for name in names if environment.get(name, "").isdigit()), default)
