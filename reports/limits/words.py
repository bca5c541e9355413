"""A verdict in words."""

from __future__ import annotations

from reports.limits import quantities
from reports.limits.model import Bar, Criterion, Judged
from reports.summary import Summary
from reports.units import Unit, count, size, unit_for
from reports.view import View, kind

BETTER_BY = 0.10  # than a reference: more is told, since it never becomes the bar by itself
_SOME = 3


def where(s: Summary) -> str:
    """A case in words: ``bandwidth 2 ranks 4 MiB on eth10g, h0-h1``."""
    ways = ", ".join(way for way, usual in ((s.algorithm, "library"), (s.backend, "mpi"), (s.mode, ""), (s.dtype, ""))
                     if way and way != usual)  # fmt: skip
    hosts = list(dict.fromkeys(s.hosts))
    pair = "-".join(hosts) if len(hosts) <= _SOME else count(len(hosts), "host")
    sized = f" {size(s.nbytes)}" if s.nbytes is not None else ""
    return f"{kind(s)}{sized} on {s.fabric}" + (f", {pair}" if pair else "") + (f" ({ways})" if ways else "")


def note(case: Judged) -> str:
    """That a number is so much better than what it is held against that somebody should look."""
    bar = case.bar
    if bar is None or not bar.reference or case.value is None or (bar.lower is None) == (bar.upper is None):
        return ""
    more = case.value / bar.reference - 1
    if (more if bar.upper is None else -more) <= BETTER_BY:
        return ""
    kept = "; it does not become the bar by itself" if "baseline" in bar.basis else ""
    return f"{100 * abs(more):.0f} % {'above' if more > 0 else 'below'} {bar.basis}{kept}"


def line(case: Judged, criterion: Criterion, v: View) -> str:
    """Metric, case, size, hosts, what was measured, the limits and on which side of them, in one line."""
    unit = printed(case, criterion, v)
    told = f"{criterion.metric} of {case.where}: {case.verdict}: "
    if case.value is not None:
        ends = ""
        if case.low is not None and case.high is not None:
            ends = f" {unit.inside(case.low, case.high, like=case.value)}"
        n = f"n {case.n}" if case.n else "n not told"
        told += f"{unit.text(case.value)}{ends} {unit.name} ({n}, {case.basis})".replace("  ", " ")
        told += f" against {bounds(case.bar, criterion, unit)}; " if case.bar else "; "
    return f"{told}{case.reason}" + (f"; {case.note}" if case.note else "")


def printed(case: Judged, criterion: Criterion, v: View) -> Unit:
    """The unit that the limit is written in, or the report's own."""
    if criterion.unit:
        return Unit(criterion.unit, 1 / quantities.UNITS[criterion.unit][1], small=True)
    return unit_for(case.unit, v.byte_rate)


def bounds(bar: Bar, criterion: Criterion, unit: Unit) -> str:
    """The limits in words: ``at least 1125 MB/s = 0.9 x the line rate 10 Gbit/s``."""
    told = []
    for word, end, part in (("at least", bar.lower, criterion.lower), ("at most", bar.upper, criterion.upper)):
        if end is not None:
            of = "" if bar.reference is None else f" = {part:g} x {bar.basis}"
            told.append(f"{word} {unit.text(end)} {unit.name}{of}".rstrip())
    return ", ".join(told)
