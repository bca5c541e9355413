"""Chapter 3: latency and bandwidth between two ranks, and the message rate of pairs, fabric beside fabric."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from reports import cells, tables
from reports.chapters import fits
from reports.marks import above_declared, marks
from reports.summary import Summary
from reports.units import BITS, GBIT_PER_S, GBIT_SHORT, MMSG_PER_S, US, Unit, count, size
from reports.view import MESSAGE_RATE, POINT_TO_POINT, Chapter, Finding, View, grouped, setup, ways

TITLES = {"latency": "Latency (half round trip)", "bandwidth": "Bandwidth, one way (uni)",
          "bibw": "Bandwidth, both ways at once, both counted (bi)",
          MESSAGE_RATE: "Message rate of all pairs at once"}  # fmt: skip
PAIRS = (
    "Message rate: half of the ranks send to the other half; messages of all pairs over the slowest rank's time. Over "
    "the make-span, from the first rank's start to the last one's end, late starts count too."
)


def chapter(v: View) -> Chapter:
    """The chapter on point to point."""
    shown = v.of(*POINT_TO_POINT)
    if not shown:
        return Chapter(3, "Point to point, fabric beside fabric", (v.absent(*POINT_TO_POINT),))
    drawn = {"latency": _latency, MESSAGE_RATE: _message_rate}
    blocks = [glance] if (glance := _glance(v, shown)) else []
    for benchmark in POINT_TO_POINT:
        for group in grouped(v.of(benchmark), setup).values():
            blocks.append(drawn.get(benchmark, _bandwidth)(v, group))
    blocks += [tables.prose(PAIRS)] if v.of(MESSAGE_RATE) else []
    blocks += fits.blocks(v)
    return Chapter(3, "Point to point, fabric beside fabric", tuple(blocks), tuple(_findings(v)))


def _latency(v: View, group: Sequence[Summary]) -> str:
    columns = [
        tables.Column("fabric", cells.fabric, "left"), *cells.interval_columns(group, "time", US, "latency"),
        cells.spread("time"), tables.Column("p99 us (upper)", cells.upper("time_p99", US)),
        tables.Column("n", cells.samples("time")), cells.against(v, group, "time"), cells.notes(v),
    ]  # fmt: skip
    return cells.titled(TITLES["latency"], group, ("time", "time_p99"), tables.by_size(group, columns))


def _bandwidth(v: View, group: Sequence[Summary]) -> str:
    columns = [
        tables.Column("fabric", cells.fabric, "left"), *cells.interval_columns(group, "bandwidth", v.byte_rate),
        cells.spread("bandwidth"),
        tables.Column("Gbit/s", cells.value("bandwidth", GBIT_PER_S)),
        tables.Column("of rate" if ways(group[0]) == 1 else "of 2x rate", lambda s: _share_text(v, s)),
        tables.Column("n", cells.samples("bandwidth")),
        cells.against(v, group, "bandwidth"), cells.notes(v),
    ]  # fmt: skip
    return cells.titled(TITLES[group[0].benchmark], group, ("bandwidth",), tables.by_size(group, columns))


def _message_rate(v: View, group: Sequence[Summary]) -> str:
    columns = [
        tables.Column("fabric", cells.fabric, "left"), *cells.interval_columns(group, MESSAGE_RATE, MMSG_PER_S),
        cells.spread(MESSAGE_RATE),
        tables.Column("make-span\nMmsg/s", cells.value("message_rate_makespan", MMSG_PER_S)),
        tables.Column(v.byte_rate.name, cells.value("bandwidth", v.byte_rate)),
        tables.Column("window us", cells.value("time", US)), tables.Column("n", cells.samples(MESSAGE_RATE)),
        cells.against(v, group, MESSAGE_RATE), cells.notes(v),
    ]  # fmt: skip
    named = (MESSAGE_RATE, "message_rate_makespan", "bandwidth")
    return cells.titled(TITLES[MESSAGE_RATE], group, named, tables.by_size(group, columns))


def share(v: View, s: Summary) -> float | None:
    """The measured bandwidth as a part of the declared rate, of twice that rate both ways."""
    declared, measured = v.rate(s.fabric), s.value("bandwidth")
    if not declared or measured is None:
        return None
    return measured * BITS / (declared * ways(s))


def _share_text(v: View, s: Summary) -> str:
    part = share(v, s)
    if part is not None:
        return f"{100 * part:.1f} %"
    return "-" if any(v.rate(name) for name in v.fabrics) else ""


def _largest(group: Sequence[Summary]) -> Summary | None:
    return max((s for s in group if s.value("bandwidth") is not None), key=lambda s: s.nbytes or 0, default=None)


def _smallest(group: Sequence[Summary], name: str = "time") -> Summary | None:
    """The 8-byte case, the field's habit; else the smallest that has a value."""
    timed = [s for s in group if s.value(name) is not None]
    return min(timed, key=lambda s: (s.nbytes != 8, s.nbytes or 0), default=None)


def _glance(v: View, shown: Sequence[Summary]) -> str:
    """Two ranks alone: of pairs, the number of ranks would have to be told with each number."""
    rows = []
    for name, group in grouped((s for s in shown if s.benchmark != MESSAGE_RATE), lambda s: s.fabric).items():
        fast = _smallest([s for s in group if s.benchmark == "latency"])
        wide = {b: _largest([s for s in group if s.benchmark == b]) for b in ("bandwidth", "bibw")}
        told = [s for s in (fast, *wide.values()) if s is not None]
        noted = dict.fromkeys(part for s in told for part in marks(v, s).split(", ") if part)
        rows.append([name, *_cell(fast, "time", US), *_cell(wide["bandwidth"], "bandwidth", GBIT_PER_S),
                     _share_text(v, wide["bandwidth"]) if wide["bandwidth"] else "-",
                     *_cell(wide["bibw"], "bandwidth", GBIT_PER_S)[:1], ", ".join(noted)])  # fmt: skip
    heads = ["fabric", "latency us", "at", "uni Gbit/s", "at", "of rate", "bi Gbit/s", "notes"]
    aligns = ["left", *["right"] * 6, "left"]
    heading = "At a glance: uni, one way; bi, both ways at once, both counted (intervals and n below)"
    return f"{heading}\n\n" + tables.table(heads, rows, aligns) if rows else ""


def _cell(s: Summary | None, name: str, unit: Unit) -> list[str]:
    return ["-", "-"] if s is None else [cells.value(name, unit)(s), size(s.nbytes)]


def _findings(v: View) -> Iterator[Finding]:
    for name, group in grouped(v.of(*POINT_TO_POINT), lambda s: s.fabric).items():
        fast = _smallest([s for s in group if s.benchmark == "latency"])
        wide = _largest([s for s in group if s.benchmark == "bandwidth"])
        told: list[str] = []
        values: dict[str, Any] = {"fabric": name}
        if wide is not None:
            part = share(v, wide)
            of = "" if part is None else f", {100 * part:.0f} % of its declared rate"
            told.append(f"{cells.told(wide, 'bandwidth', GBIT_SHORT)} at {size(wide.nbytes)}{of}")
            values |= {"bandwidth": wide.value("bandwidth"), "share": part, "nbytes": wide.nbytes}
        if fast is not None:
            told.append(f"{cells.told(fast, 'time', US)} at {size(fast.nbytes)}")
            values |= {"latency": fast.value("time"), "latency_nbytes": fast.nbytes}
        told += _told_pairs(group, values)
        if told:
            mark = " (EMULATED)" if name in v.emulated else ""
            flag = "; ABOVE the declared rate, see chapter 8" if wide and above_declared(v, wide) else ""
            yield Finding(3, f"{name}{mark}: {'; '.join(told)}{flag}.", values)


def _told_pairs(group: Sequence[Summary], values: dict[str, Any]) -> list[str]:
    """The message rate of small messages, by the most pairs that were measured."""
    rated = [s for s in group if s.benchmark == MESSAGE_RATE]
    many = max((s.ranks for s in rated), default=0)
    fast = _smallest([s for s in rated if s.ranks == many], MESSAGE_RATE)
    if fast is None:
        return []
    pairs = count(many // 2, "pair")
    values |= {"message_rate": fast.value(MESSAGE_RATE), "message_nbytes": fast.nbytes, "message_ranks": many}
    return [f"{cells.told(fast, MESSAGE_RATE, MMSG_PER_S)} at {size(fast.nbytes)}, {pairs}"]
