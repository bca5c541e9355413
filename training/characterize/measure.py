"""The blocks: every rank measures all kernels in its turn, again and again, while the others sleep."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from collectives.offload.waiting import Quiet
from training.characterize.cores import on
from training.characterize.crew import Crew
from training.characterize.kernels import NO_TORCH, Bench, Kernel
from training.characterize.pace import Pace

_PERIOD_NS = 10_000_000  # of the lab's quotas
_PHASES = 3
_MOST_CALLS = 1 << 20


@dataclass
class Own:
    """What one rank measured: ns of every block by variant, the calls and units of a block, and what it has not."""

    ns: dict[str, list[int]] = field(default_factory=dict)
    units: dict[str, float] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    fault: str = ""


class Turns:
    """One rank's side of the blocks; made and run by all ranks together."""

    def __init__(self, crew: Crew, rank: int, quiet: Quiet, bench: Bench) -> None:
        self.crew, self.rank, self.quiet, self.bench = crew, rank, quiet, bench
        self.held = crew.seats[rank].quota_cores is not None
        self.own = Own()
        self._kernels: dict[str, Kernel] = {}

    def run(self, variants: Sequence[str], pace: Pace) -> Own:
        """Make and size the kernels in a first turn, then measure ``pace.blocks`` of each.

        What fails on this rank is told in the result's ``fault``: the others must not wait for it. Every other block
        goes through the ranks in reverse, so that slow changes of the machine's speed cancel.
        """
        block_s = pace.block_s(self.held)
        self._all(lambda: self._prepare(variants, block_s))
        for block in range(pace.blocks):
            self._all(partial(self._measure, block), backwards=bool(block % 2))
        self.own.facts |= self.bench.facts
        return self.own

    def _all(self, act: Callable[[], None], backwards: bool = False) -> None:
        """``act`` on every rank in its turn."""
        for turn in self.crew.turns[:: -1 if backwards else 1]:
            if self.rank in turn and not self.own.fault:
                try:
                    act()
                except Exception as error:  # told to all once they have come together
                    self.own.fault = f"{type(error).__name__}: {error}".splitlines()[0]
            self.quiet.barrier()

    def _prepare(self, variants: Sequence[str], block_s: float) -> None:
        for variant in variants:
            with on(self.bench.team_of(variant).cpus):
                kernel = self.bench.make(variant)
                if kernel is None:
                    self.own.missing[variant] = NO_TORCH
                    continue
                self._kernels[variant] = kernel
                self.own.calls[variant] = self._sized(kernel, block_s * 1e9)
            self.own.units[variant] = kernel.amount * self.own.calls[variant]
            self.own.ns[variant] = []

    def _sized(self, kernel: Kernel, block_ns: float) -> int:
        """How many calls take about ``block_ns``; the first, which may be long for once, does not count."""
        calls, took = 1, self._timed(kernel, 1)
        while took < block_ns / 2 and calls < _MOST_CALLS:
            calls = max(calls + 1, int(calls * min(8.0, 0.8 * block_ns / max(took, 1))))
            took = self._timed(kernel, calls)
        return max(1, round(calls * block_ns / took))

    def _measure(self, block: int) -> None:
        for variant, kernel in self._kernels.items():
            with on(kernel.cpus):
                self.own.ns[variant].append(self._timed(kernel, self.own.calls[variant], block % _PHASES))

    def _timed(self, kernel: Kernel, calls: int, more: int = 0) -> int:
        """Nanoseconds of so many calls, after one that brings caches, threads and a quota into the state of work.

        Under a quota a period of work goes first, and ``more`` calls: else blocks of brief calls would all begin with
        what a new period has just given.
        """
        torch = self.bench.torch
        before = torch.get_num_threads() if torch is not None and kernel.threads else 0
        if torch is not None and kernel.threads:
            torch.set_num_threads(kernel.threads)
        try:
            start = time.monotonic_ns()
            kernel.call(1)
            while self.held and time.monotonic_ns() - start < _PERIOD_NS:
                kernel.call(1)
            if self.held and more:
                kernel.call(more)
            start = time.monotonic_ns()
            kernel.call(calls)
            return time.monotonic_ns() - start
        finally:
            if torch is not None and before:
                torch.set_num_threads(before)
