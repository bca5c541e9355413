"""Allreduce along pipelined binary trees: chunks flow up to the root and down again.

With two trees in which an inner rank of one is a leaf of the other, every rank sends and receives about 2 n bytes
(Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", 2009); with one
tree an inner rank sends and receives 3 n.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from collectives.schedule import Int, Round, Schedule, bounds, join, messages
from collectives.schedules import phases
from collectives.schedules.allreduce import allreduce

CHUNK = 16384


def pipelined_tree(ranks: int, count: int, chunk: int = CHUNK, trees: int = 2) -> Schedule:
    """Chunks of ``chunk`` elements through one or two binary trees, each carrying its share of the data.

    2 ceil(lg p) + k - 1 rounds for k chunks per tree. ValueError for a chunk below 1 or another number of trees.
    """
    if chunk < 1 or trees not in (1, 2):
        raise ValueError(f"chunks of {chunk} elements in {trees} trees cannot be")
    return allreduce("pipelined-tree", ranks, count, partial(_rounds, ranks, count, chunk, trees))


@dataclass(frozen=True, eq=False)
class _Tree:
    """The edges of a tree, from ``child`` at depth ``depth`` to ``parent``, and the chunks that flow along them."""

    child: Int
    parent: Int
    depth: Int
    cuts: Int

    def up(self, time: int, height: int) -> Round:
        """Chunk k leaves depth d in round k + height - d, so that it leaves after it came from below."""
        return self._edges(self.child, self.parent, time - height + self.depth, combine=True)

    def down(self, time: int, height: int) -> Round:
        """Chunk k reaches depth d in round k + height + d - 1."""
        return self._edges(self.parent, self.child, time - height - self.depth + 1, combine=False)

    def _edges(self, source: Int, target: Int, chunk: Int, combine: bool) -> Round:
        busy = (chunk >= 0) & (chunk < self.cuts.size - 1)
        at = self.cuts[chunk[busy]]
        return messages(source[busy], target[busy], at, self.cuts[chunk[busy] + 1] - at, combine=combine)


def parents(ranks: int) -> Int:
    """Parent of ranks 1, 2, ... in a binary tree in symmetric order below rank 0; odd ranks are leaves.

    Rank r with lowest set bit b hangs below r - b + 2 b, where that is a rank, else below r - b.
    """
    rank = np.arange(1, ranks)
    low = rank & -rank
    upper = (rank ^ low) | (low << 1)
    return np.where(upper < ranks, upper, rank ^ low)


def _depths(parent: Int) -> Int:
    """Edges between each rank (0 included) and rank 0."""
    depth = np.zeros(parent.size + 1, "i8")
    above = np.concatenate([[0], parent])
    at = np.arange(parent.size + 1)
    while at.any():
        depth += at > 0
        at = above[at]
    return depth


def _trees(ranks: int, count: int, chunk: int, number: int) -> list[_Tree]:
    """The tree, and its mirror image (shifted by one where the number of ranks is odd) with leaves at even ranks."""
    parent, child = parents(ranks), np.arange(1, ranks)
    depth = _depths(parent)[1:]
    rank = np.arange(ranks)
    names = (rank, rank[::-1] if ranks % 2 == 0 else np.roll(rank, -1))
    shares = bounds(count, number)
    return [
        _Tree(name[child], name[parent], depth, _chunks(int(first), int(last), chunk))
        for name, first, last in zip(names, shares[:-1], shares[1:], strict=False)
    ]


def _chunks(first: int, last: int, chunk: int) -> Int:
    """Offsets from ``first`` in steps of ``chunk``, and ``last``."""
    return np.append(np.arange(first, last, chunk), last)


def _rounds(ranks: int, count: int, chunk: int, number: int) -> Iterator[Round]:
    yield phases.copy_in(np.arange(ranks), 0, count)
    trees = _trees(ranks, count, chunk, number)
    height = (ranks - 1).bit_length()
    for time in range(2 * height + max(tree.cuts.size - 1 for tree in trees) - 1):
        yield join([made for tree in trees for made in (tree.up(time, height), tree.down(time, height))])
