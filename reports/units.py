"""Numbers as people read them. Records hold base units (s, bytes/s, 1); what is printed names its unit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

BITS = 8
_BINARY = (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))
_DECIMAL = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


@dataclass(frozen=True)
class Unit:
    """A printed unit: base units times ``scale``; ``decimals`` fixed, or four significant digits.

    ``small`` keeps four digits below 1 too, where three decimals would not tell much.
    """

    name: str
    scale: float
    decimals: int | None = None
    small: bool = False

    def text(self, value: float, like: float | None = None) -> str:
        """``value`` (base units) without its unit, with as many decimals as ``like`` is printed with."""
        scaled = value * self.scale
        places = self.places(value if like is None else like)
        return f"{round(scaled, places) + 0.0:.{places}f}"

    def inside(self, low: float, high: float, like: float | None = None) -> str:
        """An interval, ``[26.89, 27.10]``, with as many decimals as ``like`` is printed with."""
        return f"[{self.text(low, like)}, {self.text(high, like)}]"

    def places(self, value: float) -> int:
        """How many decimals ``value`` (base units) is printed with."""
        if self.decimals is not None:
            return self.decimals
        scaled = abs(value * self.scale)
        if self.small and 0 < scaled < 1:
            return 3 - math.floor(math.log10(scaled))
        return 3 if scaled < 10 else 2 if scaled < 100 else 1 if scaled < 10000 else 0


US = Unit("us", 1e6)
MS = Unit("ms", 1e3)
MB_PER_S = Unit("MB/s", 1e-6, 3)
MIB_PER_S = Unit("MiB/s", 2.0**-20, 3)
GBIT_PER_S = Unit("Gbit/s", BITS * 1e-9, 3)
PERCENT = Unit("%", 100, 1)
PLAIN = Unit("", 1, 2)
PER_S = Unit("images/s", 1)
MMSG_PER_S = Unit("Mmsg/s", 1e-6, small=True)
NS_PER_BYTE = Unit("ns/byte", 1e9)
GFLOP_PER_S = Unit("Gflop/s", 1e-9)
MCELLS_PER_S = Unit("Mcells/s", 1e-6)

GBIT_SHORT = Unit("Gbit/s", BITS * 1e-9)

BYTE_RATES: Mapping[str, Unit] = MappingProxyType({"decimal": MB_PER_S, "binary": MIB_PER_S})

_BASE = {"s": US, "images/s": PER_S, "messages/s": MMSG_PER_S, "flop/s": GFLOP_PER_S, "s/byte": NS_PER_BYTE,
         "cells/s": MCELLS_PER_S}  # fmt: skip


def unit_for(base: str, byte_rate: Unit = MB_PER_S) -> Unit:
    """The unit in which a base unit is printed where no chapter chose another; ``byte_rate`` is that of bytes/s."""
    return byte_rate if base == "bytes/s" else _BASE.get(base, Unit(base, 1))


def time_unit(seconds: float) -> Unit:
    """us below 10 ms, ms from there on."""
    return US if abs(seconds) < 0.01 else MS


def size(nbytes: int | None) -> str:
    """A message size, exactly: ``0 B``, ``8 B``, ``64 KiB``, ``65537 B``; ``-`` where there is none."""
    if nbytes is None:
        return "-"
    for name, factor in _BINARY:
        if nbytes and nbytes % factor == 0:
            return f"{nbytes // factor} {name}"
    return f"{nbytes} B"


def volume(nbytes: float) -> str:
    """An amount of data in decimal units, rounded: ``67.1 MB``."""
    for name, factor in _DECIMAL:
        if nbytes >= factor:
            return f"{nbytes / factor:.1f} {name}"
    return f"{nbytes:.0f} B"


def rate(bits_per_s: float | None) -> str:
    """A declared rate: ``2.5 Gbit/s``, or ``none declared``."""
    return "none declared" if bits_per_s is None else f"{bits_per_s / 1e9:g} Gbit/s"


def times(ratio: float | None) -> str:
    """A ratio: ``3.95x``."""
    return "-" if ratio is None else f"{ratio:.2f}x"


def duration(seconds: float) -> str:
    """A duration in words of the clock: ``45 s``, ``12 min 3 s``, ``2 h 5 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"


def count(number: int, thing: str) -> str:
    """``1 case``, ``2 cases``."""
    ending = "ies" if thing.endswith("y") else "es" if thing.endswith("ch") else "s"
    plural = thing if number == 1 else thing.removesuffix("y") + ending
    return f"{number} {plural}"


def runs(numbers: Iterable[int]) -> str:
    """Integers with neighbours joined: ``1-3, 7``."""
    parts: list[list[int]] = []
    for number in sorted(set(numbers)):
        if parts and parts[-1][-1] == number - 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ", ".join("-".join(map(str, part)) for part in parts)
