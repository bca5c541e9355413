"""Hosts that do not reach each other, and bytes that go astray, under every MPI."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fabrics.lab import cluster
from fabrics.recipes import recipe
from suite import launch
from tests import jobs, labs
from tests.fabrics import planted

BACKEND = launch.backend(launch.library())


@pytest.fixture(scope="module")
def lab() -> Iterator[cluster.Lab]:
    with labs.or_skip("mpis", nodes=3, dpus=False) as made:
        yield made


@pytest.mark.skipif(BACKEND == "impi-ofi", reason="Intel MPI takes one interface, of which nobody says which")
def test_without_a_setting_it_stripes_and_both_fabrics_are_named(lab: cluster.Lab) -> None:
    found = planted.proved(lab, "eth10g", {})
    assert found["verdict"] == "disproved"
    assert "eth10g on h0 carried" in found["detail"]
    assert "eth2g5 on h0 rose" in found["detail"]


@pytest.mark.parametrize("name", ["eth2g5", "eth10g"])
def test_its_recipe_is_proved_between_three_hosts(lab: cluster.Lab, name: str) -> None:
    env = recipe(planted.on_lab(lab, name), BACKEND).env
    found = planted.proved(lab, name, env, lab.hosts)
    assert found["verdict"] == "proved", found["detail"]


def test_its_launcher_tries_the_routes(lab: cluster.Lab) -> None:
    both = [planted.on_lab(lab, name) for name in ("eth2g5", "eth10g")]
    assert planted.reached(lab, *both).unreachable == {}
    planted.break_route(lab, "h2", "eth10g")
    told = planted.reached(lab, *both).unreachable
    assert list(told) == ["eth10g"]
    assert told["eth10g"].startswith("no route h0 -> h2 on eth10g (connection timed out)")


def test_an_unknown_interface_is_refused_before_anything_is_measured() -> None:
    own = {"openmpi": "OMPI_MCA_btl_tcp_if_include", "mpich": "UCX_NET_DEVICES"}.get(BACKEND, "FI_TCP_IFACE")
    command = ("-m", "suite.cli", "bench", "latency", "--sizes", "8", "--seconds", "0.02")
    done = jobs.mpi(2, *command, env={own: "nope0"})
    assert done.code == 2, done.err
    assert f"{own}=nope0: no such device here; here are " in done.err
    assert f"mend or unset {own}" in done.err
    assert "us" not in done.out.split()
