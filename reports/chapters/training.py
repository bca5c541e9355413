"""Chapter 6: training steps, fabric beside fabric and primitive beside primitive, and what compute did not hide."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from reports import cells, processors, tables
from reports.chapters import training_exchanges
from reports.exchanges import NOOP, by, exchanges, first, gradient_bytes, images, metric_name, replayed, waits
from reports.marks import marks
from reports.summary import Summary
from reports.units import MS, NS_PER_BYTE, PER_S, PERCENT, Unit, count, volume
from reports.view import TRAINING, Chapter, Finding, View, alone, grouped, own_warnings, setup, setup_text

TITLE = "Training"
QUANTITIES: tuple[tuple[str, str, Unit], ...] = (
    ("step", "step ms", MS), ("step_p90", "step p90 ms", MS), ("step_p99", "step p99 ms", MS),
    ("images_per_s", "images/s", PER_S), ("step_noop", "no-op step ms", MS), ("data", "data ms", MS),
    ("forward", "forward ms", MS), ("backward", "backward ms", MS), ("optimizer", "optimizer ms", MS),
    ("exposed", "exposed ms", MS), ("exposed_fraction", "exposed %", PERCENT), ("dilation", "dilation %", PERCENT),
    ("cpu_per_byte", "cpu ns/byte", NS_PER_BYTE), ("imbalance", "imbalance %", PERCENT),
    ("efficiency", "efficiency %", PERCENT),
)  # fmt: skip
TAILS = (("step_p90", "images/s p90"), ("step_p99", "images/s p99"))
BASE = "step_alone"  # of efficiency
HELP = (
    "step: one data-parallel training step, from when all ranks have their images on. no-op step: the same step with a "
    "hook that sends nothing. exposed: the paired difference of the two, which is the communication that backward did "
    "not hide, and its part of the step."
)
PARTS = (
    "data: waiting for images, before the step and not in it; images/s counts both. backward includes the "
    "communication left after it. dilation: how much longer the compute of backward took beside communication. cpu: "
    "processor time that an exchange adds, for each byte of gradients. imbalance: the slowest rank's own work over the "
    "ranks' mean. efficiency: one rank's steps alone (n alone) against those of all. images/s p90, p99: of steps as "
    "long as those percentiles."
)


def chapter(v: View) -> Chapter:
    """The chapter on training."""
    shown = v.of(TRAINING)
    absent = [_absent(s) for s in v.summaries if s.benchmark == TRAINING and not s.published]
    if not shown:
        return Chapter(6, TITLE, (v.absent(TRAINING), *_listed(absent)))
    blocks = [tables.prose(HELP)]
    blocks += [tables.prose(PARTS)] if any(by(first(s)) for s in shown) else []
    for group in grouped(shown, setup).values():
        blocks += [*_model(v, group), *_warned(v, group)]
    return Chapter(6, TITLE, (*blocks, *_listed(absent)), tuple(_findings(v)))


def _listed(absent: Sequence[str]) -> list[str]:
    return ["Without numbers\n" + "\n".join(map(tables.bullet, absent))] if absent else []


def _absent(s: Summary) -> str:
    status, reason = (s.status, s.reason) if s.status != "ok" else ("disproved", "see chapter 8")
    return f"{s.workload or s.id} on {s.fabric}: {status}: {reason}"


def noted(v: View, s: Summary) -> str:
    """The marks of a case, and whether its peer only stood in for one that trains."""
    return ", ".join(filter(None, (marks(v, s), "peer replayed" if replayed(s) else "")))


def _model(v: View, group: Sequence[Summary]) -> list[str]:
    """Fabrics across where there is one exchange; else all at a glance, and exchanges across for each fabric."""
    s = group[0]
    heading = tables.prose(f"{s.workload or 'training'}: {setup_text(s)}{_facts(v, group)}")
    if all(len(exchanges(each)) == 1 for each in group):
        columns = [(each.fabric, column(v, each, first(each), noted_by=group)) for each in group]
        return ["\n\n".join([heading, *tables.side_by_side(columns)])]
    return [heading + "\n\n" + training_exchanges.glance(v, group, noted), *(_by_exchange(v, each) for each in group)]


def _warned(v: View, group: Sequence[Summary]) -> list[str]:
    """What the launches themselves warned of, that differ in numbers alone told once for each fabric."""
    told = [(text, r) for s in group for r in v.launches(s) for text in own_warnings(r)]
    lines = []
    for (fabric, _), same in grouped(told, lambda t: (t[1].fabric, re.sub(r"[\d.]+", "", t[0]))).items():
        text, r = same[0]
        of = sum(each.launches for each in group if each.fabric == fabric)
        among = f", in {len(same)} of {of} launches, so in launch {r.launch}" if of > 1 else ""
        lines.append(tables.bullet(f"WARNING: {fabric}{among}: {text.rstrip('.')}."))
    return ["\n".join(lines)] if lines else []


def _by_exchange(v: View, s: Summary) -> str:
    """The exchanges of one case side by side, with the step that sends nothing."""
    marked = noted(v, s)
    columns = [(mode, column(v, s, mode)) for mode in exchanges(s)]
    base = column(v, s, NOOP)
    columns = [(NOOP, {label: base.get(label, "-") for _, told in columns for label in told}), *columns]
    counts = cells.launch_counts((s, name) for name in s.metrics)
    heading = f"{s.workload or 'training'} on {s.fabric}{f' ({marked})' if marked else ''}"
    return "\n\n".join(
        [
            tables.prose(f"{heading}; intervals: {cells.based(counts or [s.launches])}"),
            *tables.fitted(columns),
            *training_exchanges.ways(s),
        ]
    )


def column(v: View, s: Summary, mode: str, noted_by: Sequence[Summary] = ()) -> dict[str, str]:
    """The quantities of an exchange, or of steps without one; with notes where one of ``noted_by`` has some."""
    names = {part: metric_name(mode, part) for part, _, _ in QUANTITIES if part != "step_noop"}
    names |= {} if mode == NOOP or not noted_by else {"step_noop": "step_noop"}
    shown = [(names[part], label, unit) for part, label, unit in QUANTITIES if names.get(part) in s.metrics]
    launches = cells.launch_counts((s, name) for name, _, _ in shown)
    told = dict[str, str]()
    for name, label, unit in shown:
        told[label] = cells.together(name, unit, len(launches) > 1)(s)
        told |= _tails(v, s, mode) if label == "images/s" else {}
    rest = {cells.APART: cells.apart(names["step"])(s), "n": cells.samples(names["step"])(s)}
    rest |= {"n alone": cells.samples(BASE)(s)} if "efficiency %" in told and BASE in s.metrics else {}
    if noted_by:
        rest |= {"intervals": cells.based(launches or [s.launches]), "notes": noted(v, s)}
    marked = any(noted(v, each) for each in noted_by)
    return told | {name: text for name, text in rest.items() if text or (marked and name == "notes")}


def _tails(v: View, s: Summary, mode: str) -> dict[str, str]:
    """Images per second of steps as long as a percentile, where there are steps enough for one."""
    of = images(v.launches(s), mode)
    known = [(label, value) for part, label in TAILS if (value := s.value(metric_name(mode, part)))]
    waited = waits(s, mode)
    return {label: PER_S.text(of / (value + waited)) for label, value in known if of is not None}


def _facts(v: View, group: Sequence[Summary]) -> str:
    """What is exchanged, by how many threads a rank computes, and the absolute base of efficiency."""
    s = group[0]
    told = [f"gradients {volume(found)}"] if (found := gradient_bytes(s)) and by(first(s)) else []
    if threads := processors.threads(r for each in group for r in v.launches(each)):
        told.append(f"{count(threads[0], 'thread')} a rank" if len(threads) == 1 else
                    f"{' or '.join(map(str, threads))} THREADS a rank")  # fmt: skip
    bases = [f"{each.fabric} {cells.told(each, BASE, MS)}" for each in group if each.value(BASE)]
    told += [f"one rank alone, the base of efficiency ({_scaling(s)}): {', '.join(bases)} a step"] if bases else []
    return f"; {'; '.join(told)}" if told else ""


def _scaling(s: Summary) -> str:
    return f"{s.method.get('scaling') or 'weak'} scaling"


def _findings(v: View) -> Iterator[Finding]:
    for group in grouped(v.of(TRAINING), setup).values():
        told = [s for s in group if not alone(s) and s.value("exposed_fraction") is not None]
        if not told:
            continue
        parts = [f"{named(v, s)} {cells.told(s, 'exposed_fraction', PERCENT)}" for s in told]
        s = told[0]
        several = f" {by(first(s))}" if len(exchanges(s)) > 1 else ""
        stands_in = ", peer replayed" if replayed(s) and "replayed" not in s.workload else ""
        text = f"{s.workload} on {count(s.ranks, 'rank')}{stands_in}: exposed communication{several}, of the step: "
        values = {s.fabric: s.value("exposed_fraction") for s in told}
        doubted = [named(v, each) for each in told if any(map(own_warnings, v.launches(each)))]
        also = f" WARNED OF: {', '.join(doubted)}." if doubted else ""
        yield Finding(6, f"{text}{', '.join(parts)}.{also}", {"workload": s.workload, "exposed_fraction": values})
        yield from training_exchanges.findings(v, told)


def named(v: View, s: Summary) -> str:
    """The fabric's name, with what it is no measure of."""
    return f"{s.fabric}{' (EMULATED)' if s.fabric in v.emulated else ''}"
