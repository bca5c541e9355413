"""A comparison for people and for programs."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reports.comparison.alike import Pairing
from reports.comparison.sides import FEWEST_RUNS, Side
from reports.comparison.verdicts import CHANGES, HOW, Comparison
from reports.limits.model import first_code
from reports.tables import bullet, prose, table
from reports.units import MB_PER_S, PERCENT, Unit, count, unit_for
from reports.view import grouped

_CODES: Mapping[str, int] = {"regressed": 1, "unknown": 3, "improved": 0, "same": 0}
_SYSTEM = ("fabricbench", "hostname", "kernel", "cpu", "mpi")


@dataclass(frozen=True)
class Compared:
    """Two sides, how their cases pair, and what came of each metric."""

    old: Side
    new: Side
    pairing: Pairing
    comparisons: tuple[Comparison, ...]

    @property
    def wrong(self) -> dict[str, str]:
        """The cases that the old side has a number of, and that went wrong, wholly or in a launch, on the new side."""
        return {case: why for case, why in self.new.wrong.items() if case in self.old.cases}

    @property
    def code(self) -> int:
        """1 on a regression; 4 where something could not be compared or went wrong on the new side; 3 if unknown."""
        unable = bool(self.pairing.refused or self.wrong or not self.comparisons)
        return first_code(4 if unable else 0, *(_CODES[c.change] for c in self.comparisons))


def to_json(found: Compared) -> str:
    """Everything as strict JSON in base units."""
    data = {
        "old": _side(found.old), "new": _side(found.new), "how": HOW, "exit_code": found.code,
        "comparisons": [_plain(c) for c in found.comparisons],
        "refused": [vars(refused) for refused in found.pairing.refused],
        "only_old": found.pairing.only_old, "only_new": found.pairing.only_new, "wrong": found.wrong,
    }  # fmt: skip
    return json.dumps(data, allow_nan=False) + "\n"


def _side(side: Side) -> dict[str, Any]:
    return {"name": side.name, "runs": [dict(run) for run in side.runs], "notices": side.notices}


def _plain(c: Comparison) -> dict[str, Any]:
    ratio = {"value": c.ratio.value, "low": c.ratio.low, "high": c.ratio.high}
    clean = {key: None if x is None or math.isnan(x) else x for key, x in ratio.items()}
    return {**vars(c), "ratio": clean, "a12": None if math.isnan(c.a12) else c.a12}


def to_text(found: Compared, byte_rate: Unit = MB_PER_S) -> str:
    """The comparison as plain ASCII: what regressed first, then what improved, is unknown, or stayed the same."""
    parts = ["\n".join(_heading(found)), *_tables(found, byte_rate), *_rest(found)]
    return "\n\n".join(part for part in parts if part).encode("ascii", "backslashreplace").decode() + "\n"


def _heading(found: Compared) -> Iterator[str]:
    yield f"fabricbench compare: {found.old.name} (old) against {found.new.name} (new)"
    for label, side in (("old", found.old), ("new", found.new)):
        starts = ", ".join(str(run.get("started") or "start not recorded") for run in side.runs)
        yield bullet(f"{label}: {count(len(side.runs), 'run')} ({starts})")
        yield from (bullet(f"WARNING: {label}: {notice}") for notice in side.notices)
    yield from map(bullet, _systems(found))
    runs = len(found.old.runs)
    if runs < FEWEST_RUNS:
        yield bullet(
            f"The old side is {count(runs, 'run')}: how far runs lie apart by themselves is "
            f"{'not known' if runs == 1 else 'hardly known'}; a baseline of {FEWEST_RUNS} or more tells "
            "(fabricbench baseline)."
        )
    tally = Counter(c.change for c in found.comparisons)
    told = ", ".join(f"{tally[change]} {change}" for change in CHANGES if tally[change]) or "nothing compared"
    yield bullet(f"{count(len(found.comparisons), 'metric')}: {told}.")
    yield bullet(f"{HOW}; same: within it; ratio: new / old.")


def _systems(found: Compared) -> Iterator[str]:
    """What else differs between the sides, which may be what is compared, or what spoils it."""
    for name in _SYSTEM:
        old, new = ({str(run[name]) for run in side.runs if run.get(name)} for side in (found.old, found.new))
        if old and new and old != new:
            yield f"{name}: {', '.join(sorted(old))} (old), {', '.join(sorted(new))} (new)"


def _tables(found: Compared, byte_rate: Unit) -> Iterator[str]:
    by_change = grouped(found.comparisons, lambda c: c.change)
    heads = ["case", "metric", "old", "new", "unit", "ratio", "95 %", "margin", "launches"]
    aligns = ["left", "left", "right", "right", "left", "right", "right", "right", "right"]
    for change in CHANGES:
        if there := by_change.get(change):
            rows = [_row(c, byte_rate) for c in sorted(there, key=_far, reverse=True)]
            yield f"{change.capitalize()}: {len(there)}\n\n{table(heads, rows, aligns)}{_reasons(there)}"


def _reasons(there: Sequence[Comparison]) -> str:
    """Why metrics are unknown."""
    if there[0].change != "unknown":
        return ""
    told = grouped(there, lambda c: c.reason)
    lines = [bullet(f"{count(len(same), 'metric')}: {why}" if same[1:] else f"{same[0].where}, {same[0].metric}: {why}")
             for why, same in told.items()]  # fmt: skip
    return "\n\n" + "\n".join(lines)


def _far(c: Comparison) -> float:
    return 0.0 if math.isnan(c.ratio.value) or c.ratio.value <= 0 else abs(math.log(c.ratio.value))


def _row(c: Comparison, byte_rate: Unit) -> list[str]:
    unit = unit_for(c.unit, byte_rate)
    ends = "-" if c.ratio.low is None or c.ratio.high is None else f"[{c.ratio.low:.3f}, {c.ratio.high:.3f}]"
    ratio = "-" if math.isnan(c.ratio.value) else f"{c.ratio.value:.3f}"
    launches = " / ".join(map(str, c.launches))
    return [c.where, c.metric, unit.text(c.old), unit.text(c.new), unit.name, ratio, ends,
            f"{PERCENT.text(c.margin)} %", launches]  # fmt: skip


def _rest(found: Compared) -> Iterator[str]:
    """What is not compared."""
    refused = [bullet(f"{r.case}: {'; '.join(r.differences)}") for r in found.pairing.refused]
    if refused:
        yield "\n".join([f"Not compared, as they are not alike: {count(len(refused), 'case')}", *refused])
    if found.wrong:
        lines = [bullet(f"{case}: {why}") for case, why in found.wrong.items()]
        yield "\n".join([f"Went wrong in {found.new.name}: {count(len(lines), 'case')}", *lines])
    for name, only in ((found.old.name, found.pairing.only_old), (found.new.name, found.pairing.only_new)):
        told = [case for case in only if case not in found.wrong]
        if told:
            yield prose(f"Only in {name}: {count(len(told), 'case')}: {', '.join(told)}", "  ")
