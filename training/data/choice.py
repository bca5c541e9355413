"""Which images a case trains on: ``synthetic``, ``cifar10:PATH`` or ``folder:PATH``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fabrics.errors import CannotRun, UserError
from training.data.cifar import CLASSES, open_cifar10
from training.data.folder import open_folder
from training.data.source import Part, Source, readable
from training.data.synthetic import Synthetic

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

SYNTHETIC, CIFAR10, FOLDER = KINDS = ("synthetic", "cifar10", "folder")
_WAYS = f"{SYNTHETIC}, {CIFAR10}:PATH or {FOLDER}:PATH"


@dataclass(frozen=True)
class Data:
    """A kind of data, which is what reports name it by, and where it lies."""

    kind: str = SYNTHETIC
    path: str = ""

    @property
    def text(self) -> str:
        """What :func:`parse` makes this of again."""
        return f"{self.kind}:{self.path}" if self.path else self.kind


def parse(text: object) -> Data:
    """The data that ``text`` names: one of those three ways. Raises UserError for anything else."""
    kind, _, path = text.partition(":") if isinstance(text, str) else ("", "", "")
    if kind not in KINDS or (text != SYNTHETIC if kind == SYNTHETIC else not path):
        raise UserError(f"train: data is {text!r}: one of {_WAYS}")
    return Data(kind, path)


def opened(data: Data, part: Part, image_px: int, classes: int, seed: int, images: int) -> Source:
    """The source of ``data``: what one trains on, or what one validates with; its images have ``image_px``.

    ``classes`` is how many the model tells apart, ``images`` how many there are where they are made up: in training,
    as many as all ranks take in a step. Raises UserError for what is missing, damaged, or of more classes, and
    CannotRun where the library that decodes it is not installed.
    """
    if data.kind == SYNTHETIC:
        return Synthetic(images, image_px, classes, seed)
    path = Path(data.path).expanduser().absolute()
    with readable(data.text):
        source, found = _from_files(data.kind, path, part, image_px)
    if found > classes:
        raise UserError(f"{source.name}: its images are of {found} classes: the model tells {classes} apart")
    return source


def _from_files(kind: str, path: Path, part: Part, image_px: int) -> tuple[Source, int]:
    """The source, and the number of its classes."""
    if kind == CIFAR10:
        return open_cifar10(path, part, image_px), CLASSES
    folder = open_folder(path, part, image_px)
    return folder, len(folder.classes)


def opened_by_all(comm: Intracomm, opening: Callable[[], Source]) -> Source:
    """What ``opening`` gives on this rank, once every rank of ``comm`` has opened the same. Collective.

    Raises on every rank alike: what the lowest rank raised that could not open it, with that rank's number, and
    CannotRun where ranks see other images: their shards would overlap, and their batches would not be equally many.
    """
    try:
        source = opening()
    except (UserError, CannotRun) as error:
        _agree(comm, error.exit_code, str(error))
        raise
    _agree(comm, 0, source.contents)
    return source


def _agree(comm: Intracomm, code: int, text: str) -> None:
    """Raise the fault of the lowest rank that has one, with its number where others have none like it."""
    rows: list[tuple[int, str]] = comm.allgather((code, text))
    other = next((rank for rank, row in enumerate(rows) if row != rows[0]), None)
    rank = next((rank for rank, (fault, _) in enumerate(rows) if fault), None)
    if rank is not None:
        kind, found = UserError if rows[rank][0] == UserError.exit_code else CannotRun, rows[rank][1]
        raise kind(found if other is None else f"rank {rank}: {found}")
    if other is not None:
        raise CannotRun(f"train: ranks see other images: rank 0 {rows[0][1]}, rank {other} {rows[other][1]}")
