"""What chapter 5 finds: where DPUs save time, where they cost it, and where they did nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from reports import cells
from reports.modes import NOT_USED, modes, offloaded, unused_launches
from reports.summary import Summary, basis
from reports.units import PERCENT, count, size
from reports.view import Finding, View

Judged = tuple[Summary, str]


def findings(v: View, shown: Sequence[Summary]) -> Iterator[Finding]:
    """One sentence on gains and losses, and one on offloads that hosts carried."""
    yield from _gains(v, shown)
    yield from _idle(v, shown)


def judged(v: View, s: Summary) -> list[str]:
    """The modes that DPUs carried, and that have a net gain over the hosts'."""
    return [m for m in modes(s.metrics) if offloaded(m) and s.value(f"{m}.net_gain") is not None
            and not unused_launches(v.launches(s), m)]  # fmt: skip


def _gains(v: View, shown: Sequence[Summary]) -> Iterator[Finding]:
    sides: dict[str, list[Judged]] = {"gains": [], "loses": [], "undecided": []}
    for s in shown:
        for mode in judged(v, s):
            sides[_side(s, f"{mode}.net_gain")].append((s, mode))
    pairs = [pair for found in sides.values() for pair in found]
    if not pairs:
        return
    cases = len({s.id for s, _ in pairs})
    of = count(cases, "case") if len(pairs) == cases else f"{len(pairs)} modes in {count(cases, 'case')}"
    told = [f"{name} in {len(found)}" for name, found in sides.items() if found]
    best, worst = (choose(pairs, key=_gain) for choose in (max, min))
    emulated = any(s.emulated or s.fabric in v.emulated for s, _ in pairs)
    text = f"{'EMULATED DPUs: ' if emulated else ''}of {of} offload {', '.join(told)}; best {_told(*best)}"
    values: dict[str, Any] = {name: len(found) for name, found in sides.items()}
    values |= {"best": best[0].id, "mode": best[1], "net_gain": _gain(best)}
    if worst != best and _gain(worst) < 0:
        text += f"; worst {_told(*worst)}"
        values |= {"worst": worst[0].id, "worst_mode": worst[1], "worst_net_gain": _gain(worst)}
    yield Finding(5, f"{text}.", values)


def _gain(pair: Judged) -> float:
    return pair[0].value(f"{pair[1]}.net_gain") or 0.0


def _told(s: Summary, mode: str) -> str:
    gain = f"{mode}.net_gain"
    operation = s.benchmark.partition("_")[2]
    what = f" {operation}" if operation != "allreduce" else ""
    where = f"{mode}{what} at {size(s.nbytes)} on {s.fabric}{f' ({s.workload})' if s.workload else ''}"
    which = f"{basis(s.spread[gain].launches)}, n {cells.samples(gain)(s)}"
    return f"{where}, net gain {cells.with_unit(s, gain, PERCENT)} against the best host mode ({which})"


def _side(s: Summary, name: str) -> str:
    ends = s.ends(name)
    if ends is None:
        return "undecided"
    return "gains" if ends[0] > 0 else "loses" if ends[1] < 0 else "undecided"


def _idle(v: View, shown: Sequence[Summary]) -> Iterator[Finding]:
    found = [(s, mode) for s in shown for mode in modes(s.metrics) if unused_launches(v.launches(s), mode)]
    if not found:
        return
    told = [f"{mode} at {size(s.nbytes)} on {s.fabric}" for s, mode in found]
    named = ", ".join(told[:3]) + (f" and {len(told) - 3} more" if len(told) > 3 else "")
    text = f"{NOT_USED}: the DPUs did not do all that {named} asked of them; no gain is judged there."
    yield Finding(5, text, {"kind": "offload not used", "cases": sorted({s.id for s, _ in found})})
