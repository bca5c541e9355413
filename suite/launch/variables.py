"""What of the caller's environment reaches a job: nothing that chooses a transport, and what a bare ssh would drop."""

from __future__ import annotations

import os
from collections.abc import Mapping

_OURS = (
    "UCX_", "FI_", "MPIR_CVAR_", "GLOO_", "NCCL_", "HFI_", "PSM2_", "I_MPI_", "PMI_", "PMIX_", "OMPI_", "PRTE_",
    "HYDRA_", "MPI_LOCALRANKID", "MPI_LOCALNRANKS",
)  # fmt: skip
_PLACES = ("I_MPI_ROOT", "FI_PROVIDER_PATH")  # where a library is, not what it does
_PASSED = ("PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", *_PLACES)
_PASSED_PREFIXES = ("PYTHON", "MPI4PY_")
_PASSED_BY_SRUN = ("HOME", "USER", "LOGNAME", "LANG", "TMPDIR")  # ssh gives a user's own


def _is_ours(name: str) -> bool:
    return name.startswith(_OURS) and name not in _PLACES


def clean_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The caller's environment without what would choose a transport, or is left of another MPI job."""
    return {**{name: value for name, value in environment.items() if not _is_ours(name)}, "OMP_NUM_THREADS": "1"}


def removed_variables(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables that :func:`clean_environment` takes away, to be recorded."""
    return {name: value for name, value in environment.items() if _is_ours(name)}


def passed(environment: Mapping[str, str] = os.environ, allocation: bool = False) -> dict[str, str]:
    """What every rank is given by name, since a bare ssh would not pass it on: where programs and libraries are."""
    names = (*_PASSED, *(_PASSED_BY_SRUN if allocation else ()))
    return {name: value for name, value in environment.items() if name in names or name.startswith(_PASSED_PREFIXES)}
