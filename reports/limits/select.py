"""Which cases of a run a criterion judges, and which it selects and leaves out, with the reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from reports.chapters.missing import Planned, unrecorded
from reports.limits.model import EMULATED, LINE_RATE, NOT, OVERSUBSCRIBED, UNPROVED, Criterion, LeftOut, Selector
from reports.marks import unproved
from reports.summary import WRONG, Summary
from reports.variants import own
from reports.view import CFD, DPU, OFFLOAD, OVERLAP, TRAINING, View

KIND = "kind"
_WAYS = ("algorithm", "backend", "mode")
_LEFT_OUT = ("unsupported", "skipped")


@dataclass(frozen=True)
class Selected:
    """The cases that are judged, those that should have been and have no number, and those left out."""

    judged: tuple[Summary, ...]
    absent: tuple[tuple[str, str], ...]
    left_out: tuple[LeftOut, ...]


def select(v: View, criterion: Criterion) -> Selected:
    """The cases of a run by what a criterion does with them; ``absent`` pairs a case with why it has no number."""
    judged, absent, left_out = [], [], []
    for s in v.summaries:
        if not selects(v, criterion.selector, s):
            continue
        if s.status in _LEFT_OUT:
            left_out.append(LeftOut(s.id, f"{s.status}: {s.reason}"))
        elif criterion.reference == LINE_RATE and v.inside_a_host(s.fabric):
            left_out.append(LeftOut(s.id, f"{s.fabric} is inside a host: it has no line"))
        elif why := not_asked_for(v, s, criterion.judge):
            left_out.append(LeftOut(s.id, f"{why}: judged only where limits ask for it"))
        elif s.status != "ok":
            absent.append((s.id, f"{s.status}: {s.reason}"))
        elif s.proof == "disproved":
            absent.append((s.id, "its bytes left the fabric (disproved)"))
        else:
            judged.append(s)
    absent += _never(v, criterion.selector)
    return Selected(tuple(judged), tuple(absent), tuple(left_out))


def selects(v: View, selector: Selector, s: Summary) -> bool:
    """Whether a selector means a case. Where no way of calling is named, only the usual one is meant."""
    if not any(name in selector.names for name in _WAYS) and not _usual(s):
        return False
    named = all(_matches([_field(v, s, name)], patterns) for name, patterns in selector.names.items())
    return named and _sized(selector, s.nbytes) and (not selector.ranks or any(s.ranks in r for r in selector.ranks))


def not_asked_for(v: View, s: Summary, judge: frozenset[str]) -> str:
    """Why a case is judged only where limits ask for it, and they do not; else nothing."""
    marks = ((EMULATED, s.emulated or s.fabric in v.emulated), (OVERSUBSCRIBED, s.oversubscribed),
             (UNPROVED, s.status == "ok" and unproved(s)))  # fmt: skip
    return ", ".join(mark for mark, given in marks if given and mark not in judge)


def gone_wrong(v: View, s: Summary) -> str:
    """What went wrong in launches of a case that others measured: a number beside it is no pass."""
    bad = [
        r for r in v.records if r.id == s.id and (r.status in WRONG or (r.status == "ok" and r.proof == "disproved"))
    ]
    told = (f"launch {r.launch} {'disproved' if r.status == 'ok' else f'{r.status}: {r.reason}'}" for r in bad)
    return "; ".join(told)


def _usual(s: Summary) -> bool:
    """Whether it is called the usual way, or there is none."""
    return own(s) or s.benchmark in (TRAINING, CFD, DPU) or s.benchmark.startswith((OFFLOAD, OVERLAP))


def _field(v: View, s: Summary, name: str) -> str:
    found: Any = v.fabrics.get(s.fabric, {}).get("kind") if name == KIND else getattr(s, name)
    return str(found or "")


def _matches(values: Sequence[str], patterns: tuple[str, ...]) -> bool:
    """Whether one of the values is meant, and none is what a pattern with a ``!`` leaves out."""
    wanted = [pattern for pattern in patterns if not pattern.startswith(NOT)] or ["*"]
    unwanted = [pattern.removeprefix(NOT) for pattern in patterns if pattern.startswith(NOT)]
    found = any(fnmatchcase(value, pattern) for value in values for pattern in wanted)
    return found and not any(fnmatchcase(value, pattern) for value in values for pattern in unwanted)


def _sized(selector: Selector, nbytes: int | None) -> bool:
    return not selector.sizes or (nbytes is not None and any(nbytes in sizes for sizes in selector.sizes))


def _never(v: View, selector: Selector) -> Iterator[tuple[str, str]]:
    """The planned cases that a selector means and the disk has in no launch."""
    known = {s.id for s in v.summaries}
    for case in dict.fromkeys(p.case for p in unrecorded(v) if p.case not in known and _means(v, selector, p)):
        yield case, "planned, but there is no record of it"


def _means(v: View, selector: Selector, p: Planned) -> bool:
    """Whether a selector means a planned case, as far as its name tells."""
    parts = p.case.split("/")
    own_kind = str(v.fabrics.get(p.fabric, {}).get("kind") or "")
    told = {"benchmark": [p.benchmark], "fabric": [p.fabric], KIND: [own_kind]}
    named = all(_matches(told.get(name, [*parts, ""]), patterns) for name, patterns in selector.names.items())
    ranks = next((int(part[:-1]) for part in reversed(parts) if part.endswith("r") and part[:-1].isdigit()), 0)
    return named and _sized(selector, p.nbytes) and (not selector.ranks or any(ranks in r for r in selector.ranks))
