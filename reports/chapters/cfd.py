"""The flow in a box: a section of chapter 6, fabric beside fabric and mode beside mode, and its ratios in chapter 7."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from reports import cells, tables
from reports.beside import matches
from reports.chapters.matter import Row, pairs
from reports.marks import marks
from reports.modes import modes
from reports.ratios import side, unjudged
from reports.summary import Summary
from reports.units import MCELLS_PER_S, MS, PERCENT, PLAIN, count, times, volume
from reports.view import CFD, TRAINING, Chapter, Finding, View, alone, grouped, number, setup, setup_text

TRAINED, MATTERS = 6, 7  # the chapters that it is a part of
MODES = ("blocking", "overlapped", "probes")
BLOCKING = MODES[0]
HELP = (
    "A compressible flow in a box that all ranks share. Modes: blocking exchanges halos, then updates its cells; "
    "overlapped updates those that need no neighbour meanwhile; probes also tests its requests after every plane. "
    "silent: the same steps without messages. exposed: step - silent, and its part of the step: halos, the residual's "
    "allreduce, and waiting for others. Parts of a round are timed block by block in an order of its own."
)
SCALING = (
    "Against one rank: one has the whole grid, alone rank 0's share while the others sleep. speedup: one / step, and "
    "strong % is that over the ranks; weak %: cells/s of each rank over those of alone. What a step takes beyond one / "
    "ranks: shares (alone - that: uneven, and ghosts), together (silent - alone: what ranks take from each other by "
    "computing at once), messages (exposed)."
)


@dataclass(frozen=True)
class Loss:
    """What a mode's step takes beyond an equal part of one rank's, in s, by cause; negative where it gained."""

    ideal: float
    shares: float
    together: float
    messages: float

    @classmethod
    def of(cls, s: Summary, mode: str) -> Loss | None:
        """That of a summary, None where a part was not measured."""
        one, own, silent, step = (s.value(f"{part}.step") for part in ("one", "alone", "silent", mode))
        if one is None or own is None or silent is None or step is None:
            return None
        return cls(one / s.ranks, own - one / s.ranks, silent - own, step - silent)

    @property
    def causes(self) -> dict[str, float]:
        """By what, the largest first."""
        found = {"uneven shares and ghosts": self.shares, "ranks computing at once": self.together,
                 "communication": self.messages}  # fmt: skip
        return dict(sorted(found.items(), key=lambda item: -item[1]))


def joined(v: View, chapter: Chapter) -> Chapter:
    """A chapter with what is told there of the flow, where that was measured."""
    if chapter.number == TRAINED and any(s.benchmark == CFD for s in v.summaries):
        others = () if not any(s.benchmark == TRAINING for s in v.summaries) else chapter.blocks
        own, found = tuple(_blocks(v)), (*chapter.findings, *_findings(v))
        return replace(chapter, title=f"{chapter.title} and CFD", blocks=(*others, *own), findings=found)
    if chapter.number == MATTERS and (rows := list(_matter(v))):
        found = (*chapter.findings, *(_verdict(v, slow, fast, shown) for slow, fast, shown in rows))
        told = tuple(_ratios(slow, fast, shown) for slow, fast, shown in rows)
        return replace(chapter, blocks=(*chapter.blocks, *told), findings=found)
    return chapter


def _blocks(v: View) -> Iterator[str]:
    shown = v.of(CFD)
    if not shown:
        yield tables.prose(f"CFD. {v.absent(CFD)}")
        return
    yield tables.prose(f"CFD. {HELP}")
    for group in grouped(shown, setup).values():
        yield _modes(v, group)
        if any(Loss.of(s, _fastest(s)) for s in group):
            yield _scaling(group)


def _there(s: Summary) -> list[str]:
    return [mode for mode in MODES if mode in modes(s.metrics)]


def _modes(v: View, group: Sequence[Summary]) -> str:
    """A mode of a fabric a line: times."""
    names = [f"{mode}.step" for s in group for mode in _there(s)]
    counts = cells.launch_counts((s, name) for s in group for name in names)
    mixed, rows = len(counts) > 1, []
    for s in group:
        for place, mode in enumerate(_there(s)):
            rows.append([
                "" if place else s.fabric, mode, cells.together(f"{mode}.step", MS, mixed)(s),
                cells.together(f"{mode}.exposed", MS, mixed)(s),
                cells.together(f"{mode}.exposed_fraction", PERCENT, mixed)(s),
                cells.samples(f"{mode}.step")(s), "" if place else marks(v, s),
            ])  # fmt: skip
    heads = ["fabric", "mode", "step ms", "exposed ms", "exposed %", "n", "notes"]
    s = group[0]
    heading = f"{s.workload}: {setup_text(s)}{_halo(s)}. Intervals: {cells.based(counts or [s.launches])}"
    drawn = tables.table(heads, rows, ["left", "left", *["right"] * 4, "left"])
    return "\n\n".join([tables.prose(heading), drawn, _rates(group, mixed)])


def _rates(group: Sequence[Summary], mixed: bool) -> str:
    """The same lines: rates, and how they scale."""
    rows = []
    for s in group:
        for place, mode in enumerate(_there(s)):
            rows.append([
                "" if place else s.fabric, mode, cells.together(f"{mode}.cells_per_s", MCELLS_PER_S, mixed)(s),
                cells.value(f"{mode}.cells_per_s_core", MCELLS_PER_S)(s),
                cells.together(f"{mode}.speedup", PLAIN, mixed)(s), cells.value(f"{mode}.efficiency", PERCENT)(s),
                cells.value(f"{mode}.weak_efficiency", PERCENT)(s),
            ])  # fmt: skip
    heads = ["fabric", "mode", "Mcells/s", "per core", "speedup", "strong %", "weak %"]
    return tables.table(heads, rows, ["left", "left", *["right"] * 5])


def _halo(s: Summary) -> str:
    """How much a step sends."""
    sent, split = number(s.method.get("halo_bytes_busiest")), s.method.get("split")
    return f"; ranks {split} in x and y, halos of {volume(sent)} twice a step" if sent and split else ""


def _scaling(group: Sequence[Summary]) -> str:
    """A fabric a line, in its fastest mode: what a step takes, by cause."""
    rows = []
    for s in group:
        mode, loss = _fastest(s), Loss.of(s, _fastest(s))
        if loss is not None:
            parts = (loss.ideal, loss.shares, loss.together, loss.messages)
            rows.append([s.fabric, mode, *map(MS.text, parts), cells.value(f"{mode}.step", MS)(s)])
    heads = ["fabric", "mode", "one / ranks ms", "+ shares", "+ together", "+ messages", "= step"]
    return tables.prose(SCALING) + "\n\n" + tables.table(heads, rows, ["left", "left", *["right"] * 5])


def _fastest(s: Summary) -> str:
    return min(_there(s), key=lambda mode: s.value(f"{mode}.step") or float("inf"), default=BLOCKING)


def _findings(v: View) -> Iterator[Finding]:
    for s in v.of(CFD):
        if alone(s) or s.value(f"{BLOCKING}.exposed_fraction") is None:
            continue
        told = [f"{mode} {cells.with_unit(s, f'{mode}.exposed_fraction', PERCENT)}" for mode in _there(s)]
        mark = " (EMULATED)" if s.fabric in v.emulated else ""
        text = f"{s.workload} on {count(s.ranks, 'rank')}, {s.fabric}{mark}: communication, of the step: "
        values = {"fabric": s.fabric, "workload": s.workload, "exposed_fraction": {
            mode: s.value(f"{mode}.exposed_fraction") for mode in _there(s)}}  # fmt: skip
        yield Finding(TRAINED, text + ", ".join(told) + _scaled(s) + ".", values)


def _scaled(s: Summary) -> str:
    """``; 1.66 [1.60, 1.72] times one rank's speed, of 2: it loses most to communication, 9.7 ms a step``."""
    mode = _fastest(s)
    loss = Loss.of(s, mode)
    if loss is None:
        return ""
    cause, lost = next(iter(loss.causes.items()))
    speed = cells.together(f"{mode}.speedup", PLAIN)(s)
    why = f": most is lost to {cause}, {MS.text(lost)} ms of a step of {MS.text(s.value(f'{mode}.step') or 0.0)}"
    return f"; {mode} {speed} times one rank's speed, of {s.ranks}" + (why if lost > 0 else "")


def _matter(v: View) -> Iterator[tuple[str, str, list[Row]]]:
    """By a slower and a faster network the rows of each flow that ran on both."""
    for slow, fast in pairs(v):
        for a, b in matches(v, CFD, slow, fast):
            rows = [
                Row(f"{mode} {label}", a, b, f"{mode}.{name}", unit)
                for mode in _there(a) if mode in _there(b)
                for name, label, unit in (("step", "step ms", MS), ("exposed", "exposed ms", MS),
                                          ("exposed_fraction", "exposed %", PERCENT))
            ]  # fmt: skip
            rows.append(Row("silent step ms (control)", a, b, "silent.step", MS))
            yield slow, fast, [row for row in rows if row.metric in a.metrics and row.metric in b.metrics]


def _ratios(slow: str, fast: str, rows: Sequence[Row]) -> str:
    s = rows[0].slow
    counts = cells.launch_counts((s, row.metric) for row in rows for s in (row.slow, row.fast))
    based = f"; intervals: {cells.based(counts)}" if counts else ""
    drawn = tables.table(
        ["", slow, fast, "ratio", "interval", "n"], [row.cells(len(counts) > 1) for row in rows],
        ["left", *["right"] * 5],
    )  # fmt: skip
    heading = f"cfd, {s.workload}: {setup_text(s)}; ratio above 1: {fast} is faster{based}"
    return tables.prose(heading) + "\n\n" + drawn


def _verdict(v: View, slow: str, fast: str, rows: Sequence[Row]) -> Finding:
    """Whether the slower fabric's communication is longer, and more of the step, mode by mode."""
    s = rows[0].slow
    said = {mode: _said(rows[0], mode) for mode in _there(s) if mode in _there(rows[0].fast)}
    steps = {mode: row.ratio for row in rows for mode in said if row.metric == f"{mode}.step"}
    told = [
        f"{mode}: {text} (step {times(ratio.value) + ' ' + ratio.interval if (ratio := steps.get(mode)) else '-'})"
        for mode, text in said.items()
    ]
    mark = " (EMULATED)" if slow in v.emulated or fast in v.emulated else ""
    text = f"cfd, {s.workload}, {slow} against {fast}{mark}: {'; '.join(told)}."
    values = {"slow": slow, "fast": fast, "workload": s.workload, "verdicts": said}
    return Finding(MATTERS, text, values, short=(slow, fast) == (v.networks[0], v.networks[-1]))


def _said(row: Row, mode: str) -> str:
    exposed, share = (f"{mode}.{name}" for name in ("exposed", "exposed_fraction"))
    if why := unjudged(row.slow, row.fast, exposed) or unjudged(row.slow, row.fast, share):
        return f"NO CONCLUSION, {why}"
    sides = [side(row.slow, row.fast, name) for name in (exposed, share)]
    if sides == [1, 1]:
        return "THE SLOWER FABRIC COSTS TIME"
    if 1 in sides:
        return "THE SLOWER FABRIC MAY COST TIME"
    return "THE SLOWER FABRIC COSTS LESS, which it cannot by itself" if -1 in sides else "NO DIFFERENCE SHOWS"
