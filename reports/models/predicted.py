"""A run's training steps as its other measurements predict them: no number of the step that is predicted is used.

From the training itself come the step without an exchange, and its buckets with the times at which they are ready.
What an exchange costs comes from the run's allreduces, and what it takes of the processor from its overlap
measurements; only where there are none of these, from the training's own record, which is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from reports.beside import primitive, trainers
from reports.exchanges import buckets, exchanges, metric_name, replayed, told
from reports.load import mapping
from reports.models import measured
from reports.models.curve import Curve
from reports.models.fabric import LEAST_S, reduction
from reports.models.points import Points, of_summaries
from reports.models.step import Exchange, Prediction, Profile, predict
from reports.summary import Summary
from reports.variants import LIBRARY, MPI
from reports.view import TRAINING, View, alone, grouped, number, setup

DPU, GLOO = "dpu", "gloo"
OVERLAPPED = ("overlap_allreduce", "offload_allreduce")
TIMED = {GLOO: ("gloo",), MPI: ("host",), DPU: ("window", "staged")}
"""The modes of an overlap measurement that tell an exchange's time alone, the first there counting."""
SPENT = {MPI: ("probes64", "probes16", "host")}
"""And those that tell the processor's time, where it is another: a host that only waits spins, a thread may sleep."""


@dataclass(frozen=True, eq=False)
class Source:
    """What an exchange costs and where that was measured: ``notes`` tell what must be read beside a prediction.

    ``cpu`` is the processor's time by size, None where the record of training has to tell it.
    """

    curve: Curve
    cpu: Curve | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Predicted:
    """One exchange of one case of training, in s: as predicted, and as measured. ``curve`` has its time by size."""

    summary: Summary
    mode: str
    profile: Profile
    exchange: Exchange
    curve: Curve
    prediction: Prediction
    notes: tuple[str, ...] = field(default_factory=tuple)

    def measured(self, part: str) -> float | None:
        """A measured metric of the exchange: ``step``, ``exposed``, ``dilation``, ..."""
        return self.summary.value(metric_name(self.mode, part))

    @property
    def error(self) -> float | None:
        """Of the predicted step, relative to the measured one."""
        step = self.measured("step")
        return self.prediction.step_s / step - 1 if step else None

    @property
    def ranks(self) -> int:
        """How many ranks train."""
        return trainers(self.summary)


def predictions(v: View) -> list[Predicted]:
    """Every exchange of every case of training that can be predicted."""
    trained = [s for s in v.of(TRAINING) if not alone(s)]
    return [found for s in trained for mode in exchanges(s) if (found := predicted(v, s, mode))]


def predicted(v: View, s: Summary, mode: str) -> Predicted | None:
    """The prediction of one exchange; None where times of buckets, or of allreduces of their sizes, are not known."""
    known, cost = profile(s, mode), source(v, s, mode)
    if known is None or cost is None or cost.curve.lacks(known.bucket_bytes):
        return None
    sizes = known.bucket_bytes
    notes = list(filter(None, (*cost.notes, cost.curve.stretched(sizes), _below(cost.cpu, sizes))))
    per_byte = s.value(metric_name(mode, "cpu_per_byte")) or 0.0
    if cost.cpu is None:
        notes.append("processor's time from training itself" if per_byte > 0 else "processor's time unknown")
    divided = reduction(v, s.fabric)
    exchange = Exchange(cost.curve, cost.cpu or (lambda n: per_byte * n), divided.value if divided else 0.0)
    return Predicted(s, mode, known, exchange, cost.curve, predict(known, exchange), tuple(notes))


def _below(cpu: Curve | None, sizes: Sequence[float]) -> str:
    """That the processor's time is not known of such buckets, or nothing."""
    lacking = cpu.lacks(sizes) if cpu is not None else ""
    return f"processor's time: {lacking}" if lacking else ""


def refusals(v: View) -> list[tuple[Summary, str, str]]:
    """The exchanges of which all is known but times of allreduces as small, or as large: case, exchange, and why."""
    trained = [(s, mode) for s in v.of(TRAINING) if not alone(s) for mode in exchanges(s)]
    found = [(s, mode, profile(s, mode), source(v, s, mode)) for s, mode in trained]
    return [(s, mode, why) for s, mode, known, cost in found
            if known is not None and cost is not None and (why := cost.curve.lacks(known.bucket_bytes))]  # fmt: skip


def profile(s: Summary, mode: str) -> Profile | None:
    """The step without an exchange, in the buckets of one; None where the record does not tell when they are ready."""
    step, sizes = s.value("step_noop"), buckets(s, mode)
    known = mapping(mapping(s.method.get("gradient_ready_s")).get("buckets")).get(told(s, mode, "fusion"))
    ready = [at for each in known if (at := number(each)) is not None] if isinstance(known, list | tuple) else []
    if step is None or not sizes or len(ready) != len(sizes):
        return None
    return Profile(step, s.value("noop.forward") or 0.0, tuple(sizes), tuple(ready))


def tensors(s: Summary) -> tuple[list[int], list[float]] | None:
    """Bytes of each tensor and when its gradient is ready; None where the record does not tell."""
    sizes = s.method.get("parameter_bytes")
    ready = mapping(s.method.get("gradient_ready_s")).get("parameters")
    if not isinstance(sizes, list | tuple) or not isinstance(ready, list | tuple) or len(sizes) != len(ready):
        return None
    return [int(number(n) or 0) for n in sizes], [float(number(at) or 0.0) for at in ready]


def source(v: View, s: Summary, mode: str, fabric: str = "") -> Source | None:
    """What an exchange costs on a fabric, that of the training unless another is named; None where it is not known."""
    fabric, ranks = fabric or s.fabric, trainers(s)
    kind, _, transport = mode.partition("+")[0].partition("-")
    backend, algorithm = primitive(s, mode)
    overlapped = _overlapped(v, fabric, ranks, kind or backend, transport) if algorithm == LIBRARY else None
    points = None if kind == DPU else _allreduces(v, fabric, ranks, backend, algorithm, s.thread_level)
    notes = []
    if points is None:
        if overlapped is None:
            return None
        points = overlapped[0]
    elif overlapped is not None and len(overlapped[0]) > len(points):
        points = overlapped[0]
    if replayed(s):
        notes.append("peers replayed")
    return Source(Curve.of(points), overlapped[1] if overlapped else None, tuple(notes))


def _allreduces(v: View, fabric: str, ranks: int, backend: str, algorithm: str, thread_level: str) -> Points | None:
    """The measured times of one call at a rank count, at the same thread level where it was measured there."""
    calls = measured.calls(v, fabric)
    name = backend if backend != MPI else algorithm
    rows = [s for s in calls.get(name, []) if s.ranks == ranks]
    groups = grouped(rows, setup_and_level)
    best = max(groups.values(), key=lambda g: (g[0].thread_level == thread_level, len(g)), default=[])
    return _points(v, best, "time")


def setup_and_level(s: Summary) -> tuple[object, ...]:
    """What all sizes of a curve share."""
    return (*setup(s), s.thread_level)


def _overlapped(v: View, fabric: str, ranks: int, kind: str, transport: str = "") -> tuple[Points, Curve | None] | None:
    """Times alone, and the processor's, of an allreduce that was measured beside compute; None where none was."""
    there = [s for s in v.of(*OVERLAPPED) if s.fabric == fabric and trainers(s) == ranks and s.nbytes]
    rows = [s for s in there if not s.workload]  # as much compute as an allreduce takes, in registers
    for mode in (transport,) if kind == DPU and transport else TIMED.get(kind, ()):
        timed = [s for s in rows if s.value(f"{mode}.pure") is not None]
        best = max(grouped(timed, setup).values(), key=len, default=[])
        points = _points(v, best, f"{mode}.pure")
        if points is not None:
            return points, _spent(best, SPENT.get(kind, (mode,)))
    return None


def _spent(rows: Iterable[Summary], modes: Iterable[str]) -> Curve | None:
    """The processor's time by size: what the process took more than for its compute, or what compute lost, if more.

    What the kernel does for an exchange is not all in the process's time, but compute loses it.
    """
    found: dict[int, float] = {}
    for s in rows:
        mode = next((mode for mode in modes if s.value(f"{mode}.cpu") is not None), "")
        lost = (s.value(f"{mode}.dilation") or 0.0) * (s.value("compute") or 0.0)
        alone = s.value(f"{mode}.pure") or 0.0  # it cannot take more than it lasts
        if mode and s.nbytes:
            found[s.nbytes] = max(s.value(f"{mode}.cpu") or 0.0, min(lost, alone), LEAST_S)
    sizes = sorted(found)
    return Curve(np.array(sizes, "f8"), np.array([found[n] for n in sizes])) if sizes else None


def _points(v: View, rows: Iterable[Summary], name: str) -> Points | None:
    """The sizes with a time above 0; None where there is none."""
    found = of_summaries(v, rows, name)
    kept = found.where((found.time_s > 0) & (found.nbytes > 0))
    return kept if np.any(kept.nbytes) else None
