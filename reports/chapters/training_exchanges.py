"""Chapter 6, several ways of exchanging gradients: all at a glance, how each was done, and which step is shorter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from reports import cells, tables
from reports.exchanges import buckets, exchanges, first, metric_name, told
from reports.ratios import Ratio, within
from reports.summary import LAUNCHES_FOR_INTERVAL, Summary
from reports.units import MS, PER_S, PERCENT, count, times, volume
from reports.view import Finding, View


def glance(v: View, group: Sequence[Summary], noted: Callable[[View, Summary], str]) -> str:
    """A line for each fabric and exchange; ``noted`` has what must be read beside a case."""
    pairs = [(s, mode) for s in group for mode in exchanges(s)]
    counts = cells.launch_counts((s, metric_name(mode, "exposed")) for s, mode in pairs)
    rows = [[*_row(v, s, mode, len(counts) > 1), noted(v, s)] for s, mode in pairs]
    heads = ["fabric", "exchange", "step ms", "images/s", "exposed ms", "exposed\n%", "step over\nthe first's", "notes"]
    legend = f"Intervals: {cells.based(counts)}. " if counts else ""
    how = "The last ratio is of the same launches, in which exchanges take turns: below 1 is shorter."
    return tables.table(heads, rows, ["left", "left", *["right"] * 5, "left"]) + "\n\n" + tables.prose(f"{legend}{how}")


def _row(v: View, s: Summary, mode: str, mixed: bool) -> list[str]:
    names = {part: metric_name(mode, part) for part in ("step", "images_per_s", "exposed", "exposed_fraction")}
    found = step_ratio(v, s, mode)
    return [
        s.fabric if mode == first(s) else "", mode, cells.value(names["step"], MS)(s),
        cells.value(names["images_per_s"], PER_S)(s), cells.together(names["exposed"], MS, mixed)(s),
        cells.value(names["exposed_fraction"], PERCENT)(s), _told(found) if found else "",
    ]  # fmt: skip


def step_ratio(v: View, s: Summary, mode: str) -> Ratio | None:
    """An exchange's step over that of the first, within launches; None of the first itself."""
    if mode == first(s):
        return None
    return within(s, v.launches(s), metric_name(mode, "step"), metric_name(first(s), "step"))


def _told(ratio: Ratio) -> str:
    return ratio.text if ratio.low is not None else f"{times(ratio.value)} (no interval)"


def ways(s: Summary) -> list[str]:
    """How each exchange was done: its call, its buckets, what completes it."""
    lines = []
    for mode in exchanges(s):
        own = buckets(s, mode)
        sizes = f"{count(len(own), 'bucket')}, {volume(sum(own))} in all" if own else ""
        fusion = told(s, mode, "fusion")
        known = [told(s, mode, "call"), ": ".join(filter(None, (fusion, sizes))),
                 f"completed by {by}" if (by := told(s, mode, "completes")) else ""]  # fmt: skip
        if any(known):
            lines.append(tables.bullet(f"{mode}: {'; '.join(filter(None, known))}"))
    return ["\n".join(lines)] if lines else []


def findings(v: View, group: Sequence[Summary]) -> Iterator[Finding]:
    """Of each fabric, the other exchanges' steps over the first's, and whether an interval tells them apart."""
    parts: list[str] = []
    values: dict[str, Any] = {}
    for s in group:
        found = {mode: ratio for mode in exchanges(s) if (ratio := step_ratio(v, s, mode)) is not None}
        if found:
            mark = " (EMULATED)" if s.fabric in v.emulated else ""
            parts.append(f"{s.fabric}{mark} " + ", ".join(f"{m} {_told(r)}{_verdict(r)}" for m, r in found.items()))
            values[s.fabric] = {mode: vars(ratio) for mode, ratio in found.items()}
    if parts:
        s = group[0]
        rests = dict.fromkeys(r["basis"] for each in values.values() for r in each.values())
        text = f"{s.workload}: steps over those by {first(s)}, {' and '.join(rests)}: {'; '.join(parts)}."
        yield Finding(6, text, {"workload": s.workload, "first": first(s), "step_ratio": values})


def _verdict(ratio: Ratio) -> str:
    if ratio.low is None:
        return ""
    if not ratio.judged:
        return f" (no verdict below {LAUNCHES_FOR_INTERVAL} launches)"
    if not ratio.beyond_one:
        return " (not told apart)"
    return " (shorter)" if ratio.value < 1 else " (LONGER)"
