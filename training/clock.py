"""Steps that all hosts begin together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from microbench.engine import LoopError
from training.exchange.modes import NOOP
from training.exchange.opened import Ways
from training.exchange.ways import Exchange
from training.replica import Gradients
from training.steps import Step


class Diverged(Exception):
    """The loss is no longer a number; raised by every host alike."""


class Trainee(Protocol):
    """Who takes a step: a replica, or what stands in for one. ``loss`` is that of the last gradients."""

    loss: float

    def load(self) -> None:
        """What comes before a step, and needs nobody else: take its images."""

    def step(self, exchange: Exchange | None, cap: int) -> Step:
        """A step by an exchange or by none, with buckets that ``cap`` closes."""

    def gradients(self, exchange: Exchange | None, cap: int) -> Gradients:
        """Gradients of the present weights, exchanged or not."""


class Together(Protocol):
    """How those who take steps agree."""

    def barrier(self) -> None:
        """All wait for all."""

    def any(self, truth: bool) -> bool:
        """Whether it holds for any."""


class Nobody:
    """A host that takes steps by itself."""

    def barrier(self) -> None:
        """Nobody is waited for."""

    def any(self, truth: bool) -> bool:
        """What holds here."""
        return truth


@dataclass
class Clock:
    """``caps`` has the size at which each mode's buckets are closed, and that of steps without an exchange."""

    meeting: Together
    trainee: Trainee
    ways: Ways
    caps: Mapping[str, int]
    steps: int = 0

    def step(self, mode: str, cap: int | None = None) -> Step:
        """One step by a mode or by ``noop``, after a barrier to which every host comes with its images.

        Raises Diverged on every host alike, and CannotRun where an exchange fails.
        """
        self.trainee.load()
        self.meeting.barrier()
        with self._explained():
            step = self.trainee.step(self._way(mode), self.caps[mode] if cap is None else cap)
        self.steps += 1
        self._check(step.loss, self.steps)
        return step

    def gradients(self, mode: str) -> Gradients:
        """Gradients by a mode or by ``noop``. Raises Diverged and CannotRun as a step does."""
        with self._explained():
            found = self.trainee.gradients(self._way(mode), self.caps[mode])
        self._check(self.trainee.loss, self.steps + 1)
        return found

    def _way(self, mode: str) -> Exchange | None:
        return None if mode == NOOP else self.ways.by_mode[mode]

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (RuntimeError, LoopError) as error:
            raise self.ways.explain(error) from error

    def _check(self, loss: float, step: int) -> None:
        if self.meeting.any(not math.isfinite(loss)):
            raise Diverged(f"the loss of step {step} is not finite")
