"""Does the printed interval hold the truth as often as it says? The whole procedure, on simulated launches.

Launches differ by a lognormal factor of 10 %. Each is sampled with the stopping rule of the real loop; its median is
what the report sees. The truth is the median that infinitely many samples of infinitely many launches would have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from microbench.stats import Rule, quantile
from tests.figures.table import Row, figure

MOST = 2000
TARGET = 0.025  # of collectives
LAUNCH_SPREAD = 0.10
TARGETS = {6: 0.93, 10: 0.94}
WITHIN = 0.93
SEED = 20241
_AT_ONCE = 1000

Samples = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, int], Samples]


def lognormal(rng: np.random.Generator, launches: int, n: int) -> Samples:
    """Skewed, with 20 % spread."""
    return np.exp(rng.normal(0, 0.2, (launches, n)))


def bimodal(rng: np.random.Generator, launches: int, n: int) -> Samples:
    """Seven in ten about 1, the others about 1.5."""
    second = rng.random((launches, n)) < 0.3
    return np.where(second, 1.5, 1.0) * np.exp(rng.normal(0, 0.03, (launches, n)))


def heavy_tailed(rng: np.random.Generator, launches: int, n: int) -> Samples:
    """Above a floor, a Pareto tail of index 1.5: no variance."""
    return 1 + 0.1 * rng.pareto(1.5, (launches, n))


def autoregressive(rng: np.random.Generator, launches: int, n: int) -> Samples:
    """Logarithms are AR(1) with r = 0.5 and 20 % spread."""
    noise = rng.normal(0, 0.2 * np.sqrt(1 - 0.25), (launches, n))
    logs = np.empty((launches, n))
    logs[:, 0] = rng.normal(0, 0.2, launches)
    for i in range(1, n):
        logs[:, i] = 0.5 * logs[:, i - 1] + noise[:, i]
    return np.exp(logs)


KINDS: dict[str, Draw] = {
    "lognormal": lognormal, "bimodal": bimodal, "heavy-tailed": heavy_tailed, "AR(1), r = 0.5": autoregressive,
}  # fmt: skip


def truth(draw: Draw) -> float:
    """The median of one launch whose factor is 1."""
    return float(np.median(draw(np.random.default_rng(SEED), 2000, 2000)))


def sampled(rule: Rule, series: Samples) -> tuple[Samples, bool]:
    """What the loop would have seen of a launch, and whether it stopped at the target."""
    for look in rule.looks:
        if rule.enough(series[:look]):
            return series[:look], True
    return series, False


def launches(draw: Draw, count: int, seed: int) -> Iterator[tuple[float, float, bool, int, bool]]:
    """Per launch: its printed median, its own factor, whether its own interval held its truth, n, converged."""
    rng = np.random.default_rng(seed)
    rule = Rule.plan(TARGET, 10, MOST)
    median = truth(draw)
    for start in range(0, count, _AT_ONCE):
        size = min(_AT_ONCE, count - start)
        factors = np.exp(rng.normal(0, LAUNCH_SPREAD, size))
        for factor, series in zip(factors, draw(rng, size, MOST) * factors[:, None], strict=True):
            seen, converged = sampled(rule, series)
            own = rule.verdict(seen)
            held = own.low is not None and own.high is not None and own.low <= median * factor <= own.high
            yield own.value, float(factor), held, seen.size, converged


def covered(medians: Samples, median: float) -> float:
    """In which share of the rows the interval over launches holds the truth."""
    intervals = [quantile(row) for row in medians]
    return float(np.mean([i.low is not None and i.high is not None and i.low <= median <= i.high for i in intervals]))


def measure(replicates: int) -> tuple[list[Row], list[Row]]:
    """Rows per kind of iterations, and the figures: the least coverage over the kinds."""
    rows: list[Row] = []
    for number, (kind, draw) in enumerate(KINDS.items()):
        found = list(launches(draw, replicates * max(TARGETS), SEED + number))
        medians = np.array([f[0] for f in found]).reshape(replicates, -1)
        means = [float(np.mean([f[i] for f in found])) for i in (2, 3, 4)]
        row: Row = {"kind": kind, **dict(zip(("within", "n", "converged"), means, strict=True))}
        row |= {f"over {count}": covered(medians[:, :count], truth(draw)) for count in TARGETS}
        rows.append(row)
    figures = [
        _least(f"coverage of nominal 95 % over {count} launches", rows, f"over {count}", target, replicates)
        for count, target in TARGETS.items()
    ]
    figures.append(_least("coverage within a launch, at the stop", rows, "within", WITHIN, replicates * max(TARGETS)))
    return rows, figures


def _least(name: str, rows: list[Row], key: str, target: float, n: int) -> Row:
    worst = min(rows, key=lambda row: float(row[key]))
    return figure(f"{name} ({worst['kind']})", f">= {target}", worst[key], n, worst[key] >= target)
