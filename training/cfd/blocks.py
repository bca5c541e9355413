"""How a box of cells is shared out among ranks: pure arithmetic.

The box is periodic, and split in x and y: every rank has a block that is whole in z.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

GHOSTS = 2  # layers of a neighbour's cells that a block needs: the stencil of second order

Cells = tuple[int, int, int]
Split = tuple[int, int]  # parts in x and in y


@dataclass(frozen=True)
class Block:
    """One rank's cells: ``cells`` of them in x, y and z, from ``first`` of the box on.

    ``below`` and ``above`` are the ranks next to it in x and in y, None along an axis that is not split.
    """

    first: Cells
    cells: Cells
    below: tuple[int | None, int | None] = (None, None)
    above: tuple[int | None, int | None] = (None, None)

    @property
    def count(self) -> int:
        """How many cells."""
        return self.cells[0] * self.cells[1] * self.cells[2]

    @property
    def split(self) -> tuple[bool, bool]:
        """Whether it has neighbours in x, and in y."""
        return self.below[0] is not None, self.below[1] is not None

    @property
    def halo_cells(self) -> int:
        """How many cells it sends in one exchange."""
        x, y, z = self.cells
        return 2 * GHOSTS * z * (y * self.split[0] + x * self.split[1])


def block(cells: Cells, split: Split, rank: int) -> Block:
    """The block of a rank; ranks next to each other are so in y first. Parts differ by a layer of cells at most."""
    at = divmod(rank, split[1])
    spans = [(n * i // parts, n * (i + 1) // parts) for n, parts, i in zip(cells, split, at, strict=False)]
    below, above = (_beside(at, split, step) for step in (-1, 1))
    own = [end - first for first, end in spans]
    return Block((spans[0][0], spans[1][0], 0), (own[0], own[1], cells[2]), below, above)


def _beside(at: tuple[int, int], split: Split, step: int) -> tuple[int | None, int | None]:
    x, y = (at[0] + step) % split[0] * split[1] + at[1], at[0] * split[1] + (at[1] + step) % split[1]
    return x if split[0] > 1 else None, y if split[1] > 1 else None


def fits(cells: Cells, split: Split) -> bool:
    """Whether every block has the layers that its neighbours need."""
    return all(n // parts >= GHOSTS for n, parts in zip(cells, split, strict=False))


def choose(cells: Cells, ranks: int) -> Split | None:
    """The split with the fewest cells to exchange, of two alike the one with more parts in x; None where none fits."""
    fitting = [split for split in _splits(ranks) if fits(cells, split)]
    return min(fitting, key=lambda split: (most_sent(cells, split), -split[0]), default=None)


def most_sent(cells: Cells, split: Split) -> int:
    """The cells that the busiest rank sends in one exchange."""
    return max(block(cells, split, rank).halo_cells for rank in range(split[0] * split[1]))


def _splits(ranks: int) -> Iterator[Split]:
    return ((x, ranks // x) for x in range(1, ranks + 1) if ranks % x == 0)
