"""Which data a case names, and that all ranks open the same, or all say why not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabrics.errors import UserError
from tests import jobs
from tests.training.data.planted import cifar, photo
from training.data import Data, opened, parse
from training.data.synthetic import Synthetic

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")


@pytest.mark.parametrize("text", ["synthetic", "cifar10:/data/cifar", "folder:/a b", "folder:odd:name", "cifar10:."])
def test_what_is_meant_is_read_and_written_again(text: str) -> None:
    data = parse(text)
    kind, _, path = text.partition(":")
    assert (data.kind, data.path, data.text) == (kind, path, text)


@pytest.mark.parametrize("text", ["", "synthetic:", "synthetic:x", "cifar10", "cifar10:", "folder:", "imagenet:/x", 5])
def test_what_cannot_be_meant_is_named(text: object) -> None:
    with pytest.raises(UserError) as error:
        parse(text)
    assert str(error.value) == f"train: data is {text!r}: one of synthetic, cifar10:PATH or folder:PATH"


def test_synthetic_images_are_drawn_by_their_number_alone() -> None:
    source = opened(Data(), "training", 8, 10, 3, 12)
    assert source == Synthetic(12, 8, 10, 3) and source.fixed
    images, labels = source.read(np.arange(12))
    some, classes = source.read(np.array([7, 2]))
    assert np.array_equal(some, images[[7, 2]]) and np.array_equal(classes, labels[[7, 2]])
    assert len({image.tobytes() for image in images}) == 12
    assert 0 <= labels.min() < labels.max() <= 9
    assert not np.array_equal(images, opened(Data(), "training", 8, 10, 4, 12).read(np.arange(12))[0])


def test_a_home_directory_is_meant_by_its_sign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cifar(tmp_path / "cifar")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert len(opened(parse("cifar10:~/cifar"), "validation", 32, 10, 0, 0)) == 10_000
    monkeypatch.chdir(tmp_path)
    source = opened(parse("cifar10:cifar"), "training", 32, 1000, 0, 0)
    assert (len(source), source.name) == (50_000, f"cifar10:{tmp_path}/cifar")


def test_more_classes_than_the_model_tells_apart_are_refused(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / str(number)).mkdir()
        Image.fromarray(photo(number)).save(tmp_path / str(number) / "image.png")
    assert len(opened(parse(f"folder:{tmp_path}"), "training", 32, 3, 0, 0)) == 3
    with pytest.raises(UserError, match=r"its images are of 3 classes: the model tells 2 apart$"):
        opened(parse(f"folder:{tmp_path}"), "training", 32, 2, 0, 0)


def test_a_name_that_no_system_takes_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot be read: File name too long$"):
        opened(parse(f"cifar10:{tmp_path}/{'x' * 300}"), "training", 32, 10, 0, 0)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What three ranks say that open folders of their own, each in turn as the name tells."""
    top = tmp_path_factory.mktemp("ranks")
    for rank in range(3):
        cifar(top / f"alike-{rank}")
        if rank != 1:
            cifar(top / f"missing-{rank}")
        for part, cat in (("names", "cat" if rank < 2 else "dog"), ("same", "cat")):
            (top / f"{part}-{rank}" / cat).mkdir(parents=True)
            Image.fromarray(photo(rank)).save(top / f"{part}-{rank}" / cat / "image.png")
    done = jobs.mpi(3, "-m", "mpi4py", str(Path(__file__).with_name("data_job.py")), str(top))
    assert done.code == 0, done.err
    return {"top": top, **json.loads(done.out)}


def test_all_ranks_open_the_same(told: dict[str, Any]) -> None:
    assert told["alike"] == [50_000] * 3
    assert told["same"] == [1] * 3


def test_what_one_rank_misses_is_the_error_of_all(told: dict[str, Any]) -> None:
    missing = "no such folder: it must hold data_batch_1.bin, data_batch_2.bin, data_batch_3.bin, data_batch_4.bin"
    text = f"UserError: rank 1: cifar10:{told['top']}/missing-1: {missing}, data_batch_5.bin"
    assert told["missing"] == [text] * 3


def test_what_all_miss_needs_no_rank(told: dict[str, Any]) -> None:
    assert told["nowhere"] == [f"UserError: folder:{told['top']}/nowhere: no such folder: it must have a sub-folder"
                               " of images per class"] * 3  # fmt: skip


def test_ranks_that_see_other_images_do_not_share_them(told: dict[str, Any]) -> None:
    assert len(set(told["names"])) == 1
    assert told["names"][0].startswith("CannotRun: train: ranks see other images: rank 0 1 images in 1 classes, 32 px,")
    assert ", rank 2 1 images in 1 classes" in told["names"][0]
