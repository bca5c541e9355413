"""The loader: the same batches whoever loads them, and a slow source that shows as the step's wait for data."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
import torch

from fabrics.errors import UserError
from tests import jobs
from tests.training.data.planted import Numbered, cifar, photo, put, slow
from tests.training.data.test_prefetch import PATIENT_S, threads
from training.augment import augment
from training.data import Loader, opened, parse
from training.data.batches import plain
from training.data.loader import held_bytes

READ_S = 0.1


def loaded(source: Numbered, batch: int, ranks: int, steps: int, augmented: bool, workers: int = 0, seed: int = 5):
    """What all ranks take together, by step: images and classes."""
    found = []
    for rank in range(ranks):
        with Loader(source, batch, rank, ranks, seed, augmented, workers) as loader:
            found.append([loader.next() for _ in range(steps)])
    return [tuple(torch.cat(parts) for parts in zip(*step, strict=True)) for step in zip(*found, strict=True)]


def test_a_batch_is_what_a_network_takes() -> None:
    with Loader(Numbered(12), 3, 1, 2, 5, augment=True) as loader:
        images, labels = loader.next()
    assert (images.dtype, images.shape) == (torch.float32, (3, 3, 8, 8))
    assert (labels.dtype, labels.shape) == (torch.int64, (3,))
    assert loader.batches == 2


@pytest.mark.parametrize("augmented", [True, False])
@pytest.mark.parametrize(("ranks", "workers"), [(2, 0), (3, 1), (6, 3), (1, 2)])
def test_batches_are_the_same_bits_for_any_sharding(ranks: int, workers: int, augmented: bool) -> None:
    steps = 7  # of 4 an epoch
    alone = loaded(Numbered(53), 12, 1, steps, augmented)
    shared = loaded(Numbered(53), 12 // ranks, ranks, steps, augmented, workers)
    for (images, labels), (expected, classes) in zip(shared, alone, strict=True):
        assert torch.equal(labels, classes)
        assert torch.equal(images.view(torch.int32), expected.view(torch.int32))


def test_an_image_is_augmented_by_its_place_and_anew_in_each_epoch() -> None:
    with Loader(Numbered(4), 4, 0, 1, 5, augment=True) as loader:
        (first, labels), (second, others) = loader.next(), loader.next()
    raw = np.stack([photo(int(label), 8) for label in labels])
    assert np.array_equal(first.numpy(), augment(raw, 5, 0))
    again = np.stack([photo(int(label), 8) for label in others])
    assert np.array_equal(second.numpy(), augment(again, 5, 4))
    assert not np.array_equal(second.numpy(), augment(again, 5, 0))


def test_without_augmentation_images_are_normalised_alone() -> None:
    with Loader(Numbered(6), 3, 0, 1, 5, augment=False) as loader:
        images, labels = loader.next()
    raw = np.stack([photo(int(label), 8) for label in labels]) / 255.0
    expected = (raw - (0.485, 0.456, 0.406)) / (0.229, 0.224, 0.225)
    assert np.allclose(images.numpy(), expected.transpose(0, 3, 1, 2), atol=1e-5)


@pytest.mark.parametrize("workers", [0, 1])
def test_an_epoch_holds_each_image_once_and_the_next_in_another_order(workers: int) -> None:
    with Loader(Numbered(24), 4, 0, 1, 5, augment=False, workers=workers) as loader:
        epochs = [[int(n) for _ in range(loader.batches) for n in loader.next()[1]] for _ in range(3)]
    assert all(sorted(epoch) == list(range(24)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3


def test_a_slow_source_is_data_time() -> None:
    """All that it takes where no thread hides it; the caller's own work between batches is not in it."""
    with Loader(slow(40, READ_S), 4, 0, 1, 5, augment=False) as loader:
        waited = [loader.waited_ns for _ in range(4) if loader.next()]
    assert min(waited) >= READ_S * 1e9


def test_a_thread_hides_what_the_caller_computes_through() -> None:
    read, gate = threading.Event(), threading.Semaphore(0)

    def before(numbers: object) -> None:
        assert gate.acquire(timeout=PATIENT_S)
        threading.Event().wait(READ_S)
        read.set()

    with Loader(Numbered(40, before), 4, 0, 1, 5, augment=False, workers=1) as loader:
        gate.release(2)
        loader.next()
        first = loader.waited_ns
        read.clear()
        assert read.wait(PATIENT_S)  # the second is read while the caller has something else to do
        gate.release(100)
        loader.next()
        second = loader.waited_ns
    assert first >= READ_S * 1e9 > second
    assert threads() == []


def test_synthetic_images_are_made_once_and_are_no_data_time() -> None:
    source = Numbered(8, fixed=True)
    with Loader(source, 4, 1, 2, 5, augment=False, workers=1) as loader:
        batches = [loader.next() for _ in range(5)]
        assert threads() == []
    assert source.reads == [[4, 5, 6, 7]]
    assert all(torch.equal(images, batches[0][0]) and torch.equal(labels, batches[0][1]) for images, labels in batches)


def test_augmentation_of_synthetic_images_is_real_work_at_every_step() -> None:
    source = Numbered(8, fixed=True)
    with Loader(source, 4, 1, 2, 5, augment=True) as loader:
        (first, labels), (second, again) = loader.next(), loader.next()
    raw = np.stack([photo(number, 8) for number in (4, 5, 6, 7)])
    assert source.reads == [[4, 5, 6, 7]]
    assert labels.tolist() == again.tolist() == [4, 5, 6, 7]
    assert np.array_equal(first.numpy(), augment(raw, 5, 4))
    assert np.array_equal(second.numpy(), augment(raw, 5, 12))


@pytest.mark.parametrize("workers", [0, 2])
def test_data_that_cannot_be_read_ends_the_batch_it_is_in(workers: int) -> None:
    def before(numbers: list[int]) -> None:
        if 3 in numbers:
            raise UserError("planted: image 3 is broken")

    with Loader(Numbered(20, before), 4, 0, 1, 5, augment=False, workers=workers) as loader:
        taken: list[int] = []
        with pytest.raises(UserError, match="image 3 is broken"):
            while True:
                taken += loader.next()[1].tolist()
        assert len(taken) < 20 and 3 not in taken
    assert threads() == []


def test_planted_files_reach_the_network(tmp_path: Path) -> None:
    folder = cifar(tmp_path / "cifar")
    for row in range(10_000):
        if row % 1000 == 0:
            put(folder / "data_batch_5.bin", row, 9, photo(row))
    source = opened(parse(f"cifar10:{folder}"), "training", 32, 10, 5, 0)
    with Loader(source, 5000, 1, 2, 5, augment=False) as loader:
        images, labels = loader.next()
    order = np.random.RandomState(np.random.MT19937(np.random.SeedSequence((5, 0)))).permutation(50_000)[5000:10_000]
    expected = {int(place): int(index) - 40_000 for place, index in enumerate(order) if index >= 40_000}
    expected = {place: row for place, row in expected.items() if row % 1000 == 0}
    assert expected and {int(place) for place in np.flatnonzero(labels.numpy() == 9)} == set(expected)
    for place, row in expected.items():
        assert np.array_equal(images[place].numpy(), plain(photo(row)[None], np.zeros(1, np.int64))[0][0])


def test_what_is_held_at_most_goes_with_the_threads() -> None:
    assert held_bytes(16, 64, 0) == 16 * 64 * 64 * 3 * 5
    assert held_bytes(16, 64, 2) == 5 * held_bytes(16, 64, 0)


def test_importing_it_brings_neither_mpi_nor_torch_nor_pillow() -> None:
    code = "import sys, training.data; print([m for m in ('mpi4py', 'torch', 'PIL') if m in sys.modules])"
    done = jobs.python("-c", code)
    assert (done.code, done.out.strip()) == (0, "[]"), done.err
