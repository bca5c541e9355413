"""The kernels do the work that they are counted for."""

from __future__ import annotations

import os
import zlib

import numpy as np
import pytest

from training.characterize import kernels
from training.characterize.cores import Team
from training.characterize.kernels import ALL, NAMES, UNITS, VARIANTS, WHAT, Bench, base, compressible

CPUS = sorted(os.sched_getaffinity(0))


@pytest.fixture
def bench() -> Bench:
    made = Bench(CPUS[0], Team(CPUS), None, 1 << 16)
    yield made
    made.close()


def test_names_go_together() -> None:
    assert set(UNITS) == set(WHAT) == {base(variant) for variant in VARIANTS}
    assert "work_all" not in VARIANTS
    assert len(VARIANTS) == 2 * len(NAMES) - 1


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_kernel_runs_without_torch_or_says_that_it_cannot(bench: Bench, variant: str) -> None:
    kernel = bench.make(variant)
    if base(variant) in ("conv", "forward"):
        assert kernel is None
        return
    assert kernel is not None
    kernel.call(2)
    assert kernel.amount > 0
    assert kernel.cpus == tuple(CPUS if variant.endswith(ALL) else CPUS[:1])
    assert kernel.threads == 0


def test_all_cores_do_as_many_times_the_work(bench: Bench) -> None:
    one, every = (bench.make(variant) for variant in ("augment32", "augment32_all"))
    assert every.amount == len(CPUS) * one.amount


def test_the_triad_counts_the_bytes_of_its_arrays(bench: Bench) -> None:
    assert bench.make("triad").amount == 3 * (1 << 16)
    assert bench.make("triad_all").amount == 3 * (1 << 16) // len(CPUS) * len(CPUS)


def test_torch_computes_where_it_is() -> None:
    torch = pytest.importorskip("torch")
    made = Bench(CPUS[0], Team(CPUS), torch, 1 << 16)
    for variant in ("matmul", "conv", "forward_all"):
        kernel = made.make(variant)
        kernel.call(1)
        assert kernel.threads == len(kernel.cpus)
    act, flop = kernels._torch_conv(torch)
    assert act().shape == (4, 64, 56, 56)
    assert flop == 2 * 9 * 64 * 64 * 56 * 56 * 4
    product, flop = kernels._torch_matmul(torch)
    left, right = kernels._matrices()
    assert np.allclose(product().numpy(), left @ right, atol=1e-2)
    assert flop == 2 * 1024**3
    made.close()


def test_the_data_is_the_same_everywhere_and_half_compressible() -> None:
    text = compressible(1 << 16)
    assert zlib.crc32(text) == CRC
    assert len(text) == 1 << 16
    assert 1.5 < len(text) / len(zlib.compress(text, 1)) < 3


CRC = 0xFCC30AB6
