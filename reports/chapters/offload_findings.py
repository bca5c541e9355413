"""What chapter 5 finds: where DPUs save time, where they cost it, and where they did nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from reports import cells
from reports.claims import DISTURBED, GAINS, LOSES, NOT_JUDGED, UNDECIDED, Claim, Trial, not_dpus
from reports.modes import NOT_USED, modes, offloaded, unused_launches
from reports.summary import Summary, basis
from reports.units import PERCENT, count, size
from reports.view import Finding, View, grouped


@dataclass(frozen=True)
class Judged:
    """A mode of a case with what is claimed of it."""

    s: Summary
    mode: str
    trial: Trial
    claim: Claim


def findings(v: View, shown: Sequence[Summary]) -> Iterator[Finding]:
    """One sentence on gains and losses, one on offloads that hosts carried, and one on DPUs that are none."""
    yield from _gains(v, shown)
    yield from _idle(v, shown)
    yield from _shared(v, shown)


def _gains(v: View, shown: Sequence[Summary]) -> Iterator[Finding]:
    found = [Judged(s, mode, trial, claim) for s in shown for trial in (Trial.of(v, s),) for mode in modes(s.metrics)
             if offloaded(mode) and (claim := trial.claim(mode)).side != NOT_JUDGED]  # fmt: skip
    if not found:
        return
    cases = len({one.s.id for one in found})
    of = count(cases, "case") if len(found) == cases else f"{len(found)} modes in {count(cases, 'case')}"
    sides = {side: [one for one in found if one.claim.side == side] for side in (GAINS, LOSES, UNDECIDED)}
    told = [f"{side} in {len(ones)}{_reasons(ones)}" for side, ones in sides.items() if ones]
    sound = [one for one in found if not one.claim.why] or found
    best, worst = max(sides[GAINS] or sound, key=_gain), min(sides[LOSES] or sound, key=_gain)
    emulated = any(one.s.emulated or one.s.fabric in v.emulated for one in found)
    text = f"{'EMULATED DPUs: ' if emulated else ''}of {of} offload {', '.join(told)}; best {_told(best)}"
    values: dict[str, Any] = {side: len(ones) for side, ones in sides.items()}
    values |= {"best": best.s.id, "mode": best.mode, "net_gain": _gain(best), "side": best.claim.side,
               "ceiling": best.trial.ceiling, "why": best.claim.why}  # fmt: skip
    if worst != best and _gain(worst) < 0:
        text += f"; worst {_told(worst)}"
        values |= {"worst": worst.s.id, "worst_mode": worst.mode, "worst_net_gain": _gain(worst)}
    yield Finding(5, f"{text}.", values)


def _reasons(found: Sequence[Judged]) -> str:
    """Why so many are undecided whatever their interval says."""
    told = [f"{text} in {len(ones)}" for text, ones in grouped(found, _short).items() if text]
    return f" ({'; '.join(told)})" if told else ""


def _short(one: Judged) -> str:
    return one.claim.why.partition(":")[0] if one.claim.why.startswith(DISTURBED) else one.claim.why


def _gain(one: Judged) -> float:
    return one.s.value(f"{one.mode}.net_gain") or 0.0


def _told(one: Judged) -> str:
    s, gain, ceiling = one.s, f"{one.mode}.net_gain", one.trial.ceiling
    operation = s.benchmark.partition("_")[2]
    what = f" {operation}" if operation != "allreduce" else ""
    where = f"{one.mode}{what} at {size(s.nbytes)} on {s.fabric}{f' ({s.workload})' if s.workload else ''}"
    why = f", undecided: {one.claim.why}" if one.claim.why.startswith(DISTURBED) else ""
    most = f" of at most {PERCENT.text(ceiling)} %" if ceiling is not None and _gain(one) > 0 else ""
    which = "; ".join(filter(None, (one.trial.absent, f"{basis(s.spread[gain].launches)}, n {cells.samples(gain)(s)}")))
    return f"{where}{why}, net gain {cells.with_unit(s, gain, PERCENT)}{most} {one.trial.against} ({which})"


def _idle(v: View, shown: Sequence[Summary]) -> Iterator[Finding]:
    found = [(s, mode) for s in shown for mode in modes(s.metrics) if unused_launches(v.launches(s), mode)]
    if not found:
        return
    told = [f"{mode} at {size(s.nbytes)} on {s.fabric}" for s, mode in found]
    named = ", ".join(told[:3]) + (f" and {len(told) - 3} more" if len(told) > 3 else "")
    text = f"{NOT_USED}: the DPUs did not do all that {named} asked of them; no gain is judged there."
    yield Finding(5, text, {"kind": "offload not used", "cases": sorted({s.id for s, _ in found})})


def _shared(v: View, shown: Sequence[Summary]) -> Iterator[Finding]:
    for why, cases in grouped(shown, lambda s: not_dpus(v.launches(s))).items():
        if why:
            yield Finding(
                5, f"{why}; no gain is judged there.", {"kind": "no DPU", "cases": sorted(s.id for s in cases)}
            )
