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
    "s/byte": ("s/byte", 1.0), "ns/byte": ("s/byte", 1e-9),
    "cells/s": ("cells/s", 1.0), "Mcells/s": ("cells/s", 1e6), "1": (PLAIN, 1.0), "%": (PLAIN, 0.01),
})  # fmt: skip
"""What a unit is called: its base unit, and how many of those it is."""

PERCENTILES = (50, 90, 99)
_METRICS: Mapping[str, str] = MappingProxyType({
    **dict.fromkeys(("time", "makespan", "last_exit", "entry_skew", "burst", "send_overhead", "receive_overhead",
                     "step", "step_noop", "step_alone", "data", "forward", "backward", "optimizer", "exposed",
                     "compute", "pure", "overall", "post", "test", "wait", "cpu", "latency"), SECONDS),
    **dict.fromkeys(("bandwidth", "busbw"), RATE),
    **dict.fromkeys(("exposed_fraction", "efficiency", "imbalance", "overlap", "availability", "dilation",
                     "net_gain", "retransmits", "speedup", "weak_efficiency"), PLAIN),
    **dict.fromkeys(("cells_per_s", "cells_per_s_core"), "cells/s"),
    "message_rate": "messages/s", "images_per_s": "images/s", "cpu_per_byte": "s/byte",
})  # fmt: skip
_OF_ANY = re.compile(r"_(fastest|longest|makespan|min|max|mean|deviation|printed|p(50|90|95|99|99\.9))$")
_WITH_PERCENTILES = ("time", "step")
_PLAIN_OF = "ratio"  # of DPUs, whatever is named behind the dot
_OWN_OF = ("host", "dpu", "hide")  # of a kernel, in a unit of its own
ANY = ""


def base_unit(metric: str) -> str | None:
    """The base unit of a metric of that name, ``ANY`` where the record alone knows, None where there is no such metric.

    What stands before a dot is a mode, or whose it is: ``staged.overlap``, ``ratio.copy``. What stands at the end may
    tell which of many values it is: ``time_p99``, ``time_max``.
    """
    whose, dot, name = _OF_ANY.sub("", metric).rpartition(".")
    known = _METRICS.get(name)
    if not dot or known is not None or not name:
        return known
    return PLAIN if whose == _PLAIN_OF else ANY if whose in _OWN_OF else None


def percentile_name(metric: str, percentile: int) -> str | None:
    """The metric that holds a percentile of ``metric``, which is itself the median; None where there is none."""
    if metric.rpartition(".")[2] not in _WITH_PERCENTILES:
        return None
    return metric if percentile == 50 else f"{metric}_p{percentile}"


def names() -> tuple[str, ...]:
    """The names of metrics that stand alone, for errors to tell."""
    return tuple(_METRICS)
