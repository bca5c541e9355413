"""Chapter 4: collectives, the library's own fabric beside fabric, then its algorithms side by side on each fabric."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median

from microbench.record import Record
from reports import cells, starts, tables
from reports.chapters import algorithms, costs
from reports.marks import marks
from reports.standing import Standing, of_comparisons
from reports.summary import Summary
from reports.units import PERCENT, US, Unit, count, size, time_unit, unit_for
from reports.variants import comparisons, label, own
from reports.view import (
    CFD,
    DPU,
    LOGGP,
    OFFLOAD,
    OVERLAP,
    POINT_TO_POINT,
    REDUCE_LOCAL,
    TRAINING,
    Chapter,
    Finding,
    View,
    alone,
    grouped,
    kind,
    number,
    setup,
)

TITLE = "Allreduce and other collectives"
START_HELP = (
    ("skew", "from the first rank's begin to the last one's: the median of iterations, and of records (one per size "
     "and launch)"),
    ("of time", f"its part of the time, at the size where that is largest; a note from {100 * starts.MOSTLY:.0f} % on"),
    ("no skew", "records that have none, as clocks moved too far"),
    ("bound", "worst record: how well one clock is known on another (half a round trip; 0: the same clock); gates "
     "nothing"),
    ("moved", "worst record: how far a clock was from where it was expected; where that is too much of the time, "
     "there is no skew"),
    ("in time", "worst record: iterations that every rank began in time. Where ranks start at an agreed time "
     f"(round-time), the others do not count, unless they are the most; a note below {100 * starts.FEW:.0f} %"),
)  # fmt: skip


def chapter(v: View) -> Chapter:
    """The chapter on collectives, and on any benchmark that no other chapter knows."""
    names = benchmarks(v)
    shown = sorted(v.of(*names), key=lambda s: (names.index(s.benchmark), s.ranks))
    if not shown:
        return Chapter(4, TITLE, (v.absent(*names) if names else v.absent("allreduce"),))
    compared, blocks = comparisons(shown), []
    elsewhere = {s.id for rows in compared for s in rows if not own(s)}
    beside = [s for s in shown if s.id not in elsewhere]
    for group in grouped(beside, setup).values():
        blocks += [_timed(v, group)] if any("time" in s.metrics for s in group) else [_any(v, group)]
    blocks += [*algorithms.blocks(v, compared), *costs.blocks(v)]
    blocks += [drawn] if (drawn := _starts(v, shown)) else []
    return Chapter(4, TITLE, tuple(blocks), (*_findings(beside), *algorithms.findings(v, compared)))


def beside_others(v: View) -> dict[str, Standing]:
    """How each case stands that a table sets beside others of its operation, by the summary's id."""
    return of_comparisons(v, comparisons(v.of(*benchmarks(v))))


def benchmarks(v: View) -> list[str]:
    """The run's collectives, allreduce first."""
    found = dict.fromkeys(s.benchmark for s in v.summaries)
    elsewhere = (*POINT_TO_POINT, LOGGP, REDUCE_LOCAL, TRAINING, CFD, DPU)
    mine = [b for b in found if b not in elsewhere and not b.startswith((OFFLOAD, OVERLAP))]
    return sorted(mine, key=lambda b: b != "allreduce")


def _timed(v: View, group: Sequence[Summary]) -> str:
    rated = any("busbw" in s.metrics for s in group)
    columns = [
        tables.Column("fabric", cells.fabric, "left"), *cells.interval_columns(group, "time", US, "time"),
        cells.spread("time"), tables.Column("p99 us (upper)", cells.upper("time_p99", US)),
        tables.Column(f"busbw {v.byte_rate.name}", cells.value("busbw", v.byte_rate) if rated else lambda _: ""),
        tables.Column("n", cells.samples("time")), cells.against(v, group, "time"), cells.notes(v),
    ]  # fmt: skip
    whose = "time as its suite tells it" if group[0].imported else "time of the slowest rank"
    title = f"{group[0].benchmark.replace('_', ' ').capitalize()}, {whose}"
    return cells.titled(title, group, ("time", "time_p99", "busbw"), tables.by_size(group, columns))


def _starts(v: View, shown: Sequence[Summary]) -> str:
    """How the ranks started together, a line per benchmark, fabric and method; empty where no record says."""
    told = [(s, r) for s in shown for r in v.launches(s) if "entry_skew" in r.metrics]
    if not told:
        return ""
    rows: list[list[str]] = []
    for (what, fabric, sync), same in grouped(told, lambda t: (kind(t[0]), t[0].fabric, starts.sync(t[1]))).items():
        named = any(row[0] == what for row in rows)
        rows.append(["" if named else what, fabric, sync, *_started(v, same)])
    heads = ["collective", "fabric", "start", "skew us", "of time %", "no skew", "bound us", "moved us", "in time %"]
    drawn = tables.table(heads, rows, [*["left"] * 3, *["right"] * 6])
    notes = [tables.prose(text) for text in (_order({row[2] for row in rows}), _why_none(told)) if text]
    return "\n\n".join(["How the ranks started together", drawn, tables.pairs(START_HELP), *notes])


def _started(v: View, same: Sequence[tuple[Summary, Record]]) -> list[str]:
    """The cells of one line, over sizes and launches."""
    skews = [x for _, r in same if (x := starts.skew(r)) is not None]
    shares = [x for s in {s.id: s for s, _ in same}.values() if (x := starts.usual_skew_share(v, s)) is not None]
    return [US.text(median(skews)) if skews else "n/a", PERCENT.text(max(shares)) if shares else "n/a",
            f"{len(same) - len(skews)} of {len(same)}",
            *(_worst(same, name, US, max) for name in ("clock_bound_s", "clock_discrepancy_s")),
            _worst(same, "valid_fraction", PERCENT, min)]  # fmt: skip


def _worst(same: Sequence[tuple[Summary, Record]], name: str, unit: Unit, worst: Callable[[list[float]], float]) -> str:
    found = [x for _, r in same if (x := number(r.method.get(name))) is not None]
    return unit.text(worst(found)) if found else "-"


def _order(methods: set[str]) -> str:
    """What a skew after a barrier means; empty where no ranks start after one."""
    if methods.isdisjoint(starts.BARRIERS):
        return ""
    return (
        "After a barrier ranks begin in the order in which it lets them go: skew up to a barrier's time is the "
        "barrier's own, and no rank's fault."
    )


def _why_none(told: Sequence[tuple[Summary, Record]]) -> str:
    """Why some records have no skew, with an example."""
    without = [(s, r) for s, r in told if starts.skew(r) is None]
    if not without:
        return ""
    s, r = without[0]
    launch = f" in launch {r.launch}" if s.attempted > 1 else ""
    where = " ".join(part for part in (kind(s), "" if s.nbytes is None else size(s.nbytes)) if part)
    return f"No skew, such as {where} on {s.fabric}{launch}: {r.metrics['entry_skew'].note.removeprefix('n/a: ')}."


def _any(v: View, group: Sequence[Summary]) -> str:
    """Every metric of a benchmark that has no time of its own."""
    rows = []
    counts = cells.launch_counts((s, name) for s in group for name in s.metrics)
    for s in group:
        for name, metric in s.metrics.items():
            unit = unit_for(metric.unit, v.byte_rate)
            number, inside = cells.value(name, unit)(s), cells.interval(name, unit, len(counts) > 1)(s)
            rows.append([size(s.nbytes), s.fabric, name, number, "" if metric.value is None else unit.name, inside,
                         cells.samples(name)(s), marks(v, s)])  # fmt: skip
    heads = ["size", "fabric", "metric", "value", "unit", "interval", "n", "notes"]
    drawn = tables.table(heads, rows, ["right", "left", "left", "right", "left", "right", "right", "left"])
    return cells.titled(group[0].benchmark, group, (), drawn or "No metric was recorded.", cells.based(counts))


def _findings(beside: Sequence[Summary]) -> Iterator[Finding]:
    """For each setup of allreduce, the fabrics at the largest size that they share; one rank alone reduces nothing."""
    for group in grouped((s for s in beside if s.benchmark == "allreduce" and not alone(s)), setup).values():
        sizes = [{s.nbytes for s in same} for same in grouped(group, lambda s: s.fabric).values()]
        shared = set.intersection(*sizes) - {None}
        if not shared:
            continue
        largest = max(n for n in shared if n is not None)
        last = [s for s in group if s.nbytes == largest and s.value("time") is not None]
        told = [f"{s.fabric} {cells.told(s, 'time', time_unit(s.value('time') or 0.0))}" for s in last]
        if told:
            s = last[0]
            by = ", ".join(part for part in (s.backend, "" if own(s) else label(s), s.dtype) if part)
            crowded = " OVERSUBSCRIBED" if any(x.oversubscribed for x in last) else ""
            text = f"allreduce of {size(largest)} on {count(s.ranks, 'rank')}{crowded} ({by}): {', '.join(told)}."
            yield Finding(4, text, {"nbytes": largest, "ranks": s.ranks, "backend": s.backend, "dtype": s.dtype,
                                    "time": {x.fabric: x.value("time") for x in last}})  # fmt: skip
