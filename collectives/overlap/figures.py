"""From samples to metrics: pure arithmetic on times in ns.

With the medians tp of the collective alone, tc of the compute alone and to of both together::

    overlap      = (tp + tc - to) / min(tp, tc)   signed, never clipped: above 1 the longer of both was inflated
    exposed      = to - tc
    availability = 1 - exposed / tp               what of the collective's time the host has for its own work
    dilation     = (compute's time within to) / tc - 1
    cpu          = (processor time with both - of the compute alone) / operations
    net gain     = 1 - to / (the best host mode's to)

The best host mode is the fastest of those measured and of ``blocking``, which computes after the collective: tp + tc.
A quotient has no value where a time that it divides by is below the timer's noise, nor where its interval is so wide
that the noise of its numerator exceeds its divisor. Where nothing was offloaded, nothing was gained.
Every derived value follows from the medians that are reported. Its interval is a percentile bootstrap: rounds are
drawn with replacement, the same for all steps, and within a drawn round each step's iterations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectives.overlap.options import BLOCKING, HOST_MODES, MODES, OFFLOAD_MODES
from collectives.overlap.schedule import COMPUTE, HOST_PURE, OVERALL, pure_of
from microbench.record import Better, Metric
from microbench.stats import metric, percentile_ends, quantile

RESAMPLES = 2000
FEWEST_ROUNDS = 4
INTERVALS = (
    "measured: exact order statistics of the median; derived: percentile bootstrap of the medians,"
    f" {RESAMPLES} resamples of rounds (the same for all steps), then of iterations within them"
)
NOT_USED = "n/a: host (offload not used)"
NOTHING = "n/a: nothing was offloaded"
CPU, WORK = "processor", "work"  # samples that metrics are derived from, and are none themselves
_WIDEST = 1.0  # half an interval of a quotient: from nothing hidden to all
_LEAST_PART = 0.05  # of the longer of pure and compute: without an interval, less tells nothing of what hides
_BLOCKS = 0.5  # of the pure time: a call that takes so long is no start of anything

_ORDER = (
    "", "pure", "overall", "post", "test", "test_longest", "wait", "overlap", "exposed", "availability", "dilation",
    "cpu", "net_gain",
)  # fmt: skip
_BETTER: dict[str, Better] = {"overlap": "higher", "availability": "higher", "net_gain": "higher", COMPUTE: "none"}
_UNITS = dict.fromkeys(("overlap", "availability", "dilation", "net_gain"), "1")

Values = dict[str, Any]  # floats, or arrays of resampled ones
Samples = Mapping[str, NDArray[np.int64]]


def modes(names: Iterable[str]) -> tuple[str, ...]:
    """The modes that have an overall time among ``names``, in the usual order."""
    there = set(names)
    return tuple(mode for mode in MODES if f"{mode}.{OVERALL}" in there)


def derive(t: Mapping[str, Any], outstanding: int = 1) -> Values:
    """Everything that follows from the medians ``t`` of all samples, in their unit; arrays do as well as numbers.

    ``t`` holds ``compute``, ``host.pure``, each mode's overall and, where it has one of its own, pure time;
    ``MODE.work`` is the compute's time within the overall one, ``MODE.processor`` the process's in an iteration, in
    which ``outstanding`` operations were under way.
    """
    compute = t[COMPUTE]
    found: Values = {f"{BLOCKING}.{OVERALL}": t[HOST_PURE] + compute}
    with np.errstate(divide="ignore", invalid="ignore"):
        for mode in modes(t):
            pure, overall = t[pure_of(mode)], t[f"{mode}.{OVERALL}"]
            exposed = overall - compute
            found[f"{mode}.overlap"] = np.divide(pure + compute - overall, np.minimum(pure, compute))
            found[f"{mode}.exposed"] = exposed
            found[f"{mode}.availability"] = 1 - np.divide(exposed, pure)
            if f"{mode}.{WORK}" in t:
                found[f"{mode}.dilation"] = np.divide(t[f"{mode}.{WORK}"], compute) - 1
            if f"{mode}.{CPU}" in t:
                found[f"{mode}.cpu"] = (t[f"{mode}.{CPU}"] - t[f"{COMPUTE}.{CPU}"]) / outstanding
            if mode in OFFLOAD_MODES:
                found[f"{mode}.net_gain"] = 1 - np.divide(overall, _best({**t, **found}))
    return found


def _host_overall(t: Mapping[str, Any]) -> list[str]:
    names = (f"{mode}.{OVERALL}" for mode in (*HOST_MODES, BLOCKING))
    return [name for name in names if name in t]


def _best(t: Mapping[str, Any]) -> Any:
    return np.minimum.reduce([t[name] for name in _host_overall(t)])


def best_host(t: Mapping[str, Any]) -> str:
    """The host mode with the least time overall, ``blocking`` included."""
    known = {**t, **derive(t)}
    return min(_host_overall(known), key=lambda name: float(known[name])).partition(".")[0]


def medians(samples: Samples) -> dict[str, float]:
    """The median of every sample; they are of shape (rounds, block)."""
    return {name: float(np.median(times)) for name, times in samples.items()}


def resampled(
    samples: Mapping[str, NDArray[Any]], seed: int, resamples: int = RESAMPLES
) -> dict[str, NDArray[np.float64]]:
    """Bootstrapped medians of every sample, ``resamples`` of each; the rounds drawn are the same for all."""
    rng = np.random.default_rng(seed)
    rounds = len(next(iter(samples.values())))
    drawn = rng.integers(rounds, size=(resamples, rounds))[:, :, None]
    found = {}
    for name, times in samples.items():
        within = rng.integers(times.shape[1], size=(resamples, rounds, times.shape[1]))
        found[name] = np.median(times[drawn, within].reshape(resamples, -1), axis=1)
    return found


def metrics(
    samples: Samples, noise_ns: float, seed: int = 0, outstanding: int = 1, idle: Mapping[str, str] | None = None
) -> dict[str, Metric]:
    """The metrics of a case from its samples in ns, each of shape (rounds, block).

    Overlap and what else divides by a time has no value where that is shorter than ``noise_ns``, and a mode of
    ``idle`` (its DPUs did not do it, or had nothing to do) has no net gain, for the reason that stands there.
    """
    t = medians(samples)
    found = {name: _measured(name, times) for name, times in samples.items() if not _internal(name)}
    for mode in modes(samples):
        found.setdefault(f"{mode}.pure", found[pure_of(mode)])
    rounds, n = len(samples[COMPUTE]), samples[COMPUTE].size
    spread = derive(resampled(samples, seed), outstanding) if rounds >= FEWEST_ROUNDS else {}
    without = {f"{mode}.net_gain": why for mode, why in (idle or {}).items()}
    for name, value in derive(t, outstanding).items():
        why_none = without.get(name) or _too_short(t, name, noise_ns) or _too_noisy(t, name, spread.get(name))
        found[name] = _derived(name, value, spread.get(name), rounds, n, why_none)
    return dict(sorted(found.items(), key=lambda item: _place(item[0])))


def _internal(name: str) -> bool:
    return name.partition(".")[2] in (CPU, WORK)


def _place(name: str) -> tuple[int, int]:
    mode, _, what = name.partition(".")
    return (COMPUTE, BLOCKING, *MODES).index(mode), _ORDER.index(what)


def _measured(name: str, times: NDArray[np.int64]) -> Metric:
    better: Better = _BETTER.get(name, "lower")
    return metric(quantile(times.ravel() * 1e-9), "s", better)


def _too_short(t: Mapping[str, float], name: str, noise_ns: float) -> str:
    """Why a quotient of times means nothing, or nothing."""
    mode, _, what = name.partition(".")
    if mode == BLOCKING:
        return ""
    for step in (*_divisors(mode).get(what, ()), *((pure_of(mode), HOST_PURE) if what == "net_gain" else ())):
        if t[step] < noise_ns:
            return f"n/a: {step} {t[step]:.0f} ns < timer noise {noise_ns:.0f} ns"
    return ""


def _divisors(mode: str) -> dict[str, tuple[str, ...]]:
    """What a mode's quotients divide by, the least of several."""
    return {"overlap": (pure_of(mode), COMPUTE), "availability": (pure_of(mode),), "dilation": (COMPUTE,)}


def _too_noisy(t: Mapping[str, float], name: str, spread: NDArray[np.float64] | None) -> str:
    """Why noise is all that a quotient tells, or nothing: what is divided varies by more than the divisor."""
    mode, _, what = name.partition(".")
    divisors = _divisors(mode).get(what, ()) if mode != BLOCKING else ()
    if not divisors:
        return ""
    step = min(divisors, key=lambda name: t[name])
    if spread is not None:
        low, high = percentile_ends(spread)
        wide = not (high - low) / 2 <= _WIDEST
        return f"n/a: noise of the times > {step} {t[step] * 1e-6:.3g} ms" if wide else ""
    longest = max(t[pure_of(mode)], t[COMPUTE])
    small = t[step] < _LEAST_PART * longest
    return f"n/a: {step} {t[step] * 1e-6:.3g} ms is little beside {longest * 1e-6:.3g} ms" if small else ""


def _derived(name: str, value: Any, spread: NDArray[np.float64] | None, rounds: int, n: int, why_none: str) -> Metric:
    what = name.partition(".")[2]
    unit, better = _UNITS.get(what, "s"), _BETTER.get(what, "lower")
    if why_none:
        return Metric(None, unit, n, better=better, kind="derived", note=why_none)
    scale = 1e-9 if unit == "s" else 1.0
    if spread is None:
        note = f"no interval: {rounds} rounds < {FEWEST_ROUNDS}"
        return Metric(float(value) * scale, unit, n, better=better, kind="derived", note=note)
    low, high = (end * scale for end in percentile_ends(spread))
    return Metric(float(value) * scale, unit, n, low, high, better, "derived")


def blocking_calls(t: Mapping[str, float], noise_ns: float) -> dict[str, list[str]]:
    """By mode, the calls that should return at once and took half of the pure time or more: ``post``, ``test``."""
    found: dict[str, list[str]] = {}
    for mode in modes(t):
        pure = t[pure_of(mode)]
        calls = {"post": t.get(f"{mode}.post", 0.0), "test": t.get(f"{mode}.test_longest", 0.0)}
        long = [name for name, ns in calls.items() if ns >= max(_BLOCKS * pure, noise_ns)]
        if long:
            found[mode] = long
    return found
