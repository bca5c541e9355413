"""All images of a validation set, once, in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from training.data.batches import Batch, plain
from training.data.source import Source

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Validation:
    """The images of ``source`` that ``rank`` of ``ranks`` validates with: one contiguous part of them each.

    Parts differ by at most one image; batches have ``batch`` images, the last one what is left. Images are normalised,
    never augmented. It may be gone through any number of times.
    """

    source: Source
    batch: int
    rank: int = 0
    ranks: int = 1

    @property
    def images(self) -> range:
        """The numbers of its images."""
        total = len(self.source)
        return range(total * self.rank // self.ranks, total * (self.rank + 1) // self.ranks)

    @property
    def batches(self) -> int:
        """How many batches that makes."""
        return -(-len(self.images) // self.batch)

    def arrays(self) -> Iterator[Batch]:
        """Images, float32 of shape (n, 3, h, w), and classes, int64 of shape (n), as numpy arrays."""
        numbers = np.arange(self.images.start, self.images.stop)
        for start in range(0, len(numbers), self.batch):
            yield plain(*self.source.read(numbers[start : start + self.batch]))

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        """The same as tensors."""
        import torch  # noqa: PLC0415 - it takes seconds

        for images, labels in self.arrays():
            yield torch.from_numpy(images), torch.from_numpy(labels)
