"""Fixed work: the ring of memory, its size, and how a compute is counted in steps of another kernel."""

from __future__ import annotations

import ctypes
import importlib.util
from pathlib import Path

import numpy as np
import pytest

from collectives.overlap import kernels
from collectives.overlap.kernels import Memory, Work, cache_bytes, punctual, ring_bytes


def cache(folder: Path, index: int, level: int, size: str) -> None:
    place = folder / f"index{index}"
    place.mkdir()
    (place / "level").write_text(f"{level}\n")
    (place / "size").write_text(f"{size}\n")


def test_the_last_level_of_cache_is_the_one_that_counts(tmp_path: Path) -> None:
    for index, (level, size) in enumerate([(1, "32K"), (1, "64K"), (3, "32768K"), (2, "1024K")]):
        cache(tmp_path, index, level, size)
    assert cache_bytes(tmp_path) == 32 << 20
    assert ring_bytes(cache_bytes(tmp_path)) == 128 << 20


@pytest.mark.parametrize(("size", "found"), [("1M", 1 << 20), ("2G", 2 << 30), ("4096", 4096), ("", 0), ("big", 0)])
def test_sizes_as_the_kernel_writes_them(tmp_path: Path, size: str, found: int) -> None:
    cache(tmp_path, 0, 3, size)
    assert cache_bytes(tmp_path) == found


def test_where_no_cache_is_told_the_ring_is_of_a_usual_one(tmp_path: Path) -> None:
    assert cache_bytes(tmp_path) == 0
    assert ring_bytes(0) == 4 * (32 << 20)


def test_a_ring_goes_on_where_it_was_left() -> None:
    spec = importlib.util.find_spec("microbench._loop")
    library = ctypes.CDLL(spec.origin if spec else None)
    memory = Memory(4096)
    ((name, ring, size, at, steps),) = memory.calls(700)
    assert (name, size, steps) == ("roll", 512, 700)
    roll = library.fb_roll
    for _ in range(3):
        assert roll(*(ctypes.c_void_p(word) for word in (ring.ctypes.data, size, at.ctypes.data, steps))) == 0
    assert int(at[0]) == 3 * 700 % 512
    assert int(ring.sum()) == 3 * 700 and int(ring.max() - ring.min()) == 1


def test_a_compute_is_as_long_in_steps_of_another_kernel() -> None:
    work = Work(1.0, 1e6, 1000, 2.0, 400.0)
    assert work.alone_ns == 2000
    assert work.steps_of(4.0) == 500


def test_sleeps_are_punctual_for_as_long_as_it_takes_and_then_as_they_were() -> None:
    prctl = ctypes.CDLL(None).prctl
    before = prctl(30, 0, 0, 0, 0)
    with punctual():
        assert prctl(30, 0, 0, 0, 0) == kernels.SLACK_NS
    assert prctl(30, 0, 0, 0, 0) == before


def test_what_processors_spent_on_the_process_is_a_column() -> None:
    spec = importlib.util.find_spec("microbench._loop")
    library = ctypes.CDLL(spec.origin if spec else None)
    times = np.zeros(3, "i8")
    place = np.array([times.ctypes.data], "u8")
    for steps in (0, 2_000_000):
        library.fb_work(ctypes.c_int64(steps))
        assert library.fb_spent(ctypes.c_void_p(place.ctypes.data)) == 0
    library.fb_nap(ctypes.c_int64(20_000_000))
    library.fb_spent(ctypes.c_void_p(place.ctypes.data))
    worked, slept = np.diff(times)
    assert worked > 2 * slept >= 0
