"""What a case of the CFD benchmark may set, checked: pure, without MPI.

What differs from the usual is in its label, and so in the case's id; the modes that it compares are not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from fabrics.errors import UserError
from training.cfd.blocks import GHOSTS, Cells, Split

BLOCKING, OVERLAPPED, PROBES = MODES = ("blocking", "overlapped", "probes")
BOTH, STRONG, WEAK, NONE = SCALINGS = ("both", "strong", "weak", "none")
USUAL_CFL = 0.6
AUTO = "auto"

_MOST_CELLS = 2**31
_MOST_STEPS = 1000
_LARGEST_CFL = 100.0
_GRID, _SPLIT = re.compile(r"(\d+)x(\d+)x(\d+)"), re.compile(r"(\d+)x(\d+)")


@dataclass(frozen=True)
class Options:
    """A flow and how it is measured.

    ``grid`` is the cells in x, y and z; ``steps`` are timed together, ``compare`` names the modes, and ``scaling`` what
    they are set beside: one rank with the whole grid (``strong``), one with its share (``weak``), both or none.
    ``cfl`` is the time step over the longest that the fastest wave allows. ``split`` is how many ranks there are in x
    and in y, None where the fewest cells to exchange decide.
    """

    grid: Cells = (64, 64, 64)
    steps: int = 4
    compare: tuple[str, ...] = MODES
    scaling: str = BOTH
    cfl: float = USUAL_CFL
    split: Split | None = None

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Options:
        """The options of a case; UserError for an unknown name, and for a value that cannot be."""
        known = [field.name for field in fields(cls)]
        if unknown := sorted(set(data) - set(known)):
            raise UserError(f"cfd has no option {unknown[0]!r}: one of {', '.join(known)}")
        usual = cls()
        return cls(
            grid=_grid(data.get("grid", usual.grid)),
            steps=_steps(data.get("steps", usual.steps)),
            compare=_modes(data.get("compare", usual.compare)),
            scaling=_scaling(data.get("scaling", usual.scaling)),
            cfl=_cfl(data.get("cfl", usual.cfl)),
            split=_split(data.get("split", AUTO)),
        )

    @property
    def cells(self) -> int:
        """How many there are in the grid."""
        return math.prod(self.grid)

    @property
    def strong(self) -> bool:
        """Whether one rank solves the whole grid."""
        return self.scaling in (BOTH, STRONG)

    @property
    def weak(self) -> bool:
        """Whether one rank solves its share alone."""
        return self.scaling in (BOTH, WEAK)

    @property
    def label(self) -> str:
        """As reports name it: ``euler 64x64x64``, with a time step or a split that is not the usual one."""
        cfl = f" cfl {self.cfl:g}" if self.cfl != USUAL_CFL else ""
        split = f" split {told(self.split)}" if self.split else ""
        return f"euler {told(self.grid)}{cfl}{split}"

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON data, of which :meth:`of` makes these options again."""
        kept: dict[str, Any] = {"grid": told(self.grid), "steps": self.steps, "compare": list(self.compare)}
        kept |= {"scaling": self.scaling, "cfl": self.cfl}
        return kept | ({"split": told(self.split)} if self.split else {})


def told(numbers: Sequence[int]) -> str:
    """``64x64x64``."""
    return "x".join(map(str, numbers))


def _grid(value: Any) -> Cells:
    found = _GRID.fullmatch(value) if isinstance(value, str) else None
    numbers = tuple(map(int, found.groups())) if found else value
    whole = isinstance(numbers, Sequence) and len(numbers) == 3 and all(isinstance(n, int) for n in numbers)
    if not whole or min(numbers) < GHOSTS or math.prod(numbers) > _MOST_CELLS:
        raise UserError(
            f"cfd: grid is {value!r}: cells in x, y and z, {GHOSTS} or more each and at most 2**31 in all, such as"
            " 64x64x64"
        )
    return numbers[0], numbers[1], numbers[2]


def _steps(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST_STEPS:
        raise UserError(f"cfd: steps is {value!r}: a whole number from 1 to {_MOST_STEPS}")
    return value


def _modes(value: Any) -> tuple[str, ...]:
    names = () if isinstance(value, str) or not isinstance(value, Sequence) else tuple(dict.fromkeys(value))
    if not names:
        raise UserError(f"cfd: compare is {value!r}: a list of {', '.join(MODES)}")
    for name in names:
        if name not in MODES:
            raise UserError(f"cfd: compare has no mode {name!r}: one of {', '.join(MODES)}")
    return tuple(mode for mode in MODES if mode in names)


def _scaling(value: Any) -> str:
    if value not in SCALINGS:
        raise UserError(f"cfd: scaling is {value!r}: one of {', '.join(SCALINGS)}")
    return str(value)


def _cfl(value: Any) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value <= _LARGEST_CFL:
        raise UserError(f"cfd: cfl is {value!r}: a number above 0 and up to {_LARGEST_CFL:g}, such as {USUAL_CFL:g}")
    return float(value)


def _split(value: Any) -> Split | None:
    if value == AUTO:
        return None
    found = _SPLIT.fullmatch(value) if isinstance(value, str) else None
    numbers = tuple(map(int, found.groups())) if found else ()
    if not numbers or min(numbers) < 1:
        raise UserError(f"cfd: split is {value!r}: {AUTO}, or how many ranks there are in x and in y, such as 2x1")
    return numbers[0], numbers[1]
