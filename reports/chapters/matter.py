"""Chapter 7: does the fabric matter? Microbenchmark ratios beside ratios of training time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from reports import cells, tables
from reports.ratios import HOW, Ratio, speed
from reports.summary import Summary
from reports.units import GBIT_PER_S, MS, PERCENT, US, Unit, count, rate, size, times, volume
from reports.variants import by_mpi, form, own
from reports.view import TRAINING, Chapter, Finding, View, alone, number, setup, setup_text

TITLE = "Does the fabric matter?"
LATENCY_BYTES = 8
FLOAT32_BYTES = 4
QUANTITIES = (("step", "step ms", MS), ("step_noop", "no-op step ms (control)", MS), ("exposed", "exposed ms", MS),
              ("exposed_fraction", "exposed %", PERCENT))  # fmt: skip
HELP = (
    f"Ratios are above 1 where the faster network is better; interval: {HOW}. The no-op step sends "
    "nothing: its ratio shows what is not the fabric's doing."
)
Match = tuple[Summary, Summary]  # the slower fabric's, the faster fabric's


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
        return Chapter(7, TITLE, (tables.prose(text),))
    blocks = [tables.prose(HELP)]
    findings: list[Finding] = []
    for slow, fast in found:
        blocks += _blocks(v, slow, fast)
        findings += _findings(v, slow, fast)
    return Chapter(7, TITLE, tuple(blocks), tuple(findings))


def pairs(v: View) -> list[tuple[str, str]]:
    """(slower, faster) networks, those of one lab first."""

    def lab(name: str) -> str:
        return str(v.fabrics[name].get("lab") or "")

    found = list(combinations(v.networks, 2))
    return sorted(found, key=lambda p: not lab(p[0]) or lab(p[0]) != lab(p[1]))


def matches(v: View, benchmark: str, slow: str, fast: str) -> list[Match]:
    """The cases that both fabrics have: equal but for the fabric."""
    found = [s for s in v.of(benchmark) if not alone(s)]
    own: dict[tuple[Any, ...], Summary] = {(_same(s)): s for s in found if s.fabric == slow}
    return [(own[_same(s)], s) for s in found if s.fabric == fast and _same(s) in own]


def _same(s: Summary) -> tuple[Any, ...]:
    return (*setup(s), s.nbytes)


def _micro(v: View, slow: str, fast: str) -> list[Row]:
    rows = []
    latency = matches(v, "latency", slow, fast)
    if latency:
        a, b = min(latency, key=lambda m: (m[0].nbytes != LATENCY_BYTES, m[0].nbytes or 0))
        rows.append(Row(f"latency us, {size(a.nbytes)}", a, b, "time", US))
    wide = matches(v, "bandwidth", slow, fast)
    if wide:
        a, b = max(wide, key=lambda m: m[0].nbytes or 0)
        rows.append(Row(f"bandwidth uni Gbit/s, {size(a.nbytes)}", a, b, "bandwidth", GBIT_PER_S))
    return rows


def _allreduce(v: View, slow: str, fast: str, train: Summary | None) -> Row | None:
    """Allreduce at the size nearest to the gradients (the largest where that is not known).

    As many ranks and the backend as in training, where such a case was measured.
    """
    found = matches(v, "allreduce", slow, fast)
    if not found:
        return None
    wanted = gradient_bytes(train) if train else None

    def fit(m: Match) -> tuple[Any, ...]:
        s, nbytes = m[0], max(m[0].nbytes or 0, 1)
        far = -nbytes if wanted is None else abs(math.log(nbytes / wanted))
        unlike = (s.ranks != train.ranks, s.backend != train.backend) if train else ()
        unusual = form(s) != "" or (by_mpi(s) and not own(s))  # the library's own stands for MPI
        return (*unlike, unusual, far, s.dtype != "float32", s.ranks)

    a, b = min(found, key=fit)
    return Row(f"allreduce ms, {size(a.nbytes)}", a, b, "time", MS)


def gradient_bytes(train: Summary) -> float | None:
    """The bytes of gradients that a training step exchanges, as its records say."""
    buckets = train.method.get("bucket_bytes")
    if isinstance(buckets, list | tuple) and buckets:
        return sum(number(b) or 0.0 for b in buckets) or None
    parameters = number(train.method.get("parameters"))
    return parameters * FLOAT32_BYTES if parameters else number(train.nbytes)


def _training(v: View, slow: str, fast: str) -> Iterator[tuple[Summary, list[Row]]]:
    for a, b in matches(v, TRAINING, slow, fast):
        allreduce = _allreduce(v, slow, fast, a)
        rows = [
            Row(label, a, b, name, unit) for name, label, unit in QUANTITIES if name in a.metrics and name in b.metrics
        ]
        yield a, [*([allreduce] if allreduce else []), *rows]


def _blocks(v: View, slow: str, fast: str) -> list[str]:
    head = f"{_names(v, slow, fast)}; ratio above 1: {fast} is faster"
    micro = _micro(v, slow, fast)
    trained = list(_training(v, slow, fast))
    if not trained:
        found = _allreduce(v, slow, fast, None)
        micro += [found] if found else []
    blocks = [_headed(head, micro, slow, fast) or tables.prose(head) + "\n\nNo microbenchmark ran on both."]
    for s, rows in trained:
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
    for s, rows in trained:
        step = next((row for row in rows if row.metric == "step"), None)
        if step is None or step.ratio is None:
            continue
        control, exposed = (
            next((row.ratio for row in rows if row.metric == name), None) for name in ("step_noop", "exposed")
        )
        told = _told(row for row in (*micro, *rows) if row.slow.benchmark in ("bandwidth", "allreduce"))
        beside = f" Beside it: {told.removesuffix(', ')}." if told else ""
        verdict = _verdict(step, control)
        text = f"{s.workload}, {names}: {verdict} {_step(step, control)}{beside}"
        ratios = {"step": _values(step.ratio), "control": _values(control), "exposed": _values(exposed)}
        about = {"slow": slow, "fast": fast, "workload": s.workload, "verdict": verdict.partition(":")[0]}
        values = {**about, **ratios, **_numbers([*micro, *rows])}
        yield Finding(7, text, values)
    found = None if trained else _allreduce(v, slow, fast, None)
    micro += [found] if found else []
    if not trained and micro:
        text = f"{names}: {_told(micro)}no training was measured on both, so nothing is said of training time."
        yield Finding(7, text, {"slow": slow, "fast": fast} | _numbers(micro))


def _told(rows: Iterable[Row]) -> str:
    """``bandwidth 3.95x [3.90, 4.00] at 4 MiB, ``."""
    return "".join(f"{row.slow.benchmark} {row.ratio.text} at {size(row.slow.nbytes)}, " for row in rows if row.ratio)


def _numbers(rows: Sequence[Row]) -> dict[str, Any]:
    return {row.slow.benchmark: _values(row.ratio) for row in rows if row.slow.benchmark != TRAINING}


def _values(ratio: Ratio | None) -> dict[str, Any] | None:
    return None if ratio is None or ratio.low is None else {"value": ratio.value, "low": ratio.low, "high": ratio.high,
                                       "basis": ratio.basis}  # fmt: skip


def _verdict(step: Row, control: Ratio | None) -> str:
    """What may be said of the fabric, and no more.

    Steps of two fabrics run minutes apart, and the machine may change meanwhile. The exposed communication is a
    difference to the step that sends nothing, taken step by step, so it is what is compared where there is one: as a
    time, and as a share of the step, which a slower machine does not stretch. Whole steps speak where the control
    does not differ.
    """
    if "exposed" not in step.slow.metrics or "exposed" not in step.fast.metrics:
        if control is not None and control.beyond_one:
            return "NO CONCLUSION: the step that sends nothing differs too."
        return _difference(step.ratio, step.slow.fabric)
    time, share = (_above(step, name) for name in ("exposed", "exposed_fraction"))
    whole = control is not None and not control.beyond_one and step.ratio is not None and (step.ratio.low or 0) > 1
    if time is None:
        said = "NO CONCLUSION: exposed communication has no intervals to compare"
    elif time and (share or whole):
        said = "THE SLOWER FABRIC COSTS TIME: exposed communication"
    elif time:
        said = "THE SLOWER FABRIC MAY COST TIME: exposed communication is longer, but not clearly more of the step"
    else:
        said = "NO DIFFERENCE SHOWS in exposed communication"
    return f"{said}{'' if said.endswith('communication') and time else ':'} {_exposed(step)}."


def _above(row: Row, name: str) -> bool | None:
    """Whether the slower fabric's interval lies wholly above the faster one's; None without intervals."""
    slow, fast = row.slow.ends(name), row.fast.ends(name)
    return None if slow is None or fast is None else slow[0] > fast[1]


def _exposed(row: Row) -> str:
    """The exposed communication of both, as times and as shares, and their ratio where it has an interval."""
    ratio = speed(row.fast, row.slow, "exposed")
    times_told = " against ".join(cells.told(s, "exposed", MS) for s in (row.slow, row.fast))
    shares = [
        cells.told(s, "exposed_fraction", PERCENT) for s in (row.slow, row.fast) if "exposed_fraction" in s.metrics
    ]
    part = f", {' against '.join(shares)} of the step" if shares else ""
    return f"{times_told}{f', {ratio.text}' if ratio and ratio.low is not None else ''}{part}"


def _step(row: Row, control: Ratio | None) -> str:
    """The ratio of whole steps, and what the control says of it."""
    step = row.ratio
    if step is None:
        return ""
    told = f"Step {step.text} (n {row.cells()[-1]}, {step.basis})"
    if control is None:
        return f"{told}, without a control."
    also = ": the machine changed too, so the step's ratio is not the fabric's alone" if control.beyond_one else ""
    return f"{told}; control, the step that sends nothing, {control.text}{also}."


def _difference(step: Ratio | None, slow: str) -> str:
    if step is None or step.low is None or step.high is None:
        return "NO CONCLUSION: without an interval nothing can be claimed."
    low, high = (100 * (end - 1) for end in (step.low, step.high))
    if low > 0:
        return f"THE SLOWER FABRIC COSTS TIME: on {slow} the step is {low:.1f} to {high:.1f} % longer."
    if high < 0:
        return f"THE SLOWER FABRIC COSTS LESS, which it cannot by itself: {-high:.1f} to {-low:.1f} % shorter steps."
    return f"NO DIFFERENCE SHOWS: on {slow} the step is between {-low:.1f} % shorter and {high:.1f} % longer."
