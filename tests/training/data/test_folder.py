"""A folder of images: its classes, what is decoded, and what is named when something is wrong."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from fabrics.errors import CannotRun, UserError
from tests.training.data.planted import photo
from training.data import opened, parse
from training.data.folder import open_folder

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")


def save(file: Path, image: np.ndarray) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(image).save(file)
    return file


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three images of two classes, and what is no image: a text, a hidden file, a folder that is hidden."""
    top = tmp_path / "pets"
    save(top / "dog" / "b.png", photo(2))
    save(top / "cat" / "z.PNG", photo(1))
    save(top / "cat" / "deeper" / "a.png", photo(0))
    (top / "cat" / "README.txt").write_text("cats")
    (top / "cat" / "._z.png").write_bytes(b"left by another system")
    (top / ".cache").mkdir()
    (top / "list.png").write_text("not in a class")
    return top


def test_classes_and_images_are_those_of_the_sub_folders_by_name(root: Path) -> None:
    source = open_folder(root, "training", 32)
    assert (source.classes, source.labels) == (("cat", "dog"), (0, 0, 1))
    assert source.files == ("cat/deeper/a.png", "cat/z.PNG", "dog/b.png")
    images, labels = source.read(np.array([2, 0, 1]))
    assert (images.dtype, labels.tolist(), labels.dtype) == (np.uint8, [1, 0, 0], np.int64)
    for image, seed in zip(images, (2, 0, 1), strict=True):
        assert np.array_equal(image, photo(seed))


def test_an_image_is_cut_to_its_middle_square_and_resized(tmp_path: Path) -> None:
    wide = np.zeros((40, 100, 3), np.uint8)
    wide[:, 30:50], wide[:, 50:70] = (200, 0, 0), (0, 0, 200)
    save(tmp_path / "one" / "wide.png", wide)
    image = open_folder(tmp_path, "training", 8).read(np.array([0]))[0][0]
    assert image.shape == (8, 8, 3)
    assert (image[:, 1:3] == (200, 0, 0)).all() and (image[:, 5:7] == (0, 0, 200)).all()


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "CMYK", "1"])
def test_images_of_other_colours_become_red_green_and_blue(tmp_path: Path, mode: str) -> None:
    file = tmp_path / "one" / "image.tiff"
    file.parent.mkdir()
    Image.new("RGB", (32, 32), "white").convert(mode).save(file)
    images, _ = open_folder(tmp_path, "training", 32).read(np.array([0]))
    assert images.shape == (1, 32, 32, 3) and (images == 255).all()


def test_a_jpeg_is_decoded(tmp_path: Path) -> None:
    save(tmp_path / "one" / "image.jpeg", np.full((64, 48, 3), (10, 120, 240), np.uint8))
    images, _ = open_folder(tmp_path, "training", 32).read(np.array([0]))
    assert np.abs(images.astype(int) - (10, 120, 240)).max() <= 3


def test_train_and_val_are_told_apart(tmp_path: Path) -> None:
    save(tmp_path / "train" / "cat" / "a.png", photo(0))
    save(tmp_path / "val" / "cat" / "b.png", photo(1))
    for part, file, seed in (("training", "a.png", 0), ("validation", "b.png", 1)):
        source = open_folder(tmp_path, part, 32)
        assert source.files == (f"cat/{file}",)
        assert np.array_equal(source.read(np.array([0]))[0][0], photo(seed))


def test_a_folder_without_validation_says_so(root: Path) -> None:
    with pytest.raises(UserError, match=r"no sub-folders train and val: nothing is set apart for validation$"):
        open_folder(root, "validation", 32)
    root.rename(root.with_name("train"))
    with pytest.raises(UserError, match=rf"^folder:{root.parent}: no sub-folder val, beside train$"):
        open_folder(root.parent, "validation", 32)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"^folder:{tmp_path}/no: no such folder: it must have a sub-folder of images"):
        open_folder(tmp_path / "no", "training", 32)


def test_a_folder_without_classes_is_named(tmp_path: Path) -> None:
    save(tmp_path / "image.png", photo(1))
    with pytest.raises(UserError, match=rf"^folder:{tmp_path}: no sub-folders: it must have one per class$"):
        open_folder(tmp_path, "training", 32)


def test_a_class_without_images_is_named(root: Path) -> None:
    (root / "bird").mkdir()
    (root / "bird" / "notes.txt").write_text("none yet")
    with pytest.raises(UserError, match=rf"^folder:{root}: no images in bird: looked for \.jpg \.jpeg \.png"):
        open_folder(root, "training", 32)


def corrupt(file: Path, how: str) -> None:
    whole = file.read_bytes()
    text = {"empty": b"", "text": b"404 not found\n", "half": whole[: len(whole) // 2], "head": whole[:20]}
    file.write_bytes(text[how])


@pytest.mark.filterwarnings("ignore::UserWarning:PIL")  # of what it finds odd before it gives up
@pytest.mark.parametrize("how", ["empty", "text", "half", "head"])
@pytest.mark.parametrize("suffix", ["png", "jpg", "bmp", "gif", "tif", "webp"])
def test_a_corrupt_image_is_named_with_its_size(root: Path, suffix: str, how: str) -> None:
    file = save(root / "cat" / f"broken.{suffix}", photo(5))
    corrupt(file, how)
    source = open_folder(root, "training", 32)
    broken = source.files.index(f"cat/broken.{suffix}")
    with pytest.raises(UserError) as error:
        source.read(np.array([broken - 1, broken]))
    assert str(error.value).startswith(f"folder: {file} ({file.stat().st_size} bytes) is no whole image: ")
    assert "\n" not in str(error.value)
    assert source.read(np.array([broken + 1]))[0].shape == (1, 32, 32, 3)


def test_an_image_that_unpacks_to_too_much_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(UserError, match=rf"^folder: {root}/cat/z\.PNG \(\d+ bytes\) is no whole image: .*1024 pixels"):
        open_folder(root, "training", 32).read(np.array([1]))


def test_what_would_never_end_to_be_read_is_not_opened(root: Path) -> None:
    os.mkfifo(root / "cat" / "pipe.png")
    source = open_folder(root, "training", 32)
    with pytest.raises(UserError, match=r"cat/pipe\.png is gone, or no file"):
        source.read(np.array([source.files.index("cat/pipe.png")]))


def test_other_names_are_other_contents(root: Path) -> None:
    before = open_folder(root, "training", 32).contents
    assert before == open_folder(root, "training", 32).contents
    assert before.startswith("3 images in 2 classes, 32 px, names ")
    (root / "dog").rename(root / "dogs")
    assert open_folder(root, "training", 32).contents != before


def test_without_pillow_one_line_says_what_to_install(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(CannotRun) as error:
        open_folder(root, "training", 32)
    assert str(error.value) == f"folder:{root}: images are decoded by Pillow: pip install 'fabricbench[images]'"


def test_a_class_that_cannot_be_listed_is_not_a_smaller_one(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = os.scandir

    def refused(path: str) -> object:
        if str(path).endswith("deeper"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return usual(path)

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(UserError, match=rf"^folder:{root}: {root}/cat/deeper cannot be read: Permission denied$"):
        opened(parse(f"folder:{root}"), "training", 32, 10, 0, 0)
