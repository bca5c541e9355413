"""A small MPI job whose ranks open folders of their own below a folder: rank 0 prints what each of them says."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from mpi4py import MPI

from fabrics.errors import CannotRun, UserError
from training.data import opened, opened_by_all, parse

COMM, TOP = MPI.COMM_WORLD, sys.argv[1]
RANK = COMM.Get_rank()


def said(text: str) -> int | str:
    """How many images this rank has, or its error."""
    data = parse(text)
    try:
        return len(opened_by_all(COMM, lambda: opened(data, "training", 32, 10, 0, 0)))
    except (UserError, CannotRun) as error:
        return f"{type(error).__name__}: {error}"


TEXTS = {
    "alike": f"cifar10:{TOP}/alike-{RANK}",
    "missing": f"cifar10:{TOP}/missing-{RANK}",
    "nowhere": f"folder:{TOP}/nowhere",
    "names": f"folder:{TOP}/names-{RANK}",
    "same": f"folder:{TOP}/same-{RANK}",
}
found = {name: COMM.gather(said(text)) for name, text in TEXTS.items()}
if RANK == 0:
    print(json.dumps(found))
