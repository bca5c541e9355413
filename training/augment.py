"""Data augmentation of images: random crop with padding, horizontal flip, colour jitter, normalisation.

Pure numpy, and real work: a DPU has no other library for sure. What is drawn for an image follows from the seed
and the image's index alone, and every sum whose order could differ is of integers, so results are the same bit by bit
however a batch is split, on whichever machine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

PADDING_SHARE = 8  # an image is padded by an eighth of its side on each side: 4 of 32 pixels, 28 of 224
JITTER = 0.4  # brightness, contrast and saturation are scaled by 1 - 0.4 to 1 + 0.4
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # ImageNet's usual ones, of red, green and blue in 0 to 1
GRAY = (0.299, 0.587, 0.114)  # ITU-R BT.601
_PIECE_PIXELS = 1 << 16  # that many at once: what is in work then stays in a core's cache
_DRAWS = 6
_GOLDEN, _MIX_1, _MIX_2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB

Images = NDArray[np.uint8]
Planes = NDArray[np.float32]


@dataclass(frozen=True)
class Draws:
    """What was drawn, an entry per image: the crop's offsets in pixels, whether it is flipped, and three factors."""

    top: NDArray[np.int64]
    left: NDArray[np.int64]
    flip: NDArray[np.bool_]
    brightness: Planes
    contrast: Planes
    saturation: Planes


def augment(images: Images, seed: int, first_index: int = 0) -> Planes:
    """``images``, uint8 of shape (n, h, w, 3), augmented: float32 of shape (n, 3, h, w).

    ``first_index`` is the place of the first image in the whole data set (or in all images of all epochs): image i of
    the batch is drawn for by ``seed`` and ``first_index + i`` alone. Raises ValueError for another type or shape.
    """
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] != 3:
        raise ValueError(f"images are uint8 of shape (n, h, w, 3), not {images.dtype} of {images.shape}")
    n, height, width, _ = images.shape
    drawn = draw(seed, first_index, n, height, width)
    found = np.empty((n, 3, height, width), np.float32)
    step = max(1, _PIECE_PIXELS // max(1, height * width))
    for start in range(0, n, step):
        piece = slice(start, min(n, start + step))
        _jitter(_cropped(images[piece], drawn, piece), drawn, piece, found[piece])
    return found


def draw(seed: int, first_index: int, n: int, height: int, width: int) -> Draws:
    """What is drawn for ``n`` images from ``first_index`` on, of the given size: uniform, and independent."""
    u = uniform(seed, first_index, n)
    spans = 2 * padding(height) + 1, 2 * padding(width) + 1
    top, left = ((u[:, k] * span).astype(np.int64) for k, span in enumerate(spans))
    factors = (1 - JITTER + 2 * JITTER * u[:, 3:]).astype(np.float32)
    return Draws(top, left, u[:, 2] < 0.5, factors[:, 0], factors[:, 1], factors[:, 2])


def padding(side: int) -> int:
    """By how many pixels a side of that length is padded at either end."""
    return side // PADDING_SHARE


def uniform(seed: int, first_index: int, n: int) -> NDArray[np.float64]:
    """Uniform numbers in [0, 1), of shape (n, 6), by counting: number k of index i is a hash of seed, i and k.

    SplitMix64 (Steele, Lea and Flood 2014), whose stream may be entered anywhere.
    """
    index = np.arange(n, dtype=np.uint64) + np.uint64(first_index % 2**64)
    first = np.multiply(index, np.uint64(_DRAWS), dtype=np.uint64)
    counter = np.add(first[:, None], np.arange(1, _DRAWS + 1, dtype=np.uint64), dtype=np.uint64)
    start = _mixed(np.array([seed % 2**64], np.uint64))
    words = _mixed(np.add(start, counter * np.uint64(_GOLDEN), dtype=np.uint64))
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mixed(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_MIX_1)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_MIX_2)
    return z ^ (z >> np.uint64(31))


def _cropped(images: Images, drawn: Draws, piece: slice) -> Images:
    """Each image's crop from its padded self, flipped where drawn so: of the same shape."""
    n, height, width, _ = images.shape
    around = padding(height), padding(width)
    padded = np.zeros((n, height + 2 * around[0], width + 2 * around[1], 3), np.uint8)
    padded[:, around[0] : around[0] + height, around[1] : around[1] + width] = images
    across = np.arange(width)
    columns = np.where(drawn.flip[piece, None], across[::-1], across) + drawn.left[piece, None]
    rows = np.arange(height) + drawn.top[piece, None]
    crop: Images = padded[np.arange(n)[:, None, None], rows[:, :, None], columns[:, None, :]]
    return crop


def _jitter(crop: Images, drawn: Draws, piece: slice, found: Planes) -> None:
    """Brightness b, contrast c and saturation s, then normalisation, into ``found``.

    In this order they are ``b x``, ``c x + (1-c) mean(gray)`` and ``s x + (1-s) gray``; gray is linear and leaves gray
    as it is, so together ``b c s x + b c (1-s) gray(x) + b (1-c) mean(gray(x))``, cut to 0 ... 255 once.
    """
    b, c, s = (factor[piece] for factor in (drawn.brightness, drawn.contrast, drawn.saturation))
    sums = crop.sum(axis=(1, 2), dtype=np.int64)
    pixels = crop.shape[1] * crop.shape[2]
    mean = ((GRAY[0] * sums[:, 0] + GRAY[1] * sums[:, 1] + GRAY[2] * sums[:, 2]) / pixels).astype(np.float32)
    found[:] = crop.transpose(0, 3, 1, 2)
    red, green, blue = (np.float32(weight) for weight in GRAY)
    gray = red * found[:, 0] + green * found[:, 1] + blue * found[:, 2]
    gray *= (b * c * (1 - s))[:, None, None]
    gray += (b * (1 - c) * mean)[:, None, None]
    found *= (b * c * s)[:, None, None, None]
    found += gray[:, None]
    np.clip(found, 0, 255, out=found)
    normalise(found)


def normalise(planes: Planes) -> None:
    """Bring ``planes`` of shape (n, 3, h, w) in place from 0 ... 255 to ImageNet's usual mean 0 and deviation 1."""
    scale = np.array([1 / (255 * std) for std in STD], np.float32)
    shift = np.array([mean / std for mean, std in zip(MEAN, STD, strict=True)], np.float32)
    planes *= scale[:, None, None]
    planes -= shift[:, None, None]
