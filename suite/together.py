"""One error for all ranks: what a rank finds out alone, before MPI runs or later, must not leave the others waiting."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from types import ModuleType

from fabrics.errors import CannotRun, UserError
from microbench import mpi

_WITHIN_S = 2.0
_LOOK_S = 0.001

Fault = UserError | CannotRun


def agree(MPI: ModuleType, fault: Fault | None = None) -> None:  # noqa: N803 - the module's own name
    """Raise on every rank the fault of the lowest rank that has one; it names the rank where others have none like it.

    Ranks whose thread levels differ are a fault of all. Called once by every rank of COMM_WORLD when MPI has started.
    """
    told = None if fault is None else (fault.exit_code, str(fault))
    rows: list[tuple[tuple[int, str] | None, str]] = MPI.COMM_WORLD.allgather((told, mpi.provided_level(MPI)))
    faults = [(rank, told) for rank, (told, _) in enumerate(rows) if told is not None]
    if not faults:
        _check_levels([level for _, level in rows])
        return
    rank, (code, text) = faults[0]
    if len({told for told, _ in rows}) > 1:
        text = f"rank {rank}: {text}"
    raise UserError(text) if code == UserError.exit_code else CannotRun(text)


def _check_levels(levels: Sequence[str]) -> None:
    """Raise UserError where MPI runs at another thread level on some rank: no number would be of either."""
    other = next((rank for rank, level in enumerate(levels) if level != levels[0]), None)
    if other is not None:
        raise UserError(
            f"ranks have different thread levels: rank 0 {levels[0]}, rank {other} {levels[other]};"
            " give all of them the same --thread-level"
        )


def known(fault: Fault) -> Fault:
    """What all ranks of the job have to tell where this one has found ``fault`` before it started MPI.

    It starts MPI, where the others wait for it in :func:`agree`. Outside a job, after the start, and where MPI does not
    start, it is ``fault`` itself.
    """
    if mpi.launched_size() == 1 or _started():
        return fault
    try:
        agree(mpi.start(asked_level(sys.argv[1:])), fault)
    except (UserError, CannotRun) as error:
        return fault if not _started() else error
    return fault


def asked_level(arguments: Sequence[str]) -> str:
    """The thread level that a command line asks for, be the rest of it as wrong as it may; the usual one if none."""
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument("--thread-level", choices=mpi.THREAD_LEVELS, default=mpi.THREAD_LEVELS[0])
    try:
        return str(parser.parse_known_args(arguments)[0].thread_level)
    except argparse.ArgumentError:
        return mpi.THREAD_LEVELS[0]


def _started() -> bool:
    library = sys.modules.get("mpi4py.MPI")
    return library is not None and bool(library.Is_initialized())


def all_come(MPI: ModuleType, within_s: float = _WITHIN_S) -> bool:  # noqa: N803 - the module's own name
    """Whether every rank calls this within the time: no rank is left where it would wait for this one for ever."""
    request = MPI.COMM_WORLD.Ibarrier()
    until = time.monotonic() + within_s
    while not request.Test():
        if time.monotonic() > until:
            return False
        time.sleep(_LOOK_S)
    return True
