"""From a source's images to what a network takes: augmented, or normalised alone. Pure numpy."""

from __future__ import annotations

import numpy as np

from training.augment import Planes, augment, normalise
from training.data.shards import Piece
from training.data.source import Images, Labels, Source

Batch = tuple[Planes, Labels]


def make(source: Source, piece: Piece, seed: int | None, kept: tuple[Images, Labels] | None = None) -> Batch:
    """The batch of a ``piece``: float32 of shape (n, 3, h, w), and classes; ``kept`` is what its images were read as.

    Augmented by ``seed`` and each image's place among all epochs, whoever makes it; None leaves augmentation out.
    """
    images, labels = kept or source.read(piece.indices)
    if seed is None:
        return plain(images, labels)
    return augment(images, seed, piece.first_index), labels


def plain(images: Images, labels: Labels) -> Batch:
    """Images of shape (n, h, w, 3) as they are, normalised, and their classes."""
    planes = np.ascontiguousarray(images.transpose(0, 3, 1, 2), np.float32)
    normalise(planes)
    return planes, labels
