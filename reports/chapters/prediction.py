"""The end of chapter 7: steps predicted from the run's allreduces, what else they might be, and thousands of hosts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reports import tables
from reports.models import whatif
from reports.models.predicted import Predicted, predictions, refusals
from reports.models.scaling import HOSTS, SHOWS, Scaled, shows_from
from reports.units import MS, PERCENT, count, volume
from reports.view import Finding, View, grouped

HELP = (
    "Predicted: the step without an exchange, and buckets exchanged one after the other as their gradients become "
    "ready, each for the time that an allreduce of its size was measured to take, beside compute that shares its "
    "processor with the exchange. Dilation: how much longer backward's compute takes. What has buckets smaller than "
    "any allreduce measured, or allreduces of one size alone, is not predicted."
)
SCALE_HELP = (
    "By model, not measured: the allreduce measured here times the ratio of the best algorithm's formula at so many "
    "hosts to that at the ranks measured, with the fabric's own latency and rate. Efficiency: one rank's step alone "
    "over the step; the work of a rank stays the same."
)
INSTEAD_HELP = (
    "What if: the step in ms (exposed communication in it), were one thing different. By model, not measured."
)


def blocks(v: View) -> list[str]:
    """The tables; nothing where no step can be predicted."""
    found = predictions(v)
    tables_of = [_measured(v, found), *_scaled(v, found), *_instead(v, found)] if found else []
    return tables_of + _refused(v)


def _mark(v: View, name: str) -> str:
    return f"{name}{' EMULATED' if name in v.emulated else ''}"


def _measured(v: View, found: Sequence[Predicted]) -> str:
    heads = ["fabric", "by", "step ms", "predicted", "error %", "exposed ms", "predicted", "dilation %", "predicted"]
    parts = [f"Steps predicted\n\n{tables.prose(HELP)}"]
    for (workload, ranks), group in grouped(found, lambda p: (p.summary.workload, p.ranks)).items():
        rows = [_row(v, p) for p in group]
        drawn = tables.table(heads, rows, ["left", "left", *["right"] * 7])
        heading = tables.prose(f"{workload}, {count(ranks, 'rank')}")
        noted = [tables.bullet(f"{p.summary.fabric} by {p.mode}: {'; '.join(p.notes)}.") for p in group if p.notes]
        parts.append("\n\n".join([heading, drawn, *(["\n".join(noted)] if noted else [])]))
    return "\n\n".join(parts)


def _refused(v: View) -> list[str]:
    """The exchanges that were not predicted, and why."""
    told = [f"{s.workload} by {mode or s.backend} over {_mark(v, s.fabric)}: not predicted, nor what if: {why}."
            for s, mode, why in refusals(v)]  # fmt: skip
    return ["\n".join(map(tables.bullet, told))] if told else []


def _row(v: View, p: Predicted) -> list[str]:
    given = {part: p.measured(part) for part in ("step", "exposed", "dilation")}
    units = {"step": MS, "exposed": MS, "dilation": PERCENT}
    told = {part: "-" if x is None else units[part].text(x) for part, x in given.items()}
    error = "-" if p.error is None else _signed(p.error)
    return [_mark(v, p.summary.fabric), p.mode, told["step"], MS.text(p.prediction.step_s), error, told["exposed"],
            MS.text(p.prediction.exposed_s), told["dilation"], PERCENT.text(p.prediction.dilation)]  # fmt: skip


def _scaled(v: View, found: Sequence[Predicted]) -> Iterator[str]:
    known = [(p, scaled) for p in found if (scaled := whatif.scaled(v, p))]
    if not known:
        return
    parts = [f"Scaling efficiency, %, by hosts\n\n{tables.prose(SCALE_HELP)}"]
    heads = ["fabric", "by", "measured", *(f"{n}" for n in HOSTS)]
    for workload, group in grouped(known, lambda each: each[0].summary.workload).items():
        rows = [_efficiencies(v, p, scaled) for p, scaled in group]
        drawn = tables.table(heads, rows, ["left", "left", *["right"] * (1 + len(HOSTS))])
        parts.append(f"{tables.prose(workload)}\n\n{drawn}")
    yield "\n\n".join([*parts, "\n".join(tables.bullet(_shows(v, p)) for p, _ in known)])


def _efficiencies(v: View, p: Predicted, scaled: Sequence[Scaled]) -> list[str]:
    known = whatif.efficiency(p)
    told = "-" if known is None else f"{_percent(known)} on {p.ranks}"
    return [_mark(v, p.summary.fabric), p.mode, told, *(_percent(s.efficiency) for s in scaled)]


def _percent(share: float) -> str:
    return f"{round(100 * share)}"


def _signed(share: float) -> str:
    """In percent, with its sign; what rounds to nothing has that of nothing."""
    return f"{round(100 * share, 1) + 0.0:+.1f}"


def _beside(p: Predicted) -> str:
    """The notes of a prediction, as a sentence."""
    return f" {'; '.join(p.notes)}." if p.notes else ""


def _shows(v: View, p: Predicted) -> str:
    """From how many hosts on communication shows, by model."""
    first = shows_from(whatif.scaled(v, p, (p.ranks, *HOSTS)))
    what = f"{p.summary.workload} by {p.mode or p.summary.backend} over {_mark(v, p.summary.fabric)}"
    limit = f"more than {100 * SHOWS:.0f} % of the step"
    if first is None:
        return f"{what}: by model, exposed communication stays below {100 * SHOWS:.0f} % to {HOSTS[-1]} hosts."
    since = "at the ranks measured already" if first == p.ranks else f"from {first} hosts on"
    return f"{what}: by model, exposed communication is {limit} {since}."


def _instead(v: View, found: Sequence[Predicted]) -> Iterator[str]:
    """A table for each model, a column per fabric: bounds, and what might be different, of a case's first exchange."""
    first = {p.summary.id: p for p in reversed(found)}
    parts = [tables.prose(INSTEAD_HELP)]
    for workload, group in grouped(first.values(), lambda p: p.summary.workload).items():
        columns = [(_mark(v, p.summary.fabric), _cases(v, p)) for p in reversed(group)]
        p = group[-1]
        by = f"{workload} by {p.mode or p.summary.backend}, {count(len(p.profile.ready_s), 'bucket')}"
        parts += [tables.prose(f"{by} of {volume(p.profile.nbytes)}"), *tables.side_by_side(columns, at_once=2)]
        noted = [tables.bullet(text) for p in reversed(group) for text in _noted(v, p)]
        parts += ["\n".join(noted)] if noted else []
    yield "\n\n".join(parts)


def _cases(v: View, p: Predicted) -> dict[str, str]:
    """What, and the step that comes of it."""
    found, limits = {"as predicted": _told(p.prediction.step_s, p)}, whatif.limits(v, p)
    if limits is not None:
        found |= {"bound: nothing exposed": _told(limits.ideal_s, p), "bound: the wire alone": _told(limits.wire_s, p),
                  "bound: nothing hidden": _told(limits.serial_s, p)}  # fmt: skip
    for other in whatif.alternatives(v, p):
        found[other.what] = _told(other.prediction.step_s, p) if other.prediction else "n/a"
    return found


def _noted(v: View, p: Predicted) -> Iterator[str]:
    """What must be read beside the rows of a fabric, or why there is no step: ``eth10g: a bucket per tensor: ...``."""
    told = [(other.what, other.note) for other in whatif.alternatives(v, p) if other.note]
    for note, rows in grouped(told, lambda each: each[1]).items():
        yield f"{_mark(v, p.summary.fabric)}: {', '.join(what for what, _ in rows)}: {note}."


def _told(step_s: float, p: Predicted) -> str:
    """``1132.0 (282.0)``: the step, and how much of it is exposed."""
    return f"{MS.text(step_s)} ({MS.text(step_s - p.profile.step_s, like=step_s)})"


def findings(v: View) -> Iterator[Finding]:
    """A sentence per case and exchange: how near the prediction comes, and from how many hosts communication shows."""
    for p in predictions(v):
        if p.error is None:
            continue
        mode = p.mode or p.summary.backend
        text = (f"{p.summary.workload} by {mode} over {_mark(v, p.summary.fabric)}: step predicted from its allreduces "
                f"{MS.text(p.prediction.step_s)} ms, measured {MS.text(p.measured('step') or 0.0)} ms "
                f"({_signed(p.error)} %).{_beside(p)}")  # fmt: skip
        first = shows_from(whatif.scaled(v, p, (p.ranks, *HOSTS)))
        yield Finding(7, text, {"predicted": p.prediction.step_s, "error": p.error, "fabric": p.summary.fabric,
                                "workload": p.summary.workload, "exchange": mode, "dilation": p.prediction.dilation,
                                "shows_from_hosts": first}, short=False)  # fmt: skip
