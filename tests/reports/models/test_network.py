"""The simulator on fitted fabrics: what was planted comes out, and a planted allreduce is met."""

from __future__ import annotations

import numpy as np
import pytest

from collectives.schedules import ALGORITHMS
from collectives.simulate import Network, simulate
from microbench.stats import Interval
from reports.models import hockney, loggp
from reports.models.fabric import Fitted
from reports.models.network import allreduce_s, model
from reports.models.points import Points
from tests.reports.models.planted import SIZES, Fabric

EXACT = Fabric(noise=0.0)
REDUCE = Interval(0.25e-9, None, None, 1)
MIB = 1 << 20


def line(a: float, b: float) -> hockney.Hockney:
    sizes = np.array([float(1 << k) for k in range(26)])
    return hockney.fit(Points(sizes, a + b * sizes, np.zeros(26)), resamples=0)


@pytest.mark.parametrize("algorithm", ["ring", "recursive-doubling", "rabenseifner", "two-level-leaders"])
@pytest.mark.parametrize("hosts", [(0, 1), (0, 1, 2, 3), (0, 0, 1, 1)])
def test_a_line_is_the_network_that_it_was_fitted_to(algorithm: str, hosts: tuple[int, ...]) -> None:
    found = model(Fitted("f", line(20e-6, 0.8e-9), reduce_s_per_byte=REDUCE), hosts)
    assert found is not None
    planted = Network(20e-6, 1.25e9, reduce_bytes_per_s=4e9, copy_bytes_per_s=4e9, nics=1, rendezvous_bytes=np.inf,
                      host_of_rank=np.array(hosts))  # fmt: skip
    options = {"hosts": list(hosts)} if algorithm.startswith("two") else {}
    exact = simulate(ALGORITHMS["allreduce", algorithm](len(hosts), MIB, **options), 4, planted)
    assert allreduce_s(algorithm, 4 * MIB, hosts, found) == pytest.approx(exact.time_s, rel=1e-6)


def test_overheads_and_the_handshake_are_those_of_loggp() -> None:
    """A message of two ranks, each way: below the edge o_s + L + o_r + m G; beyond it the handshake as well."""
    found = model(Fitted("f", loggp=loggp.fit(EXACT.probes(SIZES), resamples=0)), (0, 1))
    assert found is not None
    for nbytes in (1024, 64 * 1024):
        exact = float(EXACT.half_s(np.array(nbytes)))
        assert allreduce_s("recursive-doubling", nbytes, (0, 1), found) == pytest.approx(exact, rel=1e-3)


def test_two_way_traffic_slows_what_the_wire_takes() -> None:
    half = model(Fitted("f", line(0.0, 1e-9), two_way=0.5), (0, 1))
    assert half is not None
    assert allreduce_s("recursive-doubling", MIB, (0, 1), half) == pytest.approx(2e-9 * MIB)


def test_what_does_not_fit_is_not_simulated() -> None:
    sizes = np.array([float(1 << k) for k in range(12)])
    bent = hockney.fit(Points(sizes, 1e-6 * (1 + 0.5 * (np.arange(12) % 2)), np.zeros(12)), resamples=0)
    assert model(Fitted("f", bent), (0, 1)) is None and model(Fitted("f"), (0, 1)) is None
