"""Augmentation: the same whatever the split, really drawn, and what it says it does."""

from __future__ import annotations

import numpy as np
import pytest

from training import augment as module
from training.augment import GRAY, JITTER, MEAN, STD, augment, draw, padding, uniform


def photos(n: int, height: int = 32, width: int = 32, seed: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (n, height, width, 3), dtype=np.uint8)


def plain(n: int, top: int, left: int, flip: bool, b: float = 1.0, c: float = 1.0, s: float = 1.0) -> module.Draws:
    """The same draws for every image."""
    factors = [np.full(n, value, np.float32) for value in (b, c, s)]
    return module.Draws(np.full(n, top), np.full(n, left), np.full(n, flip), *factors)


def denormalised(planes: np.ndarray) -> np.ndarray:
    """Back to 0 ... 255, of shape (n, h, w, 3)."""
    mean, std = np.array(MEAN), np.array(STD)
    return (planes.transpose(0, 2, 3, 1) * std + mean) * 255


@pytest.mark.parametrize("side", [8, 32, 224])
@pytest.mark.parametrize("cuts", [(1,), (3,), (1, 2), (5, 6)])
def test_any_split_of_a_batch_gives_the_same_bits(side: int, cuts: tuple[int, ...]) -> None:
    n, first = 7 if side == 224 else 150, 40
    images = photos(n, side, side)
    whole = augment(images, 9, first)
    pieces = np.split(np.arange(n), cuts)
    parts = [augment(images[piece], 9, first + int(piece[0])) for piece in pieces if piece.size]
    assert np.array_equal(np.concatenate(parts).view("u4"), whole.view("u4"))


def test_each_image_alone_gives_the_same_bits() -> None:
    images = photos(70, 40, 24)
    alone = [augment(images[i : i + 1], 3, 1000 + i) for i in range(70)]
    assert np.array_equal(np.concatenate(alone).view("u4"), augment(images, 3, 1000).view("u4"))


def test_memory_order_of_the_input_does_not_matter() -> None:
    images = photos(9)
    assert np.array_equal(augment(np.asfortranarray(images), 1), augment(images, 1))
    assert np.array_equal(augment(photos(18)[::2], 1), augment(photos(18)[::2].copy(), 1))


def test_seed_and_index_both_count() -> None:
    images = np.repeat(photos(1), 64, axis=0)
    one = augment(images, 1)
    assert len({image.tobytes() for image in one}) == 64
    assert not np.array_equal(one, augment(images, 2))
    assert np.array_equal(one[10:], augment(images, 1, 10)[:54])
    assert np.isfinite(augment(images, -7, 2**63)).all()


def test_an_epoch_that_is_counted_on_draws_anew() -> None:
    images = photos(50)
    assert not np.array_equal(augment(images, 1, 0), augment(images, 1, 50))


def test_draws_are_uniform_and_independent() -> None:
    u = uniform(1, 0, 20_000)
    assert ((u >= 0) & (u < 1)).all()
    counts = np.stack([np.histogram(column, 20, (0, 1))[0] for column in u.T])
    chi2 = ((counts - 1000) ** 2 / 1000).sum(axis=1)
    assert (chi2 < 43.8).all()  # the 99.9 % point with 19 degrees of freedom
    assert np.abs(np.corrcoef(u.T) - np.eye(6)).max() < 4 / np.sqrt(20_000)
    assert abs(np.corrcoef(u[:-1, 0], u[1:, 0])[0, 1]) < 4 / np.sqrt(20_000)
    assert abs(np.corrcoef(u[:, 0], uniform(2, 0, 20_000)[:, 0])[0, 1]) < 4 / np.sqrt(20_000)


def test_what_is_drawn_has_the_stated_ranges() -> None:
    drawn = draw(4, 0, 20_000, 32, 224)
    assert set(drawn.top) == set(range(9))
    assert set(drawn.left) == set(range(57))
    assert abs(drawn.flip.mean() - 0.5) < 0.02
    for factor in (drawn.brightness, drawn.contrast, drawn.saturation):
        assert 1 - JITTER <= factor.min() < 1 - 0.98 * JITTER
        assert 1 + 0.98 * JITTER < factor.max() <= np.float32(1 + JITTER)
        assert abs(factor.mean() - 1) < 0.01


def test_without_jitter_it_is_a_crop(monkeypatch: pytest.MonkeyPatch) -> None:
    images = photos(3)
    monkeypatch.setattr(module, "draw", lambda *_: plain(3, 4, 4, flip=False))
    assert denormalised(augment(images, 0)) == pytest.approx(images.astype(float), abs=1e-3)
    monkeypatch.setattr(module, "draw", lambda *_: plain(3, 4, 4, flip=True))
    assert denormalised(augment(images, 0)) == pytest.approx(images[:, :, ::-1].astype(float), abs=1e-3)
    monkeypatch.setattr(module, "draw", lambda *_: plain(3, 0, 7, flip=False))
    moved = denormalised(augment(images, 0))
    assert moved[:, 4:, :29] == pytest.approx(images[:, :28, 3:].astype(float), abs=1e-3)
    assert moved[:, :4] == pytest.approx(0.0, abs=1e-3)  # what lies outside is black
    assert moved[:, :, 29:] == pytest.approx(0.0, abs=1e-3)


def test_a_flip_and_an_offset_take_the_same_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    images = photos(2)
    monkeypatch.setattr(module, "draw", lambda *_: plain(2, 1, 6, flip=False))
    straight = augment(images, 0)
    monkeypatch.setattr(module, "draw", lambda *_: plain(2, 1, 6, flip=True))
    assert np.array_equal(augment(images, 0), straight[..., ::-1])


def test_jitter_is_that_of_its_three_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    images, b, c, s = photos(2), 0.7, 0.8, 1.3
    monkeypatch.setattr(module, "draw", lambda *_: plain(2, 4, 4, flip=False, b=b, c=c, s=s))
    x = b * images.astype(float)
    weights = np.array(GRAY)
    x = c * x + (1 - c) * (x @ weights).mean(axis=(1, 2))[:, None, None, None]
    x = s * x + (1 - s) * (x @ weights)[..., None]
    assert denormalised(augment(images, 0)) == pytest.approx(np.clip(x, 0, 255), abs=2e-3)


def test_values_stay_in_the_range_of_a_picture() -> None:
    found = denormalised(augment(photos(200), 8))
    assert found.min() > -1e-3
    assert found.max() < 255 + 1e-3
    assert found.dtype == np.float64
    assert augment(photos(1), 8).dtype == np.float32


def test_padding_is_an_eighth() -> None:
    assert [padding(side) for side in (32, 224, 7)] == [4, 28, 0]


@pytest.mark.parametrize("shape", [(32, 32, 3), (2, 3, 32, 32), (2, 32, 32, 4)])
def test_what_is_no_batch_of_images_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="uint8 of shape"):
        augment(np.zeros(shape, np.uint8), 0)
    with pytest.raises(ValueError, match="not float32"):
        augment(np.zeros((1, 8, 8, 3), np.float32), 0)


def test_no_images_are_no_images() -> None:
    assert augment(np.zeros((0, 32, 32, 3), np.uint8), 0).shape == (0, 3, 32, 32)
