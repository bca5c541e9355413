"""Chapter 7: does the fabric matter? Microbenchmark ratios beside ratios of training time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from reports import beside, cells, tables
from reports.beside import Match
from reports.chapters import matter_models, prediction
from reports.chapters.matter_verdict import Trained
from reports.exchanges import exchanges, first, gradient_bytes, metric_name
from reports.ratios import HOW, Ratio, speed
from reports.summary import LAUNCHES_FOR_INTERVAL, Summary
from reports.units import GBIT_PER_S, MS, PERCENT, US, Unit, count, rate, size, times, volume
from reports.view import TRAINING, Chapter, Finding, View, setup, setup_text

TITLE = "Does the fabric matter?"
QUANTITIES = (("step", "step ms", MS), ("step_noop", "no-op step ms (control)", MS), ("exposed", "exposed ms", MS),
              ("exposed_fraction", "exposed %", PERCENT))  # fmt: skip
HELP = (
    f"Ratios are above 1 where the faster network is better; interval: {HOW}. The no-op step sends "
    "nothing: its ratio shows what is not the fabric's doing. A verdict takes the interval within one launch, or "
    f"{LAUNCHES_FOR_INTERVAL} launches: the ranges of fewer lie apart by chance too often."
)


@dataclass(frozen=True)
class Row:
    """One quantity on both fabrics; ``ratio`` is above 1 where the faster fabric is better."""

    label: str
    slow: Summary
    fast: Summary
    metric: str
    unit: Unit

    @property
    def ratio(self) -> Ratio | None:
        """The ratio of medians, or None where it means nothing."""
        return speed(self.fast, self.slow, self.metric)

    def cells(self, mixed: bool = False) -> list[str]:
        """The row as text; ``mixed`` marks each interval with its basis."""
        both = [cells.together(self.metric, self.unit, mixed)(s) for s in (self.slow, self.fast)]
        n = dict.fromkeys(cells.samples(self.metric)(s) for s in (self.slow, self.fast))
        told = self.ratio is not None and self.ratio.low is not None
        return [self.label, *both, times(self.ratio.value) if self.ratio and told else "-",
                self.ratio.interval if self.ratio else "", ", ".join(n)]  # fmt: skip


def chapter(v: View) -> Chapter:
    """The chapter that sets network against network."""
    found = pairs(v)
    if not found:
        there = ", ".join(v.networks) or "none"
        text = f"Nothing to show: it takes two networks with published numbers; there is: {there}."
        return Chapter(7, TITLE, (tables.prose(text), *prediction.blocks(v)), tuple(prediction.findings(v)))
    blocks = [tables.prose(HELP), *matter_models.glance(v)]
    findings: list[Finding] = []
    for slow, fast in found:
        blocks += _blocks(v, slow, fast)
        findings += _findings(v, slow, fast)
    return Chapter(7, TITLE, (*blocks, *prediction.blocks(v)), (*findings, *prediction.findings(v)))


def pairs(v: View) -> list[tuple[str, str]]:
    """(slower, faster) networks, those of one lab first."""

    def lab(name: str) -> str:
        return str(v.fabrics[name].get("lab") or "")

    found = list(combinations(v.networks, 2))
    return sorted(found, key=lambda p: not lab(p[0]) or lab(p[0]) != lab(p[1]))


def _micro(v: View, slow: str, fast: str) -> list[Row]:
    rows = []
    if found := beside.latency(v, slow, fast):
        rows.append(Row(f"latency us, {size(found[0].nbytes)}", *found, "time", US))
    if found := beside.stream(v, slow, fast):
        rows.append(Row(f"bandwidth uni Gbit/s, {size(found[0].nbytes)}", *found, "bandwidth", GBIT_PER_S))
    return rows


def _allreduce(v: View, slow: str, fast: str, train: Summary | None) -> Row | None:
    found = beside.allreduce(v, slow, fast, train, first(train) if train else "")
    return Row(f"allreduce ms, {size(found[0].nbytes)}", *found, "time", MS) if found else None


def _training(v: View, slow: str, fast: str) -> Iterator[tuple[Match, list[Row]]]:
    for a, b in beside.matches(v, TRAINING, slow, fast):
        allreduce = _allreduce(v, slow, fast, a)
        rows = [
            Row(label, a, b, name, unit)
            for name, label, unit in _quantities(exchanges(a))
            if name in a.metrics and name in b.metrics
        ]
        yield (a, b), [*([allreduce] if allreduce else []), *rows]


def _quantities(modes: Sequence[str]) -> list[tuple[str, str, Unit]]:
    """What is compared of a model: of the first of several exchanges under its plain names, then of each other."""
    if len(modes) == 1:
        return list(QUANTITIES)
    own = [q for q in QUANTITIES if q[0] != "step_noop"]
    named = [(name, label if name == "step_noop" else f"{label}, {modes[0]}", unit) for name, label, unit in QUANTITIES]
    return named + [
        (metric_name(mode, name), f"{label}, {mode}", unit) for mode in modes[1:] for name, label, unit in own
    ]


def _blocks(v: View, slow: str, fast: str) -> list[str]:
    head = f"{_names(v, slow, fast)}; ratio above 1: {fast} is faster"
    micro = _micro(v, slow, fast)
    trained = list(_training(v, slow, fast))
    if not trained:
        found = _allreduce(v, slow, fast, None)
        micro += [found] if found else []
    blocks = [_headed(head, micro, slow, fast) or tables.prose(head) + "\n\nNo microbenchmark ran on both."]
    for (s, _), rows in trained:
        blocks.append(_headed(f"{s.workload or 'training'}: {setup_text(s)}; {_beside(s, rows)}", rows, slow, fast))
    return blocks if trained else [*blocks, "No training ran on both."]


def _beside(train: Summary, rows: Sequence[Row]) -> str:
    """How the allreduce beside a training step was chosen, and whose it is."""
    told = gradient_bytes(train)
    what = f"gradients {volume(told)}" if told else "size of the gradients not recorded"
    row = next((row for row in rows if row.slow.benchmark == "allreduce"), None)
    if row is None:
        return f"{what}; no allreduce ran on both"
    which = "the nearest" if told else "the largest"
    return f"{what}; allreduce: {which} measured, {row.slow.backend} on {count(row.slow.ranks, 'rank')}"


def _headed(head: str, rows: Sequence[Row], slow: str, fast: str) -> str:
    """The rows under a heading that says what their intervals rest on; empty without rows."""
    if not rows:
        return ""
    counts = cells.launch_counts((s, row.metric) for row in rows for s in (row.slow, row.fast))
    told = f"; intervals: {cells.based(counts)}" if counts else ""
    body = [row.cells(len(counts) > 1) for row in rows]
    drawn = tables.table(["", slow, fast, "ratio", "interval", "n"], body, ["left", *["right"] * 5])
    return tables.prose(head + told) + "\n\n" + drawn


def _names(v: View, slow: str, fast: str) -> str:
    rates = f"{rate(v.rate(slow))} against {rate(v.rate(fast))}"
    mark = ", EMULATED" if slow in v.emulated or fast in v.emulated else ""
    return f"{slow} against {fast} ({rates}{mark})"


def _findings(v: View, slow: str, fast: str) -> Iterator[Finding]:
    names, micro = _names(v, slow, fast), _micro(v, slow, fast)
    trained = list(_training(v, slow, fast))
    for match, rows in trained:
        yield from _finding(v, match, [*micro, *rows], names)
    found = None if trained else _allreduce(v, slow, fast, None)
    micro += [found] if found else []
    if not trained and micro:
        text = f"{names}: {_told(micro)}no training was measured on both, so nothing is said of training time."
        yield Finding(7, text, {"slow": slow, "fast": fast} | _numbers(micro))


def _finding(v: View, match: Match, rows: Sequence[Row], names: str) -> Iterator[Finding]:
    """One sentence of a model: it tells of the first exchange, and in short of the others."""
    slow, fast = match
    trained = Trained(match)
    if trained.ratio("step") is None:
        return
    told = _told(row for row in rows if row.slow.benchmark in ("bandwidth", "allreduce"))
    beside_it = f" Beside it: {told.removesuffix(', ')}." if told else ""
    mode = f" by {first(slow)}" if len(exchanges(slow)) > 1 else ""
    others = {other: Trained(match, other) for other in exchanges(slow)[1:] if other in exchanges(fast)}
    also = "".join(f" By {other} the step is {told}." for other, each in others.items()
                   if (told := _in_short(each)))  # fmt: skip
    verdict = trained.verdict
    ratios = {name: _values(ratio) for name, ratio in (("step", trained.ratio("step")), ("control", trained.control),
                                                       ("exposed", trained.ratio("exposed")))}  # fmt: skip
    values: dict[str, Any] = {"slow": slow.fabric, "fast": fast.fabric, "workload": slow.workload,
                              "verdict": _headline(verdict), **ratios, **_numbers(rows)}  # fmt: skip
    if others:
        values["exchanges"] = {other: {"verdict": _headline(each.verdict), "step": _values(each.ratio("step")),
                                       "exposed": _values(each.ratio("exposed"))}
                               for other, each in others.items()}  # fmt: skip
    text = f"{slow.workload}, {names}{mode}: {verdict} {trained.step}{also}{beside_it}"
    yield Finding(7, text, values, short=names == _names(v, *_extremes(v, slow)))


def _in_short(trained: Trained) -> str:
    """An exchange's ratio of steps, and its exposed communication on both fabrics."""
    step, name = trained.ratio("step"), metric_name(trained.exchange, "exposed")
    if step is None:
        return ""
    exposed = " against ".join(cells.with_unit(s, name, MS) for s in trained.match if name in s.metrics)
    return f"{step.text}, exposed {exposed}" if exposed else step.text


def _headline(verdict: str) -> str:
    return verdict.partition(":")[0]


def _extremes(v: View, s: Summary) -> tuple[str, str]:
    """The slowest and the fastest of the networks that a model trained over in one setup."""
    there = {each.fabric for each in v.of(TRAINING) if setup(each) == setup(s)}
    names = [name for name in v.networks if name in there]
    return names[0], names[-1]


def _told(rows: Iterable[Row]) -> str:
    """``bandwidth 3.95x [3.90, 4.00] at 4 MiB, ``."""
    return "".join(f"{row.slow.benchmark} {row.ratio.text} at {size(row.slow.nbytes)}, " for row in rows if row.ratio)


def _numbers(rows: Sequence[Row]) -> dict[str, Any]:
    return {row.slow.benchmark: _values(row.ratio) for row in rows if row.slow.benchmark != TRAINING}


def _values(ratio: Ratio | None) -> dict[str, Any] | None:
    return None if ratio is None or ratio.low is None else {"value": ratio.value, "low": ratio.low, "high": ratio.high,
                                       "basis": ratio.basis}  # fmt: skip
