"""From steps to metrics: pure arithmetic on times in ns, of shape (ranks, rounds), by ``MODE.PART``.

A step, and each part of it, lasts as long as on its slowest rank. A step begins at the barrier to which every rank
comes with its images: waiting for them (data) is beside the step, so that a slow loader is no communication. With a
step s of one mode and the step without an exchange n of the same round::

    exposed           = median(s - n)
    exposed_fraction  = exposed / median(s)                                   a ratio of summaries
    dilation          = median(compute within s / compute within n) - 1       compute: backward until the last gradient
    cpu_per_byte      = median(processor time of s - that of n) / bytes of gradients, a rank's mean
    imbalance         = median(longest / mean of the ranks' own compute in s) - 1
    efficiency        = T1 / Tp with weak scaling, T1 / (p Tp) with strong    T1: one rank's step, alone
    images_per_s      = images / median(data + s)                             what a user gets, loading included
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from microbench.record import Better, Metric
from microbench.stats import LEVEL, Interval, metric, quantile, samples_needed
from training.exchange.modes import NOOP
from training.steps import PARTS

TIMES = ("data", "forward", "backward", "optimizer")
PLAIN = ("step", "exposed", "exposed_fraction", "images_per_s", "efficiency")
"""Metrics that the first exchange has without its name, too."""
_NS = 1e-9

Samples = Mapping[str, NDArray[np.int64]]
Series = NDArray[np.float64]


@dataclass(frozen=True)
class Scale:
    """What times are divided by: ``images`` that are trained on in a step, ``nbytes`` of gradients, ``ranks``."""

    images: int
    nbytes: int
    ranks: int
    strong: bool = False


def metrics(
    samples: Samples, modes: Sequence[str], alone_ns: Sequence[int], scale: Scale, level: float = LEVEL
) -> dict[str, Metric]:
    """The metrics of all ``modes``; ``level`` is that of one look, where several were taken."""
    found = {"step_noop": metric(quantile(_slowest(samples, NOOP, "step"), level=level), "s")}
    found |= {f"{NOOP}.{part}": metric(quantile(_slowest(samples, NOOP, part), level=level), "s") for part in TIMES}
    alone = np.asarray(alone_ns, "f8") * _NS
    if alone.size:
        found["step_alone"] = metric(quantile(alone), "s")
    for place, mode in enumerate(modes):
        own = _mode(samples, mode, scale, level) | ({"efficiency": efficiency(
            alone, _slowest(samples, mode, "step"), scale, level)} if alone.size else {})  # fmt: skip
        found |= {f"{mode}.{name}": value for name, value in own.items()}
        if place == 0:
            found = {name: own[name] for name in PLAIN if name in own} | found
    return found


def _mode(samples: Samples, mode: str, scale: Scale, level: float) -> dict[str, Metric]:
    step, noop = (_slowest(samples, name, "step") for name in (mode, NOOP))
    median = quantile(step, level=level)
    whole = quantile(step + _slowest(samples, mode, "data"), level=level)
    rate = metric(whole.map(float(scale.images), power=-1), "images/s", "higher")
    found = {
        "step": metric(median, "s"),
        "step_p90": metric(quantile(step, 0.9), "s", q=0.9),
        "step_p99": metric(quantile(step, 0.99), "s", q=0.99),
        "images_per_s": replace(rate, kind="derived"),
    }
    found |= {part: metric(quantile(_slowest(samples, mode, part), level=level), "s") for part in TIMES}
    found["exposed"] = metric(quantile(step - noop, level=level), "s")
    found["exposed_fraction"] = exposed_fraction(step, noop, level)
    within, without = (_slowest(samples, name, "compute") for name in (mode, NOOP))
    found["dilation"] = _derived(within / without - 1, "1", level)
    spent = (samples[f"{mode}.cpu"] - samples[f"{NOOP}.cpu"]).mean(axis=0) * _NS / scale.nbytes
    found["cpu_per_byte"] = _derived(spent, "s/byte", level)
    found["imbalance"] = _imbalance(samples, mode, level)
    return found


def _slowest(samples: Samples, mode: str, part: str) -> Series:
    return np.asarray(samples[f"{mode}.{part}"].max(axis=0) * _NS, "f8")


def _derived(series: Series, unit: str, level: float) -> Metric:
    return replace(metric(quantile(series, level=level), unit), kind="derived")


def _imbalance(samples: Samples, mode: str, level: float) -> Metric:
    own = sum(samples[f"{mode}.{part}"].astype("f8") for part in ("forward", "compute", "optimizer"))
    own = np.asarray(own)
    if len(own) == 1:
        return Metric(None, "1", own.shape[1], kind="derived", note="n/a: one rank trains")
    return _derived(own.max(axis=0) / own.mean(axis=0) - 1, "1", level)


def exposed_fraction(step_s: Series, noop_s: Series, level: float = LEVEL) -> Metric:
    """Median exposed time over median step time: a ratio of summaries, not a summary of ratios."""
    return _ratio(step_s - noop_s, step_s, (level, level), "lower")


def efficiency(alone_s: Series, step_s: Series, scale: Scale, level: float = LEVEL) -> Metric:
    """One rank's step over that of all, which do as much each (weak scaling) or together (strong)."""
    found = _ratio(alone_s, step_s, (LEVEL, level), "higher")  # nobody looks at steps alone before they end
    if not scale.strong:
        return found
    ends = (None if end is None else end / scale.ranks for end in (found.value, found.low, found.high))
    value, low, high = ends
    return replace(found, value=value, low=low, high=high)


def _ratio(top: Series, bottom: Series, levels: tuple[float, float], better: Better) -> Metric:
    """The ratio of two medians, at the levels of a look at each. Its interval: the widest ratio of their ends.

    Each is at a level that leaves half of the error (Bonferroni), so that it holds with at least the usual level.
    """
    over, under = (quantile(of, level=_halved(level)) for of, level in zip((top, bottom), levels, strict=True))
    low, high = _ratio_ends(over, under)
    few = min(over, under, key=lambda found: (found.low is not None, found.n))
    note = "" if low is not None else f"n={few.n} < {samples_needed(level=few.level)}"
    return Metric(over.value / under.value, "1", min(over.n, under.n), low, high, better, "derived", note)


def _halved(level: float) -> float:
    """The level that leaves half of the error."""
    return 1 - (1 - level) / 2


def _ratio_ends(top: Interval, bottom: Interval) -> tuple[float | None, float | None]:
    if top.low is None or top.high is None or bottom.low is None or bottom.high is None:
        return None, None
    ratios = [t / b for t in (top.low, top.high) for b in (bottom.low, bottom.high)]
    return min(ratios), max(ratios)


def columns(steps: NDArray[np.int64], mode: str) -> dict[str, NDArray[np.int64]]:
    """Samples by name of steps of one mode, of shape (ranks, rounds, parts)."""
    return {f"{mode}.{part}": np.ascontiguousarray(steps[:, :, place]) for place, part in enumerate(PARTS)}
