"""Starting MPI: the one place that imports it, after the thread level is set."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from types import ModuleType

from fabrics import launched
from fabrics.errors import CannotRun, UserError

THREAD_LEVELS = ("single", "funneled", "serialized", "multiple")
_SIZE_VARIABLES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "PMIX_SIZE", "SLURM_STEP_NUM_TASKS")
GET_MPI = "install fabricbench with its own (pip install 'fabricbench[mpi]') or mpi4py for the system's MPI"


def launched_rank() -> int:
    """This process's rank as its launcher tells it, before MPI is started; 0 outside a job."""
    return launched.rank()


def launched_size() -> int:
    """How many ranks the launcher says it started; 1 outside a job."""
    return launched.first_number(_SIZE_VARIABLES, 1)


def library_version() -> str:
    """What the library says of itself, without starting MPI; raises CannotRun where there is none."""
    return str(_load().Get_library_version())


def start(thread_level: str = "single") -> ModuleType:
    """Import mpi4py.MPI, initialise MPI at ``thread_level``, and check that the job is whole.

    Raises UserError for an unknown level, CannotRun where there is no MPI or the launcher is of another make.
    """
    if thread_level not in THREAD_LEVELS:
        raise UserError(f"unknown thread level {thread_level!r}: one of {', '.join(THREAD_LEVELS)}")
    MPI = _load()  # noqa: N806 - the module's own name
    library = make(MPI.Get_library_version())
    check_launcher(library)
    if not MPI.Is_initialized():
        MPI.Init_thread(getattr(MPI, f"THREAD_{thread_level.upper()}"))
    if launched_size() > 1 and MPI.COMM_WORLD.Get_size() == 1:
        plugin = "pmix, or mpirun" if "open mpi" in library.lower() else "pmi2"
        hint = f" (srun: try --mpi={plugin})" if "SLURM_STEP_NUM_TASKS" in os.environ else ""
        raise CannotRun(_mismatch(library, f"started {launched_size()} ranks, of which it sees 1{hint}"))
    return MPI


def _load() -> ModuleType:
    """Import the library without initialising it, so that a launcher of another make is told before it aborts."""
    import mpi4py  # noqa: PLC0415 - not needed where MPI is never started

    mpi4py.rc.initialize, mpi4py.rc.finalize = False, True
    try:
        with warnings.catch_warnings(action="ignore"):  # mpi4py's own suspicion, which check_launcher tells in a line
            from mpi4py import MPI  # noqa: PLC0415 - the import loads the library
    except (ImportError, RuntimeError) as error:
        raise CannotRun(f"no MPI library found ({str(error).splitlines()[0]}): {GET_MPI}") from None
    return MPI


def check_launcher(library: str, environment: Mapping[str, str] = os.environ) -> None:
    """Raise CannotRun where what the launcher left in the environment is not for this library."""
    ours = "open mpi" in library.lower()
    by_openmpi = "OMPI_COMM_WORLD_SIZE" in environment
    by_hydra = "PMI_SIZE" in environment and not any(name.startswith("SLURM_") for name in environment)
    if by_openmpi and not ours:
        raise CannotRun(_mismatch(library, "is Open MPI's"))
    if by_hydra and not by_openmpi and ours:
        raise CannotRun(_mismatch(library, "is Hydra (MPICH, Intel MPI)"))


def _mismatch(library: str, what: str) -> str:
    return (
        f"the launcher {what}, and the MPI library that mpi4py uses is {library}: they do not fit each other;"
        " use the library's own mpiexec"
    )


def provided_level(MPI: ModuleType) -> str:  # noqa: N803 - the module's own name
    """The thread level that the library gave."""
    names = {getattr(MPI, f"THREAD_{level.upper()}"): level for level in THREAD_LEVELS}
    return names[MPI.Query_thread()]


def make(version: str) -> str:
    """Name and number from a library's version text: ``MPICH 5.0.2``."""
    lines = [line.strip() for line in version.replace("\0", "").splitlines() if line.strip()]
    for line in lines:
        for name in ("Intel(R) MPI Library", "MVAPICH", "Open MPI", "CRAY MPICH", "MPICH"):
            if name.lower() in line.lower():
                number = next(
                    (t.strip(",v") for t in line.replace(":", " ").split() if t.strip("v,")[:1].isdigit()), ""
                )
                return f"{name} {number}".strip()
    return lines[0] if lines else "unknown"
