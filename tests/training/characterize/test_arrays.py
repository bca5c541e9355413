"""How large a triad's arrays are, from planted trees of sysfs."""

from __future__ import annotations

from pathlib import Path

import pytest

from training.characterize.arrays import ASSUMED_CACHE_BYTES, array_bytes, last_level_bytes

MIB = 1 << 20


def cache(root: Path, cpu: int, index: int, level: int, kind: str, size: str, shared: str) -> None:
    folder = root / f"cpu{cpu}" / "cache" / f"index{index}"
    folder.mkdir(parents=True)
    for name, text in (("level", str(level)), ("type", kind), ("size", size), ("shared_cpu_list", shared)):
        (folder / name).write_text(f"{text}\n")


def test_every_last_level_cache_counts_once(tmp_path: Path) -> None:
    for cpu in range(4):
        cache(tmp_path, cpu, 0, 1, "Data", "32K", str(cpu))
        cache(tmp_path, cpu, 1, 1, "Instruction", "64K", str(cpu))
        cache(tmp_path, cpu, 2, 3, "Unified", "16M", "0-1" if cpu < 2 else "2-3")
    assert last_level_bytes(tmp_path) == 32 * MIB


def test_caches_of_one_core_each_add_up(tmp_path: Path) -> None:
    for cpu in range(2):
        cache(tmp_path, cpu, 0, 2, "Unified", "1024K", str(cpu))
    assert last_level_bytes(tmp_path) == 2 * MIB


def test_a_kernel_that_tells_nothing_is_told(tmp_path: Path) -> None:
    assert last_level_bytes(tmp_path) is None
    half = tmp_path / "cpu0" / "cache" / "index0"
    half.mkdir(parents=True)
    (half / "level").write_text("3\n")
    assert last_level_bytes(tmp_path) is None
    nbytes, why = array_bytes(None, 1 << 40, 1)
    assert nbytes == 4 * ASSUMED_CACHE_BYTES
    assert "does not tell its last-level cache: 32 MiB assumed" in why


def test_this_machine_says_something_or_nothing() -> None:
    assert (last_level_bytes() or MIB) >= 1 << 16


def test_memory_bounds_the_arrays_and_is_named() -> None:
    assert array_bytes(8 * MIB, 1 << 40, 4) == (32 * MIB, "")
    nbytes, why = array_bytes(32 * MIB, 1200 * MIB, 2)
    assert nbytes == 50 * MIB
    assert why.startswith("triad arrays of 50 MiB are below 4 times the last-level cache (32 MiB): free memory")
    with pytest.raises(ValueError, match="10 MB of free memory are too little for the triad of 4 ranks"):
        array_bytes(32 * MIB, 10_000_000, 4)
