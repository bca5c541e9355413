"""What every source of images has in common. Pure numpy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from fabrics.errors import UserError

Part = Literal["training", "validation"]
Indices = NDArray[np.int64]
Images = NDArray[np.uint8]
Labels = NDArray[np.int64]
COLOURS = 3


class Source(Protocol):
    """Numbered images with their classes; several threads may read at once.

    ``name`` is what errors call it. ``contents`` says the same on two ranks where both see the same images. ``fixed``:
    every step takes the same images, those at a rank's own places, as if there were no data to load.
    """

    @property
    def name(self) -> str:
        """Such as ``cifar10:/data/cifar``."""

    @property
    def contents(self) -> str:
        """How many images of which size, and, where they are files, a digest of the names."""

    @property
    def fixed(self) -> bool:
        """Whether every step takes the same images."""

    def __len__(self) -> int:
        """How many images there are."""

    def read(self, indices: Indices) -> tuple[Images, Labels]:
        """Images, uint8 of shape (n, h, w, 3), and classes of shape (n), of those numbers.

        Raises UserError, naming the file, for what cannot be read.
        """


def generator(seed: int, index: int) -> np.random.RandomState:
    """A generator whose stream numpy has promised never to change: ranks may have different versions of it."""
    return np.random.RandomState(np.random.MT19937(np.random.SeedSequence((seed % 2**64, index))))


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Raise UserError, with the file, for what the system does not let one read of the source of that ``name``."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{name}: {error.filename} cannot be read: {error.strerror or error}") from None
