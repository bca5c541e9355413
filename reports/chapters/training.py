"""Chapter 6: training steps, fabric beside fabric, and the communication that compute did not hide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reports import cells, tables
from reports.marks import marks
from reports.summary import Summary
from reports.units import MS, PER_S, PERCENT, Unit, count
from reports.view import TRAINING, Chapter, Finding, View, alone, grouped, setup, setup_text

TITLE = "Training"
QUANTITIES: tuple[tuple[str, str, Unit], ...] = (
    ("step", "step ms", MS), ("step_noop", "no-op step ms", MS), ("exposed", "exposed ms", MS),
    ("exposed_fraction", "exposed %", PERCENT), ("images_per_s", "images/s", PER_S),
)  # fmt: skip
HELP = (
    "step: one data-parallel training step. no-op step: the same step with a hook that sends nothing. "
    "exposed: the paired difference of the two, which is the communication that backward did not hide, and "
    "its part of the step."
)


def chapter(v: View) -> Chapter:
    """The chapter on training."""
    shown = v.of(TRAINING)
    absent = [_absent(s) for s in v.summaries if s.benchmark == TRAINING and not s.published]
    if not shown:
        return Chapter(6, TITLE, (v.absent(TRAINING), *_listed(absent)))
    blocks = [tables.prose(HELP)]
    blocks += [_model(v, group) for group in grouped(shown, setup).values()]
    return Chapter(6, TITLE, (*blocks, *_listed(absent)), tuple(_findings(v)))


def _listed(absent: Sequence[str]) -> list[str]:
    return ["Without numbers\n" + "\n".join(map(tables.bullet, absent))] if absent else []


def _absent(s: Summary) -> str:
    status, reason = (s.status, s.reason) if s.status != "ok" else ("disproved", "see chapter 8")
    return f"{s.workload or s.id} on {s.fabric}: {status}: {reason}"


def _model(v: View, group: Sequence[Summary]) -> str:
    """Quantities down, fabrics across."""
    columns = []
    marked = any(marks(v, s) for s in group)
    for s in group:
        shown = [q for q in QUANTITIES if q[0] in s.metrics]
        launches = cells.launch_counts((s, name) for name, _, _ in shown)
        told = {label: cells.together(name, unit, len(launches) > 1)(s) for name, label, unit in shown}
        rest = {cells.APART: cells.apart("step")(s), "n": cells.samples("step")(s),
                "intervals": cells.based(launches or [s.launches]), "notes": marks(v, s)}  # fmt: skip
        columns.append(
            (s.fabric, told | {name: text for name, text in rest.items() if text or (marked and name == "notes")})
        )
    s = group[0]
    heading = tables.prose(f"{s.workload or 'training'}: {setup_text(s)}")
    return heading + "\n\n" + "\n\n".join(tables.side_by_side(columns))


def _findings(v: View) -> Iterator[Finding]:
    for group in grouped(v.of(TRAINING), setup).values():
        told = [s for s in group if not alone(s) and s.value("exposed_fraction") is not None]
        if not told:
            continue
        parts = [f"{s.fabric}{' (EMULATED)' if s.fabric in v.emulated else ''} "
                 f"{cells.told(s, 'exposed_fraction', PERCENT)}" for s in told]  # fmt: skip
        s = told[0]
        ranks = count(s.ranks, "rank")
        text = f"{s.workload} on {ranks}: exposed communication, of the step: {', '.join(parts)}."
        values = {s.fabric: s.value("exposed_fraction") for s in told}
        yield Finding(6, text, {"workload": s.workload, "exposed_fraction": values})
