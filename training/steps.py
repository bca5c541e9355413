"""A step as numbers: what is kept of it on a rank, and which part is which."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

PARTS = ("step", "data", "forward", "backward", "optimizer", "compute", "cpu")
"""The step, from the barrier on, to which every rank comes with its images; before it, and not in it, waiting for
images. The step is forward; backward, with what communication is left after it; the optimizer. Of backward, ``compute``
is until the last gradient was ready. ``cpu`` is the processor's time of the whole process."""


@dataclass(frozen=True)
class Step:
    """Times of ``PARTS`` in ns on this rank, and the loss that the step began from."""

    ns: NDArray[np.int64]
    loss: float

    @classmethod
    def of(cls, loss: float, **ns: int) -> Step:
        """A step from its parts by name; what is not named is 0."""
        return cls(np.array([ns.get(part, 0) for part in PARTS], "i8"), loss)

    def __getitem__(self, part: str) -> int:
        """The time of a part."""
        return int(self.ns[PARTS.index(part)])
