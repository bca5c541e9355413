"""What can hide behind a host's compute, from the ratios of a DPU to its host. Pure arithmetic.

A staged offload hides a collective if the way between host and DPU carries at least what the wire between DPUs does,
and, where it reduces, if the DPU reduces as fast as the wire delivers: three streams of its memory's bandwidth, two
read and one written. O-DA hides if the DPU augments at least as many images per second as the host trains. O-MV hides
if the host's forward rate over the DPU's is at most T/V, training time over validation time of an epoch on the host.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from microbench.record import Metric

STREAMS = 3
COLLECTIVES = ("allreduce", "alltoall", "broadcast", "allgather")
_REDUCES = ("allreduce",)
INTERVALS = "staging and reduction: the ends of both rates' intervals against each other, at least 90 %"

Verdict = Literal["hides", "does not hide", "inconclusive", "not measured"]


@dataclass(frozen=True)
class Finding:
    """Whether a collective or a phase can hide, and up to where, in words."""

    what: str
    verdict: Verdict | Literal["threshold"]
    words: str

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {"what": self.what, "verdict": self.verdict, "words": self.words}


def metrics(known: Mapping[str, Metric]) -> dict[str, Metric]:
    """The thresholds, from rates and links.

    ``hide.staging`` and ``hide.reduction`` are multiples of the wire between DPUs, ``hide.oda32`` and ``hide.oda224``
    the images/s that a host may train at most, ``hide.omv`` the least T/V.
    """

    def have(name: str, unit: str = "1") -> Metric:
        return known.get(name, Metric(None, unit, 0, note=f"n/a: no {name}"))

    wire = have("dpu_dpu.bandwidth")
    return {
        "hide.staging": quotient(have("host_dpu.bandwidth"), wire),
        "hide.reduction": quotient(have("dpu.triad_all"), wire, 1 / STREAMS),
        "hide.oda32": replace(have("dpu.augment32_all", "images/s"), better="higher", kind="derived"),
        "hide.oda224": replace(have("dpu.augment224_all", "images/s"), better="higher", kind="derived"),
        "hide.omv": inverse(have("ratio.forward_all")),
    }


def quotient(top: Metric, bottom: Metric, factor: float = 1.0) -> Metric:
    """``factor * top / bottom``, with the widest interval that the ends of both allow."""
    if top.value is None or bottom.value is None:
        why = top.note if top.value is None else bottom.note
        return Metric(None, "1", 0, better="higher", kind="derived", note=why)
    value, n = factor * top.value / bottom.value, min(top.n, bottom.n)
    if top.low is None or top.high is None or bottom.low is None or bottom.high is None:
        note = top.note or bottom.note
        return Metric(value, "1", n, better="higher", kind="derived", note=note)
    low, high = factor * top.low / bottom.high, factor * top.high / bottom.low
    return Metric(value, "1", n, low, high, "higher", "derived")


def inverse(ratio: Metric) -> Metric:
    """One over a ratio, ends swapped: less is better."""
    if ratio.value is None:
        return replace(ratio, better="lower", kind="derived")
    low, high = (None if end is None else 1 / end for end in (ratio.high, ratio.low))
    return replace(ratio, value=1 / ratio.value, low=low, high=high, better="lower", kind="derived")


def verdict(margin: Metric) -> Verdict:
    """Whether a multiple of the wire is at least 1, which takes its whole interval on one side."""
    if margin.value is None:
        return "not measured"
    if margin.low is not None and margin.low >= 1:
        return "hides"
    return "does not hide" if margin.high is not None and margin.high < 1 else "inconclusive"


def findings(found: Mapping[str, Metric]) -> list[Finding]:
    """Each collective and phase, from :func:`metrics`."""
    told = [_collective(name, found) for name in COLLECTIVES]
    for side, name in ((32, "hide.oda32"), (224, "hide.oda224")):
        words = f"O-DA hides while the host trains fewer than {{}} images/s of {side} x {side} pixels per DPU"
        told.append(_threshold(f"O-DA {side}px", words, found[name]))
    return [*told, _threshold("O-MV", "O-MV hides while T/V >= {}", found["hide.omv"])]


def _collective(name: str, found: Mapping[str, Metric]) -> Finding:
    margins = {"host-DPU bandwidth": found["hide.staging"]}
    if name in _REDUCES:
        margins["reduction on the DPU"] = found["hide.reduction"]
    verdicts = [verdict(margin) for margin in margins.values()]
    order: tuple[Verdict, ...] = ("does not hide", "not measured", "inconclusive", "hides")
    worst = next(each for each in order if each in verdicts)
    if worst == "not measured":
        why = next(margin.note for margin in margins.values() if margin.value is None)
        return Finding(name, worst, f"staged {name} {_SAID[worst]}: {why.removeprefix('n/a: ')}")
    facts = ", ".join(f"{what} is {_spelled(margin)} times the wire between DPUs" for what, margin in margins.items())
    return Finding(name, worst, f"staged {name} {_SAID[worst]}: {facts}")


_SAID: Mapping[Verdict, str] = {
    "hides": "can hide",
    "does not hide": "cannot hide in full",
    "inconclusive": "may or may not hide",
    "not measured": "cannot be judged",
}


def _threshold(what: str, words: str, at: Metric) -> Finding:
    if at.value is None:
        return Finding(
            what, "not measured", f"{what.partition(' ')[0]} cannot be judged: {at.note.removeprefix('n/a: ')}"
        )
    return Finding(what, "threshold", words.format(_spelled(at)))


def _spelled(value: Metric) -> str:
    """``12.3 [11.9, 12.8]``, three significant digits and at least whole numbers."""
    if value.value is None:
        return f"(n/a: {value.note.removeprefix('n/a: ')})"
    ends = "" if value.low is None or value.high is None else f" [{_digits(value.low)}, {_digits(value.high)}]"
    return f"{_digits(value.value)}{ends}"


def _digits(x: float) -> str:
    return f"{x:.3g}" if abs(x) < 1000 else f"{x:.0f}"
