"""A case of chapter 5, mode by mode: what each took, what it hid, and which modes were left out."""

from __future__ import annotations

from reports import cells, tables
from reports.claims import NOT_JUDGED, Trial
from reports.load import mapping
from reports.marks import marks
from reports.modes import left_out, modes, offloaded
from reports.summary import Summary
from reports.units import MS, PERCENT, PLAIN, Unit, size, unit_for
from reports.view import View

QUANTITIES: tuple[tuple[str, str, Unit], ...] = (
    ("pure", "pure ms", MS), ("overall", "overall ms", MS), ("post", "post ms", MS), ("test", "tests ms", MS),
    ("test_longest", "longest test ms", MS), ("wait", "wait ms", MS), ("overlap", "overlap", PLAIN),
    ("exposed", "exposed ms", MS), ("availability", "availability", PLAIN), ("dilation", "dilation %", PERCENT),
    ("cpu", "cpu ms", MS), ("net_gain", "net gain %", PERCENT),
)  # fmt: skip
CARRIED, PIECES = "carried by", "pieces"
CEILING, VERDICT = "at most %", "verdict"


def block(v: View, s: Summary) -> str:
    """Mode by mode, with intervals."""
    trial, launches = Trial.of(v, s), cells.launch_counts((s, name) for name in s.metrics)
    columns = [(mode, _column(v, s, trial, mode, len(launches) > 1)) for mode in modes(s.metrics)]
    compute = f", compute {cells.told(s, 'compute', MS)}" if "compute" in s.metrics else ""
    noted, what = marks(v, s), f" ({s.workload})" if s.workload else ""
    heading = (f"{size(s.nbytes)} on {s.fabric}{what}{f' ({noted})' if noted else ''}{compute}; "
               f"intervals: {_basis(s, launches)}")  # fmt: skip
    return "\n\n".join([tables.prose(heading), *tables.fitted(columns), *_judged(s, trial), *_left_out(v, s)])


def _basis(s: Summary, launches: list[int]) -> str:
    return "none" if s.imported and s.launches == 1 else cells.based(launches or [s.launches])


def _column(v: View, s: Summary, trial: Trial, mode: str, mixed: bool) -> dict[str, str]:
    told = {label: cells.together(f"{mode}.{name}", unit, mixed)(s) for name, label, unit in _quantities(v, s)}
    if any(map(offloaded, modes(s.metrics))):
        cut = any(_pieces(s, other) for other in modes(s.metrics))
        told = {CARRIED: trial.carrier(mode), **({PIECES: _pieces(s, mode) or "-"} if cut else {}), **told}
        told |= _verdict(trial, mode)
    differ = cells.apart(f"{mode}.overall")(s)
    counts = dict.fromkeys(cells.samples(name)(s) for name in s.metrics if name.startswith(f"{mode}."))
    return told | ({cells.APART: differ} if differ else {}) | {"n": ", ".join(counts)}


def _verdict(trial: Trial, mode: str) -> dict[str, str]:
    """The largest gain that there can be, and on which side the mode is; a gain that is not judged is not shown."""
    claim, ceiling = trial.claim(mode) if offloaded(mode) else None, trial.ceiling
    gain = {label: NOT_JUDGED for name, label, _ in QUANTITIES if name == "net_gain"}
    if claim is None or claim.side == NOT_JUDGED:
        return {**(gain if claim else {}), CEILING: "-", VERDICT: "-"}
    return {CEILING: "-" if ceiling is None else PERCENT.text(ceiling), VERDICT: claim.side}


def _judged(s: Summary, trial: Trial) -> list[str]:
    """Why a mode is not judged, or undecided whatever its interval; and what gains are against."""
    claims = {mode: trial.claim(mode) for mode in modes(s.metrics) if offloaded(mode)}
    told = [f"{mode}: {claim.side}: {claim.why}" for mode, claim in claims.items() if claim.why]
    if any(claim.side != NOT_JUDGED for claim in claims.values()):
        told.append(f"net gain {trial.baseline}")
    return [tables.prose("; ".join(told) + ".")] if told else []


def _pieces(s: Summary, mode: str) -> str:
    """Into how many pieces an offload cuts a message, where the record says; the size is that of the largest."""
    known = mapping(mapping(s.method.get("modes")).get(mode))
    pieces, nbytes = known.get("pieces"), known.get("piece_bytes")
    return f"{pieces} x {size(nbytes)}" if isinstance(pieces, int) and isinstance(nbytes, int) else ""


def _quantities(v: View, s: Summary) -> list[tuple[str, str, Unit]]:
    """What the modes of a case are compared in: the quantities known here, then any other."""
    there = {name.partition(".")[2]: metric.unit for name, metric in s.metrics.items() if "." in name}
    known = [q for q in QUANTITIES if q[0] in there]
    unknown = {name: base for name, base in there.items() if name not in {q[0] for q in QUANTITIES}}
    others = [(name, unit_for(base, v.byte_rate)) for name, base in unknown.items()]
    return [*known, *((name, f"{name} {unit.name}", unit) for name, unit in others)]


def _left_out(v: View, s: Summary) -> list[str]:
    told = [f"{mode}: {why}" for mode, why in left_out(v.launches(s)).items()]
    return [tables.prose("Left out: " + "; ".join(told))] if told else []
