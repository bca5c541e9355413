"""The kernels that a machine's cores and memory are measured by, each on one core and on all.

torch computes them where every rank has it, else numpy does the matrix product, and what only torch can do is left out
with that reason.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microbench.kernels import TRIAD_BYTES, Kernels
from training.augment import augment
from training.characterize.cores import Team

NO_TORCH = "n/a: no torch here"
ALL = "_all"  # ends the name of what all cores do together
WORK_STEPS = 1_000_000
MATRIX_SIDE = 1024
CONV = (4, 64, 56)  # images, channels in and out, side in pixels: the 3x3 layers of ResNet-50's first stage
FORWARD_MODEL, FORWARD_BATCH = "resnet20", 32
ZLIB_LEVEL, ZLIB_BYTES = 1, 1 << 20
BATCHES: Mapping[int, int] = MappingProxyType({32: 64, 224: 2})  # images of a call by their side

UNITS: Mapping[str, str] = MappingProxyType(
    {
        "work": "1/s",
        "triad": "bytes/s",
        "matmul": "flop/s",
        "conv": "flop/s",
        "forward": "images/s",
        "zlib": "bytes/s",
        "augment32": "images/s",
        "augment224": "images/s",
    }
)
WHAT: Mapping[str, str] = MappingProxyType(
    {
        "work": "multiply-adds in a register, each waiting for the last: native",
        "triad": "a = b + 3 c of float64, native; 24 bytes an element, as STREAM counts",
        "matmul": f"float32 matrix product, {MATRIX_SIDE} x {MATRIX_SIDE}",
        "conv": f"float32 3x3 convolution, {CONV[1]} channels, {CONV[2]} x {CONV[2]} pixels, batch {CONV[0]}",
        "forward": f"forward pass of {FORWARD_MODEL}, 32 x 32 pixels, batch {FORWARD_BATCH}, float32",
        "zlib": f"zlib level {ZLIB_LEVEL}, {ZLIB_BYTES >> 10} KiB of fixed data",
        "augment32": "augmentation of 32 x 32 pixels: crop with padding, flip, colour jitter, normalisation; numpy",
        "augment224": "augmentation of 224 x 224 pixels: the same",
    }
)
NAMES = tuple(UNITS)
BY_TORCH = ("matmul", "conv", "forward")
VARIANTS = tuple(f"{name}{ending}" for name in NAMES for ending in ("", ALL) if name + ending != "work_all")


def base(variant: str) -> str:
    """The kernel of a variant: ``triad`` of ``triad_all``."""
    return variant.removesuffix(ALL)


@dataclass(frozen=True)
class Kernel:
    """One way to do work: ``call(n)`` does ``n`` times ``amount`` units of it, on ``cpus``.

    ``threads`` is how many of torch's it is to compute with, 0 where torch has no part in it.
    """

    variant: str
    amount: float
    call: Callable[[int], None]
    cpus: tuple[int, ...]
    threads: int = 0


@dataclass
class Bench:
    """The kernels of one rank: ``one`` is its own processor, ``team`` all of its machine's.

    ``torch`` is None where some rank has none. ``facts`` are for the record; close it in the end.
    """

    one: int
    team: Team
    torch: ModuleType | None
    triad_bytes: int
    native: Kernels = field(default_factory=Kernels)
    facts: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._alone = Team([self.one])

    def team_of(self, variant: str) -> Team:
        """Whose processors a variant runs on."""
        return self.team if variant.endswith(ALL) else self._alone

    def make(self, variant: str) -> Kernel | None:
        """The kernel, its data written; None where only torch could do it, and is not there.

        To be called on its own processors: memory is where it was first touched.
        """
        makers: Mapping[str, Callable[[Team, str], Kernel]] = {
            "work": self._work, "triad": self._triad, "zlib": self._zlib,
            "augment32": self._augment, "augment224": self._augment,
        }  # fmt: skip
        name, team = base(variant), self.team_of(variant)
        if name in makers:
            return makers[name](team, variant)
        if self.torch is None:
            return _matmul_by_numpy(team, variant) if name == "matmul" else None
        act, amount = _TORCH[name](self.torch)
        return _by_torch(self.torch, team, variant, amount, act)

    def close(self) -> None:
        """End the threads."""
        self.team.close()

    def _work(self, team: Team, variant: str) -> Kernel:
        return Kernel(variant, WORK_STEPS, lambda n: self._steps(n * WORK_STEPS), team.cpus)

    def _steps(self, steps: int) -> None:
        self.native.work(steps)

    def _triad(self, team: Team, variant: str) -> Kernel:
        """Each thread has a share of the arrays, which it touches first itself."""
        elements = self.triad_bytes // 8 // len(team.cpus)
        shares = team.each(lambda _: tuple(np.full(elements, value) for value in (0.0, 1.0, 2.0)))

        def share(place: int, n: int) -> None:
            a, b, c = shares[place]
            self.native.triad(a, b, c, n)

        def call(n: int) -> None:
            team.each(lambda place: share(place, n))

        return Kernel(variant, TRIAD_BYTES * elements * len(team.cpus), call, team.cpus)

    def _zlib(self, team: Team, variant: str) -> Kernel:
        text = compressible(ZLIB_BYTES)
        self.facts["zlib_ratio"] = len(text) / len(zlib.compress(text, ZLIB_LEVEL))
        act = _by_each(team, lambda _: zlib.compress(text, ZLIB_LEVEL))
        return Kernel(variant, float(ZLIB_BYTES * len(team.cpus)), act, team.cpus)

    def _augment(self, team: Team, variant: str) -> Kernel:
        side = int(base(variant).removeprefix("augment"))
        batch = BATCHES[side]
        words = np.frombuffer(_words(batch * side * side * 3, 6), np.uint8)
        images = words[: batch * side * side * 3].reshape(batch, side, side, 3)
        act = _by_each(team, lambda place: augment(images, 7, batch * place))
        return Kernel(variant, float(batch * len(team.cpus)), act, team.cpus)


Act = Callable[[], object]


def _matmul_by_numpy(team: Team, variant: str) -> Kernel:
    left, right = _matrices()
    product = np.empty_like(left)
    return Kernel(variant, 2.0 * len(left) ** 3, _repeated(lambda: np.matmul(left, right, out=product)), team.cpus)


def _by_torch(torch: ModuleType, team: Team, variant: str, amount: float, act: Act) -> Kernel:
    def call(n: int) -> None:
        with torch.inference_mode():
            _repeated(act)(n)

    return Kernel(variant, amount, call, team.cpus, len(team.cpus))


def _torch_matmul(torch: ModuleType) -> tuple[Act, float]:
    left, right = map(torch.from_numpy, _matrices())
    product = torch.empty_like(left)
    return lambda: torch.mm(left, right, out=product), 2.0 * MATRIX_SIDE**3


def _torch_conv(torch: ModuleType) -> tuple[Act, float]:
    batch, channels, side = CONV
    images = torch.from_numpy(_fixed(batch * channels * side * side, 3).reshape(batch, channels, side, side))
    weights = torch.from_numpy(_fixed(channels * channels * 9, 4).reshape(channels, channels, 3, 3))
    flop = 2.0 * 9 * channels * channels * side * side * batch
    return lambda: torch.conv2d(images, weights, padding=1), flop


def _torch_forward(torch: ModuleType) -> tuple[Act, float]:
    from training.models import MODELS  # noqa: PLC0415 - its networks import torch

    network = MODELS[FORWARD_MODEL].builder(0).eval()
    images = torch.from_numpy(_fixed(FORWARD_BATCH * 3 * 32 * 32, 5).reshape(FORWARD_BATCH, 3, 32, 32))
    return lambda: network(images), float(FORWARD_BATCH)


_TORCH: Mapping[str, Callable[[ModuleType], tuple[Act, float]]] = MappingProxyType(
    {"matmul": _torch_matmul, "conv": _torch_conv, "forward": _torch_forward}
)


def _matrices() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    left, right = (_fixed(MATRIX_SIDE**2, seed).reshape(MATRIX_SIDE, MATRIX_SIDE) for seed in (1, 2))
    return left, right


def _repeated(act: Callable[[], object]) -> Callable[[int], None]:
    def call(n: int) -> None:
        for _ in range(n):
            act()

    return call


def _by_each(team: Team, act: Callable[[int], object]) -> Callable[[int], None]:
    """``act`` by every thread of a team, each ``n`` times."""

    def call(n: int) -> None:
        team.each(lambda place: _repeated(lambda: act(place))(n))

    return call


def _words(nbytes: int, seed: int) -> bytes:
    """At least ``nbytes`` bytes that are the same everywhere: a bit stream of PCG64, which numpy guarantees."""
    return np.asarray(np.random.PCG64(seed).random_raw(-(-nbytes // 8)), "<u8").tobytes()


def _fixed(count: int, seed: int) -> NDArray[np.float32]:
    """Numbers in -1 to 1, the same everywhere."""
    words = np.frombuffer(_words(4 * count, seed), "<u4")[:count]
    return (words.astype(np.float64) / 2**31 - 1).astype(np.float32)


def compressible(nbytes: int) -> bytes:
    """Fixed data of which zlib makes about half: words of 2 to 9 letters from a vocabulary of 4096."""
    draws = np.frombuffer(_words(2 * nbytes, 8), "<u2")
    letters = (np.frombuffer(_words(4096 * 9, 9), np.uint8) % 26 + 97).tobytes()
    vocabulary = [letters[9 * i : 9 * i + 2 + letters[9 * i] % 8] for i in range(4096)]
    return b" ".join(vocabulary[draw % 4096] for draw in draws[: nbytes // 3])[:nbytes]
