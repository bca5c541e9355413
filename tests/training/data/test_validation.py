"""Validation: every image once, in order, for one rank or several, as often as asked."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.training.data.planted import Numbered, photo
from training.data import Validation
from training.data.batches import plain


@pytest.mark.parametrize(("images", "batch"), [(10, 4), (12, 4), (3, 5), (1, 1)])
def test_all_images_come_once_and_in_order(images: int, batch: int) -> None:
    validation = Validation(Numbered(images), batch)
    for _ in range(2):
        found = list(validation)
        assert [n for _, labels in found for n in labels.tolist()] == list(range(images))
        assert len(found) == validation.batches
        assert {len(labels) for _, labels in found[:-1]} <= {batch}


@pytest.mark.parametrize("ranks", [1, 2, 3, 7])
def test_the_parts_of_several_ranks_are_the_whole(ranks: int) -> None:
    parts = [Validation(Numbered(20), 4, rank, ranks) for rank in range(ranks)]
    assert [n for part in parts for _, labels in part for n in labels.tolist()] == list(range(20))
    sizes = {len(part.images) for part in parts}
    assert max(sizes) - min(sizes) <= 1


def test_images_are_normalised_and_never_augmented() -> None:
    validation = Validation(Numbered(4), 4)
    expected, _ = plain(np.stack([photo(n, 8) for n in range(4)]), np.arange(4))
    (images, labels), (planes, numbers) = next(iter(validation)), next(validation.arrays())
    assert (images.dtype, labels.dtype) == (torch.float32, torch.int64)
    assert np.array_equal(images.numpy(), expected) and np.array_equal(planes, expected)
    assert labels.tolist() == numbers.tolist() == [0, 1, 2, 3]
