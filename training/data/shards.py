"""Which images a rank takes in a step: pure arithmetic, the same on all ranks.

An epoch is all images in an order drawn from the seed. A step takes the next ``ranks x batch`` of them, rank 0 the
first ``batch``, rank 1 the next ones: ranks never share an image, and how many ranks share a step's images does not
change which ones they are. The rest that fills no step is left out, others in each epoch, so that every rank has
equally many batches of equally many images: else one would wait for ever in an exchange that another never joins.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fabrics.errors import UserError
from training.data.source import Indices, Source, generator


@dataclass(frozen=True)
class Piece:
    """What a rank takes in a step: the numbers of its images, and the place of the first one among all epochs'."""

    indices: Indices
    first_index: int


@dataclass(frozen=True)
class Shard:
    """What ``rank`` of ``ranks`` takes of ``images``, ``batch`` a step; unshuffled where they are ``fixed``."""

    images: int
    batch: int
    rank: int
    ranks: int
    seed: int
    fixed: bool = False

    @property
    def batches(self) -> int:
        """Batches of an epoch, the same on every rank."""
        return self.images // (self.batch * self.ranks)

    def epoch(self, step: int) -> int:
        """The epoch of a step; both count from 0."""
        return step // self.batches

    def order(self, epoch: int) -> Indices:
        """All images in the order of an epoch, the same on every rank."""
        if self.fixed:
            return np.arange(self.images)
        found: Indices = generator(self.seed, epoch).permutation(self.images).astype(np.int64)
        return found

    def piece(self, step: int, order: Indices) -> Piece:
        """What this rank takes in ``step``, whose epoch has that ``order``."""
        epoch, within = divmod(step, self.batches)
        start = (within * self.ranks + self.rank) * self.batch
        return Piece(order[start : start + self.batch], epoch * self.images + start)


def shard(source: Source, batch: int, rank: int, ranks: int, seed: int) -> Shard:
    """The rank's shard of a source. Raises UserError where its images do not fill a single step."""
    found = Shard(len(source), batch, rank, ranks, seed, source.fixed)
    if not found.batches:
        raise UserError(
            f"{source.name}: {found.images} images are fewer than a step takes: {batch} on each of {ranks} ranks"
        )
    return found
