"""The modes that a case of overlap compares: the prefixes of its metrics' names, and which of them DPUs carried."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from microbench.record import Metric, Record
from reports.load import mapping

BLOCKING = "blocking"
NOT_USED = "host (offload not used)"
OVERLAP_LEGEND = (
    "(pure + compute - overall) / min(pure, compute), signed and unclipped; above 1 overall was shorter than the longer"
    " of pure and compute, so that this one was inflated"
)
_HOST = ("host", "thread", "gloo", BLOCKING)
_PROBES = "probes"

Metrics = Mapping[str, Metric]


def modes(metrics: Metrics) -> list[str]:
    """The modes that a record compares."""
    return list(dict.fromkeys(name.partition(".")[0] for name in metrics if "." in name))


def offloaded(mode: str) -> bool:
    """Whether DPUs are to carry the mode's collective."""
    return mode not in _HOST and not mode.startswith(_PROBES)


def fastest(metrics: Metrics, among: Iterable[str]) -> str:
    """The mode that took the least time overall; empty where none was measured."""
    overall = {mode: metrics[f"{mode}.overall"].value for mode in among if f"{mode}.overall" in metrics}
    known = {mode: time for mode, time in overall.items() if time is not None}
    return min(known, key=lambda mode: known[mode], default="")


def best_host(metrics: Metrics) -> str:
    """The fastest mode without offload: what an offload is judged by."""
    return fastest(metrics, [mode for mode in modes(metrics) if not offloaded(mode)])


def unused(method: Mapping[str, Any]) -> tuple[str, ...]:
    """The modes that DPUs did not carry, as their own tally or counters say."""
    return tuple(mode for mode, used in mapping(method.get("used")).items() if used is False)


def unused_launches(records: Iterable[Record], mode: str) -> int:
    """In how many launches the DPUs did not carry a mode."""
    return sum(mode in unused(record.method) for record in records)


def left_out(records: Iterable[Record]) -> dict[str, str]:
    """The modes that a launch could not measure, each with the reason."""
    return {mode: str(why) for record in records for mode, why in mapping(record.method.get("left_out")).items()}
