"""A folder of images: a sub-folder per class, decoded by Pillow and brought to one size."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from fabrics.errors import CannotRun, UserError
from training.data.source import COLOURS, Images, Indices, Labels, Part

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp")
PARTS: dict[Part, str] = {"training": "train", "validation": "val"}
_DIGITS = 16


@dataclass(frozen=True)
class Folder:
    """The images of ``files`` below ``root``, with their classes: ``labels[i]`` is a place in ``classes``.

    An image is cut to a square about its middle and resized to ``image_px``.
    """

    root: Path
    files: tuple[str, ...]
    labels: tuple[int, ...]
    classes: tuple[str, ...]
    image_px: int
    fixed: bool = False

    @property
    def name(self) -> str:
        """What errors call it."""
        return f"folder:{self.root}"

    @cached_property
    def contents(self) -> str:
        """What two ranks must agree on: a class and its number are in the digest by the names of the sub-folders."""
        digest = hashlib.sha256("\0".join(self.files).encode(errors="surrogateescape")).hexdigest()[:_DIGITS]
        return f"{len(self.files)} images in {len(self.classes)} classes, {self.image_px} px, names {digest}"

    def __len__(self) -> int:
        return len(self.files)

    def read(self, indices: Indices) -> tuple[Images, Labels]:
        """The images and classes of those numbers. Raises UserError, naming the file, for one that is no image."""
        images = np.empty((len(indices), self.image_px, self.image_px, COLOURS), np.uint8)
        for place, index in enumerate(indices):
            images[place] = _decoded(self.root / self.files[index], self.image_px)
        return images, np.array([self.labels[index] for index in indices], np.int64)


def open_folder(root: Path, part: Part, image_px: int) -> Folder:
    """The images of ``root``, or of its ``train`` and ``val`` where it has a sub-folder ``train``.

    Raises UserError for a folder that is missing, that has no sub-folders, or one without images; CannotRun where
    Pillow is not installed.
    """
    _need_pillow(f"folder:{root}")
    if not root.is_dir():
        raise UserError(f"folder:{root}: no such folder: it must have a sub-folder of images per class")
    top = _top(root, part)
    classes = tuple(sorted(entry.name for entry in top.iterdir() if entry.is_dir() and not entry.name.startswith(".")))
    if not classes:
        raise UserError(f"folder:{top}: no sub-folders: it must have one per class")
    found = [(file, label) for label, name in enumerate(classes) for file in _images(top, name)]
    return Folder(top, tuple(file for file, _ in found), tuple(label for _, label in found), classes, image_px)


def _top(root: Path, part: Part) -> Path:
    if not (root / PARTS["training"]).is_dir():
        if part == "validation":
            raise UserError(f"folder:{root}: no sub-folders train and val: nothing is set apart for validation")
        return root
    top = root / PARTS[part]
    if not top.is_dir():
        raise UserError(f"folder:{root}: no sub-folder {PARTS[part]}, beside {PARTS['training']}")
    return top


def _images(top: Path, name: str) -> list[str]:
    """The images of a class in the order of their names, the same on every host; paths from ``top``."""
    found = sorted(_walk(top, name))
    if not found:
        raise UserError(f"folder:{top}: no images in {name}: looked for {' '.join(SUFFIXES)}")
    return found


def _walk(top: Path, name: str) -> Iterator[str]:
    def fail(error: OSError) -> None:  # a class that cannot be listed must not be a smaller one
        raise error

    for folder, _, files in os.walk(top / name, onerror=fail):
        below = os.path.relpath(folder, top)
        yield from (f"{below}/{file}" for file in files if file.lower().endswith(SUFFIXES) and not file.startswith("."))


def _need_pillow(name: str) -> None:
    """Raise CannotRun, naming the source, where Pillow is not installed."""
    try:
        from PIL import Image  # noqa: PLC0415 - an extra, not a dependency
    except ImportError:
        raise CannotRun(f"{name}: images are decoded by Pillow: pip install 'fabricbench[images]'") from None
    Image.init()  # all formats now, rather than by several threads at once


def _decoded(file: Path, image_px: int) -> Images:
    """The image's middle square, uint8 of shape (image_px, image_px, 3)."""
    from PIL import Image, ImageOps  # noqa: PLC0415 - an extra, found when the folder was opened

    if not file.is_file():
        raise UserError(f"folder: {file} is gone, or no file: it was there when the folder was opened")
    try:
        with Image.open(file) as image:
            fitted = ImageOps.fit(image.convert("RGB"), (image_px, image_px), Image.Resampling.BILINEAR)
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise UserError(f"folder: {file} ({file.stat().st_size} bytes) is no whole image: {error}") from None
    return np.asarray(fitted)
