"""A fabric with known parameters: what its probes would tell, with noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reports.models.loggp import Probes
from reports.models.points import Points

SIZES = tuple(sorted({(1 << k) * q // 4 for k in range(2, 23) for q in (4, 5, 6, 7)} | {1, 2}))


@dataclass(frozen=True)
class Fabric:
    """L, o_s, o_r, g in s, G in s/byte; from ``edge`` on a message waits for a handshake and then goes faster."""

    latency_s: float = 20e-6
    send_s: float = 3e-6
    receive_s: float = 4e-6
    gap_s: float = 5e-6
    s_per_byte: float = 0.8e-9
    edge: int = 8100
    noise: float = 0.02
    launches: int = 6

    def half_s(self, m: np.ndarray) -> np.ndarray:
        """Half of a round trip; beyond the edge there is one more for the handshake."""
        once = self.latency_s + self.send_s + self.receive_s
        return once + m * self.s_per_byte + np.where(m >= self.edge, 2 * once, 0)

    def probes(self, sizes: tuple[int, ...], seed: int = 0) -> Probes:
        """The four probes at these sizes, medians of launches that each have the noise."""
        m, rng = np.asarray(sizes, "f8"), np.random.default_rng(seed)
        handshake = 2 * (self.latency_s + self.send_s + self.receive_s) * (m >= self.edge)
        flat = np.ones_like(m)
        told = (self.half_s(m), self.gap_s + m * self.s_per_byte + handshake, self.send_s * flat, self.receive_s * flat)
        return Probes(*(self._noisy(m, t, rng) for t in told))

    def _noisy(self, m: np.ndarray, t: np.ndarray, rng: np.random.Generator) -> Points:
        launches = t * (1 + self.noise * rng.standard_normal((self.launches, m.size)))
        half = 1.96 * self.noise * t / np.sqrt(self.launches)
        return Points(m, np.median(launches, axis=0), half, tuple(map(tuple, launches.T.tolist())))
