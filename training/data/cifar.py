"""CIFAR-10 in its binary version: six files of 10000 rows, each a class and the 3 x 32 x 32 bytes of an image.

The format is Krizhevsky's (https://www.cs.toronto.edu/~kriz/cifar.html): red, then green, then blue, line by line.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fabrics.errors import UserError
from training.data.source import COLOURS, Images, Indices, Labels, Part, readable

SIDE, CLASSES = 32, 10
ROW_BYTES = 1 + COLOURS * SIDE * SIDE
ROWS = 10_000
FILE_BYTES = ROWS * ROW_BYTES
FILES: dict[Part, tuple[str, ...]] = {
    "training": tuple(f"data_batch_{number}.bin" for number in range(1, 6)),
    "validation": ("test_batch.bin",),
}
_EXPECTED = f"CIFAR-10's binary version has {FILE_BYTES} bytes there, {ROWS} rows of {ROW_BYTES}"


@dataclass(frozen=True)
class Cifar10:
    """The images of ``files``, one file after the other, each of ``image_px``: 32, or a multiple by repeating pixels.

    A batch opens the files it needs, and reads the rows it needs: no memory is taken, and no file stays open.
    """

    files: tuple[Path, ...]
    image_px: int
    fixed: bool = False

    @property
    def name(self) -> str:
        """What errors call it."""
        return f"cifar10:{self.files[0].parent}"

    @property
    def contents(self) -> str:
        """What two ranks must agree on."""
        return f"{len(self)} images of CIFAR-10, {self.image_px} px"

    def __len__(self) -> int:
        return len(self.files) * ROWS

    def read(self, indices: Indices) -> tuple[Images, Labels]:
        """The images and classes of those numbers. Raises UserError for a row that is cut short or has no such class.

        Files may change after they were opened; that must not end the process, as a mapping of them would.
        """
        rows = np.empty((len(indices), ROW_BYTES), np.uint8)
        which, row = np.divmod(np.asarray(indices, np.int64), ROWS)
        for number in np.unique(which):
            places = np.flatnonzero(which == number)
            _read_rows(self.files[number], row[places], rows, places)
        images = rows[:, 1:].reshape(-1, COLOURS, SIDE, SIDE).transpose(0, 2, 3, 1)
        times = self.image_px // SIDE
        return images.repeat(times, axis=1).repeat(times, axis=2), rows[:, 0].astype(np.int64)


def open_cifar10(folder: Path, part: Part, image_px: int) -> Cifar10:
    """CIFAR-10 of ``folder``.

    Raises UserError for a size that its images cannot have, and for a file that is missing or of another size.
    """
    if image_px % SIDE or image_px < SIDE:
        raise UserError(f"cifar10:{folder}: images have {SIDE} px: image_px must be a multiple of it, not {image_px}")
    if not folder.is_dir():
        raise UserError(f"cifar10:{folder}: no such folder: it must hold {', '.join(FILES[part])}")
    files = tuple(folder / name for name in FILES[part])
    for file in files:
        _check(file)
    return Cifar10(files, image_px)


def _check(file: Path) -> None:
    if not file.is_file():
        raise UserError(f"cifar10: no file {file}: {_EXPECTED}")
    size = file.stat().st_size
    if size != FILE_BYTES:
        what = "is truncated" if size < FILE_BYTES else "is no batch of CIFAR-10"
        raise UserError(f"cifar10: {file} {what}: it has {size} bytes: {_EXPECTED}")


def _read_rows(file: Path, wanted: Indices, rows: Images, places: Indices) -> None:
    """Rows ``wanted`` of ``file`` into those ``places`` of ``rows``."""
    with readable("cifar10"), file.open("rb") as stream:
        for row, place in zip(wanted, places, strict=True):
            stream.seek(int(row) * ROW_BYTES)
            if stream.readinto(rows[place].data) != ROW_BYTES:
                size = file.stat().st_size
                raise UserError(f"cifar10: {file} is truncated in row {row}: it has {size} bytes: {_EXPECTED}")
            if rows[place, 0] >= CLASSES:
                raise UserError(f"cifar10: {file}: row {row} has class {rows[place, 0]}: there are 0 to {CLASSES - 1}")
