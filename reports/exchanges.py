"""The ways of exchanging gradients that a case of training compares, and what their metrics are called."""

from __future__ import annotations

from collections.abc import Iterable

from microbench.record import Record
from reports.load import mapping
from reports.summary import Summary
from reports.view import number

NOOP = "noop"  # a step without an exchange
ONLY = ""  # the one exchange of a record that names none
_BASE = "step_noop"
_FLOAT32_BYTES = 4
_IMAGES = "images"


def exchanges(s: Summary) -> list[str]:
    """The exchanges, in the case's order: the first is the one whose metrics have plain names too."""
    found = dict.fromkeys(name.rpartition(".")[0] for name in s.metrics)
    return [mode for mode in found if mode not in (ONLY, NOOP)] or [ONLY]


def first(s: Summary) -> str:
    """The exchange that the others are compared with."""
    return exchanges(s)[0]


def metric_name(mode: str, part: str) -> str:
    """What a metric of an exchange, or of the step without one, is called: ``gloo.step``, ``step``, ``step_noop``."""
    if (mode, part) == (NOOP, "step"):
        return _BASE
    return f"{mode}.{part}" if mode else part


def by(mode: str) -> str:
    """``by gloo``; empty where the record names none."""
    return f"by {mode}" if mode else ""


def replayed(s: Summary) -> bool:
    """Whether the other hosts only stood in for peers that train."""
    return str(s.method.get("peer", "")).startswith("replayed")


def buckets(s: Summary, mode: str) -> list[float]:
    """The bytes of each bucket of an exchange; empty where the record does not say."""
    fusion = told(s, mode, "fusion")
    own = mapping(mapping(s.method.get("fusions")).get(fusion)).get("bucket_bytes")
    given = own if own is not None else s.method.get("bucket_bytes") if mode in (ONLY, first(s)) else None
    return [size for each in given if (size := number(each))] if isinstance(given, list | tuple) else []


def told(s: Summary, mode: str, what: str) -> str:
    """What the record says of an exchange: its ``fusion``, its ``call``, what ``completes`` it; empty if nothing."""
    return str(mapping(mapping(s.method.get("exchanges")).get(mode)).get(what) or "")


def gradient_bytes(s: Summary) -> float | None:
    """The bytes of gradients that a rank exchanges in a step, as the record says."""
    if own := buckets(s, first(s)):
        return sum(own)
    parameters = number(s.method.get("parameters"))
    return parameters * _FLOAT32_BYTES if parameters else number(s.nbytes)


def images(launches: Iterable[Record], mode: str) -> int | None:
    """The images that a step trains on: as the record says, else its rate times its time, of the same median."""
    for record in launches:
        if told := number(record.method.get(_IMAGES)):
            return round(told)
        rate, step = (record.metrics.get(metric_name(mode, part)) for part in ("images_per_s", "step"))
        if rate is not None and step is not None and rate.value and step.value:
            return round(rate.value * step.value)
    return None


def waits(s: Summary, mode: str) -> float:
    """How long images are waited for before a step, in s; 0 in old records, whose step includes that."""
    return (s.value(metric_name(mode, "data")) or 0.0) if s.method.get(_IMAGES) else 0.0
