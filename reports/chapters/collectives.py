"""Chapter 4: collectives, fabric beside fabric, a table per benchmark and number of ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median

from reports import cells, tables
from reports.summary import Summary
from reports.units import PERCENT, US, Unit, count, size, time_unit, unit_for
from reports.view import OFFLOAD, POINT_TO_POINT, TRAINING, Chapter, Finding, View, grouped, marks, number, setup

TITLE = "Allreduce and other collectives"


def chapter(v: View) -> Chapter:
    """The chapter on collectives, and on any benchmark that no other chapter knows."""
    names = benchmarks(v)
    shown = sorted(v.of(*names), key=lambda s: (names.index(s.benchmark), s.ranks))
    if not shown:
        return Chapter(4, TITLE, (v.absent(*names) if names else v.absent("allreduce"),))
    blocks = []
    for group in grouped(shown, setup).values():
        blocks += [_timed(v, group)] if any("time" in s.metrics for s in group) else [_any(v, group)]
        blocks += [drawn] if (drawn := _starts(group)) else []
    return Chapter(4, TITLE, tuple(blocks), tuple(_findings(v)))


def benchmarks(v: View) -> list[str]:
    """The run's collectives, allreduce first."""
    found = dict.fromkeys(s.benchmark for s in v.summaries)
    mine = [b for b in found if b not in (*POINT_TO_POINT, TRAINING) and not b.startswith(OFFLOAD)]
    return sorted(mine, key=lambda b: b != "allreduce")


def _timed(v: View, group: Sequence[Summary]) -> str:
    rated = any("busbw" in s.metrics for s in group)
    columns = [
        tables.Column("fabric", cells.fabric, "left"), *cells.interval_columns(group, "time", US, "time"),
        cells.spread("time"), tables.Column("p99 us (upper)", cells.upper("time_p99", US)),
        tables.Column(f"busbw {v.byte_rate.name}", cells.value("busbw", v.byte_rate) if rated else lambda _: ""),
        tables.Column("n", cells.samples("time")), cells.against(v, group, "time"), cells.notes(v),
    ]  # fmt: skip
    title = f"{group[0].benchmark.replace('_', ' ').capitalize()}, time of the slowest rank"
    return cells.titled(title, group, ("time", "time_p99", "busbw"), tables.by_size(group, columns))


def _starts(group: Sequence[Summary]) -> str:
    """How the ranks started together, per fabric and method; empty where no record says."""
    told = [s for s in group if "entry_skew" in s.metrics]
    rows = []
    for (fabric, sync), same in grouped(told, lambda s: (s.fabric, str(s.method.get("sync", "-")))).items():
        skews = [x for s in same if (x := s.value("entry_skew")) is not None]
        rows.append([
            fabric, sync, US.text(median(skews)) if skews else "n/a", f"{len(skews)} of {len(same)}",
            *(_worst(same, name, US, max) for name in ("clock_bound_s", "clock_discrepancy_s")),
            _worst(same, "valid_fraction", PERCENT, min),
        ])  # fmt: skip
    heads = ["fabric", "start", "entry skew us", "sizes with one", "clock bound us", "clocks moved us", "valid %"]
    drawn = tables.table(heads, rows, ["left", "left", *["right"] * 5])
    reasons = [tables.prose(text) for text in [_why_none(told)] if text]
    return "\n\n".join([f"How the ranks of {group[0].benchmark} started", drawn, *reasons]) if rows else ""


def _worst(group: Sequence[Summary], name: str, unit: Unit, worst: Callable[[list[float]], float]) -> str:
    found = [x for s in group if (x := number(s.method.get(name))) is not None]
    return unit.text(worst(found)) if found else "-"


def _why_none(group: Sequence[Summary]) -> str:
    """Why some sizes have no skew, with an example."""
    absent = [s for s in group if s.value("entry_skew") is None]
    if not absent:
        return ""
    s = absent[0]
    return f"Entry skew, such as {size(s.nbytes)} on {s.fabric}: {s.metrics['entry_skew'].note}."


def _any(v: View, group: Sequence[Summary]) -> str:
    """Every metric of a benchmark that has no time of its own."""
    rows = []
    for s in group:
        for name, metric in s.metrics.items():
            unit = unit_for(metric.unit, v.byte_rate)
            number, inside = cells.value(name, unit)(s), cells.interval(name, unit, mixed=True)(s)
            rows.append([size(s.nbytes), s.fabric, name, number, unit.name, inside, cells.samples(name)(s),
                         marks(v, s)])  # fmt: skip
    heads = ["size", "fabric", "metric", "value", "unit", "interval", "n", "notes"]
    drawn = tables.table(heads, rows, ["right", "left", "left", "right", "left", "right", "right", "left"])
    return cells.titled(group[0].benchmark, group, (), drawn or "No metric was recorded.")


def _findings(v: View) -> Iterator[Finding]:
    """For each setup of allreduce, the fabrics at the largest size that they share."""
    for group in grouped(v.of("allreduce"), setup).values():
        sizes = [{s.nbytes for s in same} for same in grouped(group, lambda s: s.fabric).values()]
        shared = set.intersection(*sizes) - {None}
        if not shared:
            continue
        largest = max(n for n in shared if n is not None)
        last = [s for s in group if s.nbytes == largest and s.value("time") is not None]
        told = [f"{s.fabric} {cells.told(s, 'time', time_unit(s.value('time') or 0.0))}" for s in last]
        if told:
            s = last[0]
            by = ", ".join(part for part in (s.backend, s.dtype) if part)
            text = f"allreduce of {size(largest)} on {count(s.ranks, 'rank')} ({by}): {', '.join(told)}."
            yield Finding(4, text, {"nbytes": largest, "ranks": s.ranks, "backend": s.backend, "dtype": s.dtype,
                                    "time": {x.fabric: x.value("time") for x in last}})  # fmt: skip
