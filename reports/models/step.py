"""The time of a data-parallel step from when its gradients are ready and what their exchange costs.

Buckets are exchanged one after the other, each once its gradients are ready and the one before it is through: wait-free
backpropagation (Zhang et al., USENIX ATC 2017; Shi et al., INFOCOM 2019). Where processors move the bytes, an exchange
slows the compute beside it, and compute the exchange: both are told by the processor's time that the exchange takes.
Without that the prediction is a bound that no host without an offload reaches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

Cost = Callable[[float], float]
HIDDEN = 0.10  # of the step: what exposes no more is called hidden


@dataclass(frozen=True)
class Profile:
    """A step without an exchange, in s, and its buckets in the order of their exchange.

    ``ready_s`` is when each bucket's gradients are ready after backward began; ``step_s`` is the whole step, and
    ``before_s`` what of it comes before backward. ValueError where there is not a time for each bucket.
    """

    step_s: float
    before_s: float
    bucket_bytes: tuple[float, ...]
    ready_s: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.bucket_bytes) != len(self.ready_s) or not self.ready_s:
            raise ValueError("every bucket needs a time at which it is ready")

    @property
    def nbytes(self) -> float:
        """All gradients."""
        return sum(self.bucket_bytes)

    @property
    def backward_s(self) -> float:
        """Backward until the last gradient is ready."""
        return max(self.ready_s)

    def faster(self, times: float) -> Profile:
        """The same network on a processor that computes so many times faster."""
        return replace(self, step_s=self.step_s / times, before_s=self.before_s / times,
                       ready_s=tuple(ready / times for ready in self.ready_s))  # fmt: skip


@dataclass(frozen=True)
class Exchange:
    """What exchanging a bucket costs: its time alone, and the processor's time in it, by bytes, in s.

    ``local_s_per_byte`` is what the compute's own thread does to a bucket before it is handed over. Where ``apart``,
    the exchange has a processor of its own, and slows nothing.
    """

    time_s: Cost
    cpu_s: Cost = lambda nbytes: 0.0
    local_s_per_byte: float = 0.0
    apart: bool = False

    def shares(self, nbytes: float) -> tuple[float, float]:
        """How fast compute and exchange go on beside each other, each alone being 1.

        One processor is shared fairly: an exchange that needs up to half of it has what it needs, else a half.
        """
        alone = self.time_s(nbytes)
        need = self.cpu_s(nbytes) / alone if alone > 0 and not self.apart else 0.0
        if need <= 0.5:
            return 1 - max(need, 0.0), 1.0
        return 0.5, 0.5 / need


@dataclass(frozen=True)
class Prediction:
    """A step with its exchange, in s.

    ``exposed_s`` is what the exchange adds to the step, ``exchange_s`` all buckets' times alone, ``dilation`` how much
    longer backward's compute takes, relative to it.
    """

    step_s: float
    exposed_s: float
    exchange_s: float
    dilation: float

    @property
    def exposed_fraction(self) -> float:
        """The exposed part of the step."""
        return self.exposed_s / self.step_s

    @property
    def hidden(self) -> bool:
        """Whether the exchange shows in no more than 10 % of the step."""
        return self.exposed_fraction <= HIDDEN

    @property
    def hidden_fraction(self) -> float:
        """How much of the exchange hides behind compute; below 0 where it costs more than its own time."""
        return 1 - self.exposed_s / self.exchange_s if self.exchange_s > 0 else 1.0


def predict(profile: Profile, exchange: Exchange) -> Prediction:
    """Step time and exposed communication of a profile with an exchange."""
    compute_end, last = _timeline(profile, exchange)
    exposed = max(compute_end, last) - profile.backward_s
    total = sum(exchange.time_s(nbytes) for nbytes in profile.bucket_bytes)
    return Prediction(profile.step_s + exposed, exposed, total, compute_end / profile.backward_s - 1)


def _timeline(profile: Profile, exchange: Exchange) -> tuple[float, float]:
    """When compute and the last exchange end, after the start of backward.

    Compute's progress is told in the time that it takes alone, in which buckets are ready; it includes what its thread
    does to the buckets before. Between two events - a bucket ready, an exchange through - both go on at fixed rates.
    """
    due, goal = _due(profile, exchange)
    now, ended, done, handed, left, sending = 0.0, 0.0, 0.0, 0, 0.0, -1
    while done < goal or handed < len(due) or sending >= 0:
        if sending < 0 and handed < len(due) and due[handed] <= done:
            sending, left = handed, exchange.time_s(profile.bucket_bytes[handed])
            handed += 1
        busy = done < goal
        compute, wire = exchange.shares(profile.bucket_bytes[sending]) if sending >= 0 and busy else (1.0, 1.0)
        ahead = [at for at in (*due[handed : handed + 1], goal) if at > done]
        waits = [(at - done) / compute for at in ahead[:1]] + ([left / wire] if sending >= 0 else [])
        if not waits:
            continue
        step = min(waits)
        now += step
        # Exactly at the event that it was: rounding would leave a rest that never ends.
        done = ahead[0] if busy and ahead and step == waits[0] else done + (step * compute if busy else 0.0)
        if done >= goal and busy:
            ended = now
        left = 0.0 if sending >= 0 and step == waits[-1] else left - step * wire
        sending = -1 if sending >= 0 and left <= 0 else sending
    return ended, now


def _due(profile: Profile, exchange: Exchange) -> tuple[list[float], float]:
    """When each bucket is handed over, in compute's own time, and when compute is through; in order of buckets."""
    due, extra, latest = [], 0.0, 0.0
    for ready, nbytes in zip(profile.ready_s, profile.bucket_bytes, strict=True):
        extra += exchange.local_s_per_byte * nbytes
        latest = max(latest, ready)
        due.append(latest + extra)
    return due, max(profile.backward_s + extra, due[-1])


@dataclass(frozen=True)
class Bounds:
    """Between what a step must lie, in s: nothing exposed, nothing hidden, and as fast as the wire alone allows."""

    ideal_s: float
    serial_s: float
    wire_s: float


def bounds(profile: Profile, exchange: Exchange, ranks: int, bytes_per_s: float) -> Bounds:
    """The bounds; the wire carries 2 (p - 1) / p of all gradients from when the first bucket is ready."""
    serial = profile.step_s + sum(exchange.time_s(nbytes) for nbytes in profile.bucket_bytes)
    wire = 2 * (ranks - 1) / ranks * profile.nbytes / bytes_per_s
    exposed = max(0.0, profile.ready_s[0] + wire - profile.backward_s)
    return Bounds(profile.step_s, serial, profile.step_s + exposed)


def fused(profile: Profile, bucket_bytes: Sequence[float], ready_s: Sequence[float]) -> Profile:
    """The same step with other buckets."""
    return replace(profile, bucket_bytes=tuple(bucket_bytes), ready_s=tuple(ready_s))
