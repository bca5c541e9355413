"""What a step would take on another fabric, at another rate, in other buckets, by DPUs, and on thousands of hosts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from reports.beside import trainers
from reports.exchanges import metric_name
from reports.models import ddp, scaling
from reports.models.curve import Curve
from reports.models.fabric import reduction, two_way
from reports.models.predicted import DPU, Predicted, source, tensors
from reports.models.scaling import Scaled, Wire
from reports.models.step import Bounds, Exchange, Prediction, Profile, bounds, fused, predict
from reports.units import rate
from reports.view import View, alone

CAPS = ((1 << 20, "1 MiB"), (5 << 20, "5 MiB"), (None, "25 MiB (the first 1 MiB)"), (100 << 20, "100 MiB"),
        (0, "a bucket per tensor"))  # fmt: skip
BITS = 8


@dataclass(frozen=True)
class Instead:
    """Something else than what was measured, in words, and the step that would come of it.

    ``note`` is what must be read beside it; why there is none where ``prediction`` is None.
    """

    what: str
    prediction: Prediction | None
    note: str = ""

    @classmethod
    def of(cls, what: str, profile: Profile, exchange: Exchange, curve: Curve) -> Instead:
        """The step of a profile with an exchange, whose time rests on a curve that may not tell its buckets."""
        if why := curve.lacks(profile.bucket_bytes):
            return cls(what, None, why)
        return cls(what, predict(profile, exchange), curve.stretched(profile.bucket_bytes))


def wire(v: View, fabric: str) -> Wire | None:
    """A message's least latency, and the rate of two-way streams; None where either was not measured."""
    latency = [t for s in v.of("latency") if s.fabric == fabric and not alone(s) and (t := s.value("time"))]
    peak, reduced = v.peak(fabric) * two_way(v, fabric), reduction(v, fabric)
    return Wire(min(latency), 1 / peak, reduced.value if reduced else 0.0) if latency and peak else None


def fabrics(v: View, p: Predicted) -> Iterator[Instead]:
    """The same exchange over each other network whose allreduce was measured."""
    for name in v.networks:
        cost = source(v, p.summary, p.mode, name) if name != p.summary.fabric else None
        if cost is not None:
            other = replace(p.exchange, time_s=cost.curve, cpu_s=cost.cpu or p.exchange.cpu_s)
            yield Instead.of(f"over {name}", p.profile, other, cost.curve)


def line_rate(v: View, p: Predicted) -> Iterator[Instead]:
    """The measured allreduce if the wire had the rate that its fabric declares."""
    found, declared = wire(v, p.summary.fabric), v.rate(p.summary.fabric)
    if found is not None and declared:
        cost = scaling.other_rate(p.exchange.time_s, p.ranks, found, declared / BITS)
        other = replace(p.exchange, time_s=cost)
        yield Instead.of(f"at line rate, {rate(declared)}", p.profile, other, p.curve)


def offloaded(v: View, p: Predicted) -> Iterator[Instead]:
    """The allreduce by DPUs, where that was measured and is not what was predicted."""
    cost = None if p.mode.startswith(DPU) else source(v, p.summary, DPU)
    if cost is not None:
        by_dpus = replace(p.exchange, time_s=cost.curve, cpu_s=cost.cpu or (lambda n: 0.0), apart=cost.cpu is None)
        yield Instead.of("allreduce offloaded to DPUs", p.profile, by_dpus, cost.curve)


def fusions(p: Predicted) -> Iterator[Instead]:
    """The same exchange with buckets closed at other sizes."""
    known = tensors(p.summary)
    if known is None:
        return
    for cap, told in CAPS:
        sizes, ready = ddp.rebuilt(*known, ddp.limits(cap))
        what = told if cap == 0 else f"buckets of {told}"
        yield Instead.of(what, fused(p.profile, sizes, ready), p.exchange, p.curve)


def alternatives(v: View, p: Predicted) -> list[Instead]:
    """All of them."""
    return [*fabrics(v, p), *line_rate(v, p), *offloaded(v, p), *fusions(p)]


def limits(v: View, p: Predicted) -> Bounds | None:
    """Between what the step must lie; None where the fabric's stream was not measured."""
    peak = v.peak(p.summary.fabric)
    return bounds(p.profile, p.exchange, p.ranks, peak) if peak else None


def scaled(v: View, p: Predicted, hosts: Sequence[int] = scaling.HOSTS) -> list[Scaled]:
    """The step on other numbers of hosts; nothing where one rank's step, or the fabric's wire, was not measured."""
    found, one = wire(v, p.summary.fabric), p.summary.value("step_alone")
    if found is None or not one:
        return []
    return scaling.scale(p.profile, p.exchange, p.ranks, found, one, hosts)


def efficiency(p: Predicted) -> float | None:
    """As measured, on the ranks that there were."""
    return p.summary.value(metric_name(p.mode, "efficiency")) if trainers(p.summary) > 1 else None
