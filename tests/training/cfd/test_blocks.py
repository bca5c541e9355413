"""Shares of a box: every cell once, neighbours that know each other, and the split that sends the least."""

from __future__ import annotations

import numpy as np
import pytest

from training.cfd import blocks


@pytest.mark.parametrize("split", [(1, 1), (2, 1), (1, 3), (3, 2), (4, 4)])
def test_every_cell_is_in_one_block(split: tuple[int, int]) -> None:
    cells = (13, 11, 5)
    seen = np.zeros(cells, int)
    found = [blocks.block(cells, split, rank) for rank in range(split[0] * split[1])]
    for own in found:
        x, y, z = own.first
        seen[x : x + own.cells[0], y : y + own.cells[1], z : z + own.cells[2]] += 1
    assert (seen == 1).all()
    counts = [own.cells for own in found]
    assert all(max(c[i] for c in counts) - min(c[i] for c in counts) <= 1 for i in range(3))


@pytest.mark.parametrize("split", [(2, 1), (1, 3), (3, 2), (4, 4)])
def test_neighbours_know_each_other_and_touch(split: tuple[int, int]) -> None:
    cells = (13, 11, 5)
    found = [blocks.block(cells, split, rank) for rank in range(split[0] * split[1])]
    for rank, own in enumerate(found):
        for axis in (0, 1):
            assert (own.above[axis] is None) == (split[axis] == 1) == (own.below[axis] is None)
            if own.above[axis] is not None:
                other = found[own.above[axis]]
                assert other.below[axis] == rank
                assert other.first[axis] == (own.first[axis] + own.cells[axis]) % cells[axis]
                assert other.first[1 - axis] == own.first[1 - axis]


@pytest.mark.parametrize(
    ("cells", "ranks", "split"),
    [
        ((64, 64, 64), 1, (1, 1)),
        ((64, 64, 64), 2, (2, 1)),
        ((64, 64, 64), 4, (4, 1)),  # as many cells as in 2 x 2, and fewer neighbours
        ((64, 64, 64), 16, (4, 4)),
        ((64, 256, 8), 2, (1, 2)),
        ((5, 64, 8), 4, (1, 4)),
        ((3, 3, 8), 2, None),
    ],
)
def test_the_split_with_the_fewest_cells_to_send(
    cells: tuple[int, int, int], ranks: int, split: tuple[int, int] | None
) -> None:
    assert blocks.choose(cells, ranks) == split


def test_a_halo_is_two_layers_on_each_split_side() -> None:
    assert blocks.block((8, 6, 5), (1, 1), 0).halo_cells == 0
    assert blocks.block((8, 6, 5), (2, 1), 0).halo_cells == 2 * 2 * 6 * 5
    assert blocks.block((8, 6, 5), (2, 3), 0).halo_cells == 2 * 2 * 2 * 5 + 2 * 2 * 4 * 5
