"""The end of chapter 7: steps predicted from the run's allreduces, what else they might be, and thousands of hosts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reports import tables
from reports.models import whatif
from reports.models.predicted import Predicted, predictions
from reports.models.scaling import HOSTS, SHOWS, shows_from
from reports.models.step import Prediction
from reports.units import MS, PERCENT, count, size
from reports.view import Finding, View, grouped

HELP = (
    "Predicted: the step without an exchange, and buckets exchanged one after the other as their gradients become "
    "ready, each for the time that an allreduce of its size was measured to take, beside compute that shares its "
    "processor with the exchange. Dilation: how much longer backward's compute takes."
)
SCALE_HELP = (
    "By model, not measured: the allreduce measured here times the ratio of the best algorithm's formula at so many "
    "hosts to that at the ranks measured, with the fabric's own latency and rate. Efficiency: one rank's step alone "
    "over the step; the work of a rank stays the same."
)
INSTEAD_HELP = "What if: the step, and its exposed communication, if one thing were different."


def blocks(v: View) -> list[str]:
    """The tables; nothing where no step can be predicted."""
    found = predictions(v)
    return [_measured(v, found), *_scaled(v, found), *_instead(v, found)] if found else []


def _mark(v: View, name: str) -> str:
    return f"{name}{' EMULATED' if name in v.emulated else ''}"


def _measured(v: View, found: Sequence[Predicted]) -> str:
    heads = [
        "fabric",
        "by",
        "step ms",
        "predicted",
        "error %",
        "exposed ms",
        "predicted",
        "dilation %",
        "predicted",
        "",
    ]
    parts = [f"Steps predicted\n\n{tables.prose(HELP)}"]
    for (workload, ranks), group in grouped(found, lambda p: (p.summary.workload, p.ranks)).items():
        rows = [_row(v, p) for p in group]
        drawn = tables.table(heads, rows, ["left", "left", *["right"] * 7, "left"])
        heading = tables.prose(f"{workload}, {count(ranks, 'rank')}")
        parts.append(f"{heading}\n\n{drawn}")
    return "\n\n".join(parts)


def _row(v: View, p: Predicted) -> list[str]:
    given = {part: p.measured(part) for part in ("step", "exposed", "dilation")}
    units = {"step": MS, "exposed": MS, "dilation": PERCENT}
    told = {part: "-" if x is None else units[part].text(x) for part, x in given.items()}
    error = "-" if p.error is None else f"{100 * p.error:+.1f}"
    return [_mark(v, p.summary.fabric), p.mode, told["step"], MS.text(p.prediction.step_s), error, told["exposed"],
            MS.text(p.prediction.exposed_s), told["dilation"], PERCENT.text(p.prediction.dilation),
            "; ".join(p.notes)]  # fmt: skip


def _scaled(v: View, found: Sequence[Predicted]) -> Iterator[str]:
    rows, shows = [], []
    for p in found:
        scaled = whatif.scaled(v, p)
        if scaled:
            known = whatif.efficiency(p)
            rows.append([p.summary.workload, p.summary.fabric, p.mode, "-" if known is None else _percent(known),
                         *(_percent(s.efficiency) for s in scaled)])  # fmt: skip
            shows.append(_shows(v, p))
    if rows:
        heads = ["", "fabric", "by", "measured", *(f"{n}" for n in HOSTS)]
        drawn = tables.table(heads, rows, ["left", "left", "left", *["right"] * (1 + len(HOSTS))])
        told = "\n".join(map(tables.bullet, shows))
        yield f"Scaling efficiency, %, by hosts\n\n{tables.prose(SCALE_HELP)}\n\n{drawn}\n\n{told}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f}"


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
    """A table for each case: its bounds, and what might be different; of the case's first exchange."""
    first = {p.summary.id: p for p in reversed(found)}
    for p in [p for p in found if first[p.summary.id] is p]:
        rows = [["as predicted", *_times(p.prediction, p)], *_bounds(v, p)]
        rows += [[other.what, *_times(other.prediction, p)] for other in whatif.alternatives(v, p)]
        told = f"{p.summary.workload} by {p.mode or p.summary.backend} over {_mark(v, p.summary.fabric)}"
        total = size(round(p.profile.nbytes))
        heading = tables.prose(f"{INSTEAD_HELP} {told}, {count(len(p.profile.ready_s), 'bucket')} of {total}")
        yield f"{heading}\n\n" + tables.table(["", "step ms", "exposed ms", "hidden %", "vs predicted"], rows,
                                             ["left", *["right"] * 4])  # fmt: skip


def _times(found: Prediction, p: Predicted) -> list[str]:
    return [MS.text(found.step_s), MS.text(found.exposed_s), _percent(found.hidden_fraction),
            f"{p.prediction.step_s / found.step_s:.2f}x"]  # fmt: skip


def _bounds(v: View, p: Predicted) -> list[list[str]]:
    found = whatif.limits(v, p)
    if found is None:
        return []
    told = (("bound: nothing exposed", found.ideal_s), ("bound: by the wire's rate alone", found.wire_s),
            ("bound: nothing hidden", found.serial_s))  # fmt: skip
    return [[what, MS.text(step), MS.text(step - found.ideal_s), "", ""] for what, step in told]


def findings(v: View) -> Iterator[Finding]:
    """A sentence per case and exchange: how near the prediction comes, and from how many hosts communication shows."""
    for p in predictions(v):
        if p.error is None:
            continue
        mode = p.mode or p.summary.backend
        text = (f"{p.summary.workload} by {mode} over {_mark(v, p.summary.fabric)}: step predicted from its allreduces "
                f"{MS.text(p.prediction.step_s)} ms, measured {MS.text(p.measured('step') or 0.0)} ms "
                f"({100 * p.error:+.1f} %).")  # fmt: skip
        first = shows_from(whatif.scaled(v, p, (p.ranks, *HOSTS)))
        yield Finding(7, text, {"predicted": p.prediction.step_s, "error": p.error, "fabric": p.summary.fabric,
                                "workload": p.summary.workload, "exchange": mode, "dilation": p.prediction.dilation,
                                "shows_from_hosts": first}, short=False)  # fmt: skip
