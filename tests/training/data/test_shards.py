"""Shards: together they are the epoch, no image twice, equally many batches on every rank, whoever shares them."""

from __future__ import annotations

import numpy as np
import pytest

from fabrics.errors import UserError
from tests.training.data.planted import Numbered
from training.data.shards import Shard, shard

LAYOUTS = [(48, 4, 1), (48, 4, 3), (48, 1, 5), (50, 4, 3), (7, 7, 1), (1000, 16, 7)]


def taken(images: int, batch: int, ranks: int, epoch: int = 0, seed: int = 3) -> list[list[list[int]]]:
    """The numbers of the images by rank and step of an epoch."""
    found = []
    for rank in range(ranks):
        one = Shard(images, batch, rank, ranks, seed)
        order = one.order(epoch)
        steps = range(epoch * one.batches, (epoch + 1) * one.batches)
        found.append([one.piece(step, order).indices.tolist() for step in steps])
    return found


@pytest.mark.parametrize(("images", "batch", "ranks"), LAYOUTS)
def test_the_union_of_the_shards_is_the_epoch_and_no_image_comes_twice(images: int, batch: int, ranks: int) -> None:
    for epoch in (0, 2):
        numbers = [number for rank in taken(images, batch, ranks, epoch) for step in rank for number in step]
        order = Shard(images, batch, 0, ranks, 3).order(epoch)
        steps = images // (batch * ranks)
        assert sorted(order.tolist()) == list(range(images))
        assert sorted(numbers) == sorted(order[: steps * batch * ranks].tolist())
        assert len(set(numbers)) == len(numbers) > images - batch * ranks


@pytest.mark.parametrize(("images", "batch", "ranks"), LAYOUTS)
def test_every_rank_has_equally_many_batches_of_equally_many_images(images: int, batch: int, ranks: int) -> None:
    found = taken(images, batch, ranks)
    assert {len(steps) for steps in found} == {images // (batch * ranks)}
    assert {len(step) for steps in found for step in steps} == {batch}


def test_each_epoch_has_an_order_of_its_own_and_each_seed_too() -> None:
    orders = [Shard(100, 4, 0, 2, seed).order(epoch).tolist() for seed in (1, 2, -1) for epoch in range(3)]
    assert len({tuple(order) for order in orders}) == 9
    assert list(range(100)) not in orders
    left = [set(range(50)) - {n for r in taken(50, 4, 3, epoch) for s in r for n in s} for epoch in range(20)]
    assert {len(images) for images in left} == {2} and len(set().union(*left)) > 10


def test_the_order_is_one_that_numpy_has_promised_to_keep() -> None:
    assert Shard(8, 1, 0, 1, 7).order(1).tolist() == [7, 4, 3, 0, 1, 5, 2, 6]


@pytest.mark.parametrize("ranks", [1, 2, 3, 6])
def test_a_step_takes_the_same_images_at_the_same_places_for_any_number_of_ranks(ranks: int) -> None:
    batch = 12 // ranks
    for step in (0, 3, 4, 9):  # the second epoch begins with step 4
        pieces = [Shard(50, batch, rank, ranks, 5) for rank in range(ranks)]
        found = [one.piece(step, one.order(one.epoch(step))) for one in pieces]
        alone = Shard(50, 12, 0, 1, 5)
        whole = alone.piece(step, alone.order(alone.epoch(step)))
        assert np.array_equal(np.concatenate([piece.indices for piece in found]), whole.indices)
        assert [piece.first_index - whole.first_index for piece in found] == [rank * batch for rank in range(ranks)]


def test_places_of_different_epochs_do_not_meet() -> None:
    one = Shard(50, 4, 1, 3, 5)
    places = [one.piece(step, one.order(one.epoch(step))).first_index for step in range(12)]
    assert places == sorted(set(places)) and places[4] >= 50


def test_fixed_images_are_not_shuffled() -> None:
    assert Shard(8, 4, 1, 2, 5, fixed=True).order(3).tolist() == list(range(8))


def test_images_that_do_not_fill_a_step_are_refused() -> None:
    assert shard(Numbered(8), 4, 1, 2, 0).batches == 1
    with pytest.raises(UserError, match=r"^numbered: 7 images are fewer than a step takes: 4 on each of 2 ranks$"):
        shard(Numbered(7), 4, 1, 2, 0)
