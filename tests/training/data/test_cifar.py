"""CIFAR-10's binary version: what planted rows are read as, and files that are not what they must be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fabrics.errors import UserError
from tests.training.data.planted import NAMES, cifar, photo, put
from training.data.cifar import FILE_BYTES, ROW_BYTES, open_cifar10

EXPECTED = "CIFAR-10's binary version has 30730000 bytes there, 10000 rows of 3073"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return cifar(tmp_path / "cifar")


def test_rows_are_read_from_their_files_in_the_order_asked_for(folder: Path) -> None:
    planted = {0: ("data_batch_1.bin", 0), 9_999: ("data_batch_1.bin", 9_999), 10_000: ("data_batch_2.bin", 0)}
    planted[49_999] = ("data_batch_5.bin", 9_999)
    for index, (name, row) in planted.items():
        put(folder / name, row, index % 7, photo(index))
    source = open_cifar10(folder, "training", 32)
    wanted = [10_000, 49_999, 0, 17, 9_999, 0]
    images, labels = source.read(np.array(wanted))
    assert (len(source), images.shape, images.dtype) == (50_000, (6, 32, 32, 3), np.uint8)
    for image, index in zip(images, wanted, strict=True):
        expected = photo(index) if index in planted else np.zeros((32, 32, 3))
        assert np.array_equal(image, expected)
    assert labels.tolist() == [index % 7 if index in planted else 0 for index in wanted]
    assert labels.dtype == np.int64


def test_validation_is_the_test_batch(folder: Path) -> None:
    put(folder / "test_batch.bin", 3, 9, photo(3))
    source = open_cifar10(folder, "validation", 32)
    images, labels = source.read(np.array([3]))
    assert (len(source), labels.tolist()) == (10_000, [9]) and np.array_equal(images[0], photo(3))


def test_a_larger_side_repeats_pixels(folder: Path) -> None:
    put(folder / "data_batch_1.bin", 0, 1, photo(0))
    images, _ = open_cifar10(folder, "training", 96).read(np.array([0]))
    assert images.shape == (1, 96, 96, 3)
    for row in range(3):
        for column in range(3):
            assert np.array_equal(images[0, row::3, column::3], photo(0))


@pytest.mark.parametrize("side", [16, 299, 33])
def test_a_side_that_its_images_cannot_have_is_refused(folder: Path, side: int) -> None:
    with pytest.raises(UserError, match=rf"images have 32 px: image_px must be a multiple of it, not {side}$"):
        open_cifar10(folder, "training", side)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        open_cifar10(tmp_path / "nowhere", "validation", 32)
    assert str(error.value) == f"cifar10:{tmp_path}/nowhere: no such folder: it must hold test_batch.bin"


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_file_is_named_with_what_is_expected(folder: Path, name: str) -> None:
    (folder / name).unlink()
    (folder / name.removesuffix(".bin")).write_bytes(b"the version for Python")
    part, other = ("validation", "training") if name == "test_batch.bin" else ("training", "validation")
    with pytest.raises(UserError) as error:
        open_cifar10(folder, part, 32)
    assert str(error.value) == f"cifar10: no file {folder / name}: {EXPECTED}"
    assert len(open_cifar10(folder, other, 32)) > 0


@pytest.mark.parametrize(
    ("size", "what"),
    [
        (0, "is truncated"),
        (FILE_BYTES - 1, "is truncated"),
        (FILE_BYTES - ROW_BYTES, "is truncated"),
        (FILE_BYTES + ROW_BYTES, "is no batch of CIFAR-10"),
    ],
)
def test_a_file_of_another_size_is_named_with_its_size_and_what_is_expected(folder: Path, size: int, what: str) -> None:
    file = folder / "data_batch_4.bin"
    with file.open("r+b") as stream:
        stream.truncate(size)
    with pytest.raises(UserError) as error:
        open_cifar10(folder, "training", 32)
    assert str(error.value) == f"cifar10: {file} {what}: it has {size} bytes: {EXPECTED}"


def test_a_file_that_is_cut_short_later_is_named_with_the_row(folder: Path) -> None:
    source, file = open_cifar10(folder, "training", 32), folder / "data_batch_2.bin"
    with file.open("r+b") as stream:
        stream.truncate(5 * ROW_BYTES + 100)
    assert source.read(np.array([10_004]))[1].tolist() == [0]
    with pytest.raises(UserError) as error:
        source.read(np.array([3, 10_005]))
    assert str(error.value) == f"cifar10: {file} is truncated in row 5: it has 15465 bytes: {EXPECTED}"


def test_a_file_that_goes_away_later_is_named(folder: Path) -> None:
    source, file = open_cifar10(folder, "training", 32), folder / "data_batch_3.bin"
    file.unlink()
    with pytest.raises(UserError, match=rf"^cifar10: {file} cannot be read: No such file or directory$"):
        source.read(np.array([20_000]))


def test_a_class_that_does_not_exist_is_named_with_file_and_row(folder: Path) -> None:
    put(folder / "data_batch_3.bin", 12, 10, photo(1))
    source = open_cifar10(folder, "training", 32)
    with pytest.raises(UserError, match=r"data_batch_3\.bin: row 12 has class 10: there are 0 to 9$"):
        source.read(np.array([20_012]))
