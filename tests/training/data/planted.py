"""Images on disk, and sources, that tests plant."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from training.data.cifar import FILE_BYTES, FILES, ROW_BYTES
from training.data.source import Images, Indices, Labels

NAMES = (*FILES["training"], *FILES["validation"])


def cifar(folder: Path) -> Path:
    """All six files, whose rows are zero until :func:`put` writes some: they take no room on the disk."""
    folder.mkdir(exist_ok=True)
    for name in NAMES:
        with (folder / name).open("wb") as stream:
            stream.truncate(FILE_BYTES)
    return folder


def put(file: Path, row: int, label: int, image: Images) -> None:
    """One row, as CIFAR-10's page describes it; ``image`` has the shape (32, 32, 3)."""
    planes = [image[:, :, colour].tobytes() for colour in range(3)]
    with file.open("r+b") as stream:
        stream.seek(row * ROW_BYTES)
        stream.write(bytes([label]) + b"".join(planes))


def photo(seed: int, side: int = 32) -> Images:
    """An image of noise."""
    return np.random.default_rng(seed).integers(0, 256, (side, side, 3), dtype=np.uint8)


@dataclass
class Numbered:
    """``images`` images of 8 px of noise, each of which has its own number as its class; what was read is kept.

    ``before`` is called with the numbers before each read.
    """

    images: int
    before: Callable[[Sequence[int]], None] = lambda numbers: None
    fixed: bool = False
    name: str = "numbered"
    reads: list[list[int]] = field(default_factory=list)

    @property
    def contents(self) -> str:
        return f"{self.images} images"

    def __len__(self) -> int:
        return self.images

    def read(self, indices: Indices) -> tuple[Images, Labels]:
        numbers = [int(index) for index in indices]
        self.before(numbers)
        self.reads.append(numbers)
        return np.stack([photo(index, 8) for index in numbers]), np.array(numbers, np.int64)


def slow(images: int, read_s: float) -> Numbered:
    """A source that sleeps at each read."""
    return Numbered(images, lambda numbers: time.sleep(read_s))
