"""Which metrics there are and in which base unit, and the units that limits may be written in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

SECONDS, RATE, PLAIN = "s", "bytes/s", "1"
UNITS: Mapping[str, tuple[str, float]] = MappingProxyType({
    "s": (SECONDS, 1.0), "ms": (SECONDS, 1e-3), "us": (SECONDS, 1e-6), "ns": (SECONDS, 1e-9),
    "B/s": (RATE, 1.0), "kB/s": (RATE, 1e3), "MB/s": (RATE, 1e6), "GB/s": (RATE, 1e9), "TB/s": (RATE, 1e12),
    "KiB/s": (RATE, 2.0**10), "MiB/s": (RATE, 2.0**20), "GiB/s": (RATE, 2.0**30),
    "bit/s": (RATE, 1 / 8), "Mbit/s": (RATE, 1e6 / 8), "Gbit/s": (RATE, 1e9 / 8),
    "messages/s": ("messages/s", 1.0), "Mmsg/s": ("messages/s", 1e6), "images/s": ("images/s", 1.0),
    "flop/s": ("flop/s", 1.0), "Gflop/s": ("flop/s", 1e9), "1/s": ("1/s", 1.0),
    "1": (PLAIN, 1.0), "%": (PLAIN, 0.01),
})  # fmt: skip
"""What a unit is called: its base unit, and how many of those it is."""

PERCENTILES = (50, 90, 99)
_METRICS: Mapping[str, str] = MappingProxyType({
    **dict.fromkeys(("time", "time_fastest", "makespan", "last_exit", "entry_skew", "step", "step_noop", "step_alone",
                     "exposed", "compute", "pure", "overall", "post", "test", "test_longest", "wait", "cpu",
                     "latency"), SECONDS),
    **dict.fromkeys(("bandwidth", "busbw"), RATE),
    **dict.fromkeys(("exposed_fraction", "efficiency", "imbalance", "overlap", "availability", "dilation",
                     "net_gain"), PLAIN),
    "message_rate": "messages/s", "images_per_s": "images/s",
})  # fmt: skip
_TAIL = re.compile(r"(time|step)_p(90|99)")
_PLAIN_OF = ("ratio", "hide")  # of DPUs, whatever is named behind the dot
_OWN_OF = ("host", "dpu")  # a kernel's rate, in a unit of its own
ANY = ""


def base_unit(metric: str) -> str | None:
    """The base unit of a metric of that name, ``ANY`` where the record alone knows, None where there is no such metric.

    What stands before a dot is a mode, or whose it is: ``staged.overlap``, ``ratio.copy``.
    """
    whose, dot, name = metric.rpartition(".")
    tail = _TAIL.fullmatch(name)
    known = SECONDS if tail else _METRICS.get(name)
    if not dot or known is not None:
        return known
    if not name:
        return None
    return PLAIN if whose in _PLAIN_OF else ANY if whose in _OWN_OF else None


def percentile_name(metric: str, percentile: int) -> str:
    """The metric that holds a percentile of ``metric``; the median is the metric itself."""
    return metric if percentile == 50 else f"{metric}_p{percentile}"


def names() -> tuple[str, ...]:
    """The names of metrics that stand alone, for errors to tell."""
    return tuple(_METRICS)
