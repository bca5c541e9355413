"""The end of chapter 3: lines through latency over sizes, and LogGP, with how well they predict what they saw not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from microbench.stats import Interval
from reports import tables
from reports.models.fabric import Fitted, fabrics, fitted
from reports.models.hockney import MOST_ERROR, Hockney, Segment
from reports.models.loggp import LogGP
from reports.units import PERCENT, US, Unit, size, volume
from reports.view import View

HELP = (
    "Hockney: half of a round trip = a + m b, fitted apart in up to four segments whose number and edges are found; "
    "1/b the rate of large messages, n1/2 the size at which half of it is reached. Held out: relative error of each "
    f"size, as predicted without it. A segment that is off by more than {100 * MOST_ERROR:.0f} % anywhere does not "
    "fit and is not used. [low, high]: bootstrap, 95 %, of launches where there are several, else of the intervals."
)
LOGGP_HELP = (
    "LogGP, by delayed bursts below the edge: L on the way, o_s and o_r of either end's processor, g between "
    "messages of a burst, G per byte of the largest."
)


def blocks(v: View) -> list[str]:
    """The tables, and what does not fit; nothing where no fabric has as many sizes as a line takes."""
    found = [fitted(v, name) for name in fabrics(v)]
    tried = [(f, f.hockney) for f in found if f.hockney]
    parameters = [(f, f.loggp) for f in found if f.loggp]
    parts = []
    if tried:
        off = [(f, s) for f, fit in tried for s in fit.segments if not s.fits]
        told = [f"{_named(v, f.fabric)}, {_range(s)}: {s.verdict}." for f, s in off]
        parts.append("\n\n".join(["Fits: latency over sizes", tables.prose(HELP), *_noted(told), *_lines(v, tried)]))
    if parameters:
        told = [f"{_named(v, f.fabric)}: {p.verdict}." for f, p in parameters if not p.fits]
        drawn = _parameters(v, [(f, p) for f, p in parameters if p.fits])
        parts.append("\n\n".join(["Fits: LogGP", tables.prose(LOGGP_HELP), *_noted(told), *drawn]))
    return parts


def _noted(told: Sequence[str]) -> list[str]:
    """What does not fit, as a list."""
    return ["\n".join(map(tables.bullet, told))] if told else []


def _range(s: Segment) -> str:
    return f"{size(int(s.first_bytes))} to {size(int(s.last_bytes))}"


def _lines(v: View, found: Sequence[tuple[Fitted, Hockney]]) -> list[str]:
    rate = Unit(v.byte_rate.name, v.byte_rate.scale)
    heads = ["fabric", "sizes", "a us", f"1/b {rate.name}", "n1/2", "held out, %\nmedian, worst"]
    rows = [row for f, fit in found for row in _segments(_named(v, f.fabric), fit, rate)]
    return [tables.table(heads, rows, ["left", "left", *["right"] * 4])] if rows else []


def _segments(name: str, fit: Hockney, unit: Unit) -> Iterator[list[str]]:
    for s in fit.segments:
        if s.fits:
            rate = _rate(s.s_per_byte)
            held = f"{PERCENT.text(s.typical)}, {PERCENT.text(s.worst)}"
            half = "-" if rate is None else volume(s.half_bytes)
            yield [name, _range(s), _told(s.latency_s, US), _told(rate, unit), half, held]


def _parameters(v: View, found: Sequence[tuple[Fitted, LogGP]]) -> list[str]:
    """A column per fabric: parameters have too many digits for rows."""
    unit = Unit(v.byte_rate.name, v.byte_rate.scale)
    columns = [(_named(v, f.fabric), _values(p, unit)) for f, p in found]
    return tables.side_by_side(columns)


def _values(p: LogGP, unit: Unit) -> dict[str, str]:
    times = {"L us": p.latency_s, "o_s us": p.send_s, "o_r us": p.receive_s, "g us": p.gap_s}
    told = {name: _told(x, US) for name, x in times.items()}
    edge = "none seen" if p.edge is None else _edge(p.edge)
    return {**told, f"1/G {unit.name}": _told(_rate(p.s_per_byte), unit), "rendezvous from": edge,
            "held out, worst %": PERCENT.text(p.worst)}  # fmt: skip


def _rate(s_per_byte: Interval) -> Interval | None:
    """Bytes/s; none where a byte costs nothing, and no interval where it may."""
    if s_per_byte.value <= 0:
        return None
    sure = s_per_byte.low is not None and s_per_byte.low > 0
    return (s_per_byte if sure else replace(s_per_byte, low=None, high=None)).map(1.0, -1)


def _named(v: View, fabric: str) -> str:
    return f"{fabric}{' EMULATED' if fabric in v.emulated else ''}"


def _told(found: Interval | None, unit: Unit) -> str:
    """The value and its interval: ``27.00 [26.89, 27.10]``."""
    if found is None:
        return "-"
    text = unit.text(found.value)
    if found.low is None or found.high is None:
        return text
    return f"{text} {unit.inside(found.low, found.high, like=found.value)}"


def _edge(found: Interval) -> str:
    """Between which sizes a protocol changes."""
    low = found.value if found.low is None else found.low
    return f"{size(int(low))} to {size(int(found.value if found.high is None else found.high))}"
