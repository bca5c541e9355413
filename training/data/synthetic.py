"""Images made up from the seed: what is measured with them is the step, not the loading of data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from training.data.source import COLOURS, Images, Indices, Labels, generator


@dataclass(frozen=True)
class Synthetic:
    """``images`` images of noise, each drawn from ``seed`` and its own number alone, with classes at random.

    Each rank keeps the images at its own places for every step: the same on any machine, and for any sharding of as
    many images a step.
    """

    images: int
    image_px: int
    classes: int
    seed: int
    name: str = "synthetic"
    fixed: bool = True

    @property
    def contents(self) -> str:
        """What two ranks must agree on."""
        return f"{self.images} made-up images of {self.image_px} px, {self.classes} classes, seed {self.seed}"

    def __len__(self) -> int:
        return self.images

    def read(self, indices: Indices) -> tuple[Images, Labels]:
        """The images and classes of those numbers, drawn anew."""
        shape = (self.image_px, self.image_px, COLOURS)
        images, labels = np.empty((len(indices), *shape), np.uint8), np.empty(len(indices), np.int64)
        for place, index in enumerate(indices):
            random = generator(self.seed, int(index))
            labels[place] = random.randint(self.classes)
            images[place] = random.randint(0, 256, shape, np.uint8)
        return images, labels
