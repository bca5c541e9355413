"""From samples to metrics: pure arithmetic on times in ns.

With the medians tp of the collective alone, tc of the compute alone and to of both together::

    overlap  = (tp + tc - to) / min(tp, tc)      signed, never clipped: above 1 means that tp was inflated
    exposed  = to - tc
    dilation = (compute's time within to) / tc - 1
    net gain = 1 - to / (the best host mode's to)

The best host mode is the fastest of computing with the collective under way, with and without probes, and of
``blocking``, which computes after it: tp + tc. Every derived value follows from the medians that are reported.
Its interval is a percentile bootstrap: rounds are drawn with replacement, the same for all steps, and within a
drawn round each step's iterations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectives.offload.schedule import MODES
from microbench.record import Better, Metric
from microbench.stats import LEVEL, metric, quantile

RESAMPLES = 2000
FEWEST_ROUNDS = 4
INTERVALS = (
    "measured: exact order statistics of the median; derived: percentile bootstrap of the medians,"
    f" {RESAMPLES} resamples of rounds (the same for all steps), then of iterations within them"
)
HOST_OVERALL = ("host.overall", "probes16.overall", "blocking.overall")
_PURE = {"host": "host.pure", "probes16": "host.pure", "staged": "staged.pure"}
_BETTER: dict[str, Better] = {"overlap": "higher", "net_gain": "higher", "compute": "none"}
_UNITS = {"overlap": "1", "net_gain": "1", "dilation": "1"}

Values = dict[str, Any]  # floats, or arrays of resampled ones
Samples = Mapping[str, NDArray[np.int64]]


def derive(t: Mapping[str, Any]) -> Values:
    """Everything that follows from the medians ``t`` of all steps, in their unit; arrays do as well as numbers.

    ``t`` holds ``compute``, each mode's ``pure`` and ``overall``, and ``MODE.work`` where compute was timed
    within the overall time.
    """
    compute = t["compute"]
    found: Values = {"blocking.overall": t["host.pure"] + compute}
    with np.errstate(divide="ignore", invalid="ignore"):
        for mode in MODES:
            pure, overall = t[_PURE[mode]], t[f"{mode}.overall"]
            found[f"{mode}.overlap"] = np.divide(pure + compute - overall, np.minimum(pure, compute))
            found[f"{mode}.exposed"] = overall - compute
            if f"{mode}.work" in t:
                found[f"{mode}.dilation"] = np.divide(t[f"{mode}.work"], compute) - 1
        found["staged.net_gain"] = 1 - np.divide(t["staged.overall"], _best({**t, **found}))
    return found


def _best(t: Mapping[str, Any]) -> Any:
    return np.minimum.reduce([t[name] for name in HOST_OVERALL])


def best_host(t: Mapping[str, Any]) -> str:
    """The host mode with the least time overall: ``host``, ``probes16`` or ``blocking``."""
    known = {**t, **derive(t)}
    return min(HOST_OVERALL, key=lambda name: float(known[name])).partition(".")[0]


def medians(samples: Samples) -> dict[str, float]:
    """The median of every step; samples are of shape (rounds, block)."""
    return {name: float(np.median(times)) for name, times in samples.items()}


def resampled(samples: Samples, seed: int, resamples: int = RESAMPLES) -> dict[str, NDArray[np.float64]]:
    """Bootstrapped medians of every step, ``resamples`` of each; the rounds drawn are the same for all steps."""
    rng = np.random.default_rng(seed)
    rounds, block = next(iter(samples.values())).shape
    drawn = rng.integers(rounds, size=(resamples, rounds))[:, :, None]
    found = {}
    for name, times in samples.items():
        within = rng.integers(block, size=(resamples, rounds, block))
        found[name] = np.median(times[drawn, within].reshape(resamples, -1), axis=1)
    return found


def metrics(samples: Samples, noise_ns: float, seed: int = 0) -> dict[str, Metric]:
    """The metrics of a case from its samples in ns, each of shape (rounds, block).

    Overlap has no value where the collective or the compute is shorter than ``noise_ns``.
    """
    t = medians(samples)
    found = {name: _measured(name, times) for name, times in samples.items() if not name.endswith(".work")}
    found["probes16.pure"] = found["host.pure"]
    rounds, n = len(samples["compute"]), samples["compute"].size
    spread = derive(resampled(samples, seed)) if rounds >= FEWEST_ROUNDS else {}
    for name, value in derive(t).items():
        short = _too_short(t, name, noise_ns)
        found[name] = _derived(name, value, spread.get(name), rounds, n, short)
    return dict(sorted(found.items(), key=lambda item: _order(item[0])))


def _order(name: str) -> tuple[int, int]:
    mode, _, what = name.partition(".")
    whats = ("", "pure", "overall", "post", "overlap", "exposed", "dilation", "net_gain")
    return ("compute", "blocking", *MODES).index(mode), whats.index(what)


def _measured(name: str, times: NDArray[np.int64]) -> Metric:
    better: Better = _BETTER.get(name, "lower")
    return metric(quantile(times * 1e-9), "s", better)


def _too_short(t: Mapping[str, float], name: str, noise_ns: float) -> str:
    """Why a quotient of times means nothing, or nothing."""
    mode, _, what = name.partition(".")
    divisors = {"overlap": (_PURE[mode], "compute"), "dilation": ("compute",)} if mode in _PURE else {}
    for step in divisors.get(what, ()):
        if t[step] < noise_ns:
            return f"n/a: {step} {t[step]:.0f} ns < timer noise {noise_ns:.0f} ns"
    return ""


def _derived(name: str, value: Any, spread: NDArray[np.float64] | None, rounds: int, n: int, why_none: str) -> Metric:
    what = name.partition(".")[2]
    unit, better = _UNITS.get(what, "s"), _BETTER.get(what, "lower")
    if why_none:
        return Metric(None, unit, n, better=better, kind="derived", note=why_none)
    scale = 1e-9 if unit == "s" else 1.0
    if spread is None:
        note = f"no interval: {rounds} rounds < {FEWEST_ROUNDS}"
        return Metric(float(value) * scale, unit, n, better=better, kind="derived", note=note)
    low, high = (float(x) * scale for x in np.quantile(spread, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]))
    return Metric(float(value) * scale, unit, n, low, high, better, "derived")
