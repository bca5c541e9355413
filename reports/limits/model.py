"""Limits as data: criteria, what each selects, and what a number is held against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

LINE_RATE, BASELINE, POPULATION = "line rate", "baseline", "population"
REFERENCES = (LINE_RATE, BASELINE, POPULATION)
EMULATED, OVERSUBSCRIBED, UNPROVED, NO_INTERVAL = "emulated", "oversubscribed", "unproved", "no interval"
JUDGE = (EMULATED, OVERSUBSCRIBED, UNPROVED, NO_INTERVAL)
"""What is judged only where limits ask for it; ``no interval``: values alone, such as other suites' output has."""

NOT = "!"
"""How a pattern begins that leaves out what it matches."""

Verdict = Literal["pass", "fail", "inconclusive", "not measured"]
VERDICTS: tuple[Verdict, ...] = ("fail", "not measured", "inconclusive", "pass")
EXIT_CODES: Mapping[Verdict, int] = {"pass": 0, "fail": 1, "inconclusive": 3, "not measured": 4}
_FIRST = (130, 124, 2, 4, 1, 3, 0)


def first_code(*codes: int) -> int:
    """Of several exit codes the one that counts: the first of 130, 124, 2, 4, 1, 3, 0."""
    return min(codes, key=_FIRST.index, default=0)


@dataclass(frozen=True)
class Range:
    """Whole numbers from ``low`` to ``high``, both included; None: without end."""

    low: int
    high: int | None = None

    def __contains__(self, value: int) -> bool:
        return self.low <= value and (self.high is None or value <= self.high)


@dataclass(frozen=True)
class Selector:
    """Which cases a criterion judges: by name (patterns such as ``eth*``, ``!tcp-lo``), by size, by ranks; empty: all.

    ``names`` has patterns by the field of a case (``fabric``, ``algorithm``, ...; ``kind`` is the fabric's).
    """

    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sizes: tuple[Range, ...] = ()
    ranks: tuple[Range, ...] = ()


@dataclass(frozen=True)
class Criterion:
    """One limit on one metric of the cases that it selects.

    ``lower`` and ``upper`` are included, in base units where ``reference`` is None, else parts of the reference, which
    is a number in base units or one of ``REFERENCES``. ``unit`` is what it was written in, and is printed. An interval
    that lies outside by no more than ``warn`` of the bound is inconclusive. ``line`` is where it stands in its file.
    """

    name: str
    metric: str
    selector: Selector
    lower: float | None = None
    upper: float | None = None
    reference: float | str | None = None
    unit: str = ""
    warn: float = 0.0
    judge: frozenset[str] = frozenset()
    line: int = 0


@dataclass(frozen=True)
class Limits:
    """A file of limits, or a profile: its name, and its criteria in order."""

    name: str
    criteria: tuple[Criterion, ...]
    baseline: str = ""


@dataclass(frozen=True)
class Bar:
    """What one case's number is held against, in base units: the bounds, and in words how they came about."""

    lower: float | None = None
    upper: float | None = None
    reference: float | None = None
    basis: str = ""


@dataclass(frozen=True)
class Judged:
    """The verdict on one case by one criterion.

    ``case`` is its id, empty where no case was found; numbers are in base units; ``basis`` says what the interval rests
    on; ``records`` lists the launches behind it. ``text`` is the whole of it in one line. ``again`` tells that more
    launches could decide, or undo a failure of so few that one bad moment could have made it.
    """

    verdict: Verdict
    text: str
    case: str = ""
    where: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    unit: str = ""
    basis: str = ""
    records: tuple[int, ...] = ()
    bar: Bar | None = None
    reason: str = ""
    note: str = ""
    again: bool = False


@dataclass(frozen=True)
class LeftOut:
    """A case that a criterion selects and does not judge, with the reason."""

    case: str
    reason: str


@dataclass(frozen=True)
class Ruling:
    """A criterion with the verdicts on all its cases, the worst of which is its own."""

    criterion: Criterion
    cases: tuple[Judged, ...]
    left_out: tuple[LeftOut, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The first of fail, not measured, inconclusive, pass that a case has."""
        return min((judged.verdict for judged in self.cases), key=VERDICTS.index)


@dataclass(frozen=True)
class Judgement:
    """All criteria of some limits, judged on one run."""

    limits: Limits
    rulings: tuple[Ruling, ...]
    baseline: str = ""

    @property
    def code(self) -> int:
        """The exit code of all cases together."""
        return first_code(*(EXIT_CODES[judged.verdict] for ruling in self.rulings for judged in ruling.cases))

    @property
    def doubtful(self) -> tuple[str, ...]:
        """The cases whose number lies on a bound, or fails by few launches: more of them could tell."""
        found = (j for ruling in self.rulings for j in ruling.cases if j.again)
        return tuple(dict.fromkeys(j.case for j in found))
