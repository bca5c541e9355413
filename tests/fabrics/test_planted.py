"""Each planted fault of fabrics is told, on labs of this test's own."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.fabrics import planted
from tests.fabrics.planted import FAULTS, Stage

PAYLOAD = 88 << 20


@pytest.fixture(scope="module")
def stage(can_lab: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with planted.stage(f"plant{os.getpid()}", tmp_path_factory.mktemp("planted")) as found:
        yield found


@pytest.mark.parametrize("name", FAULTS)
def test_it_is_told(stage: Stage, name: str) -> None:
    assert FAULTS[name](stage) == ""


@pytest.mark.parametrize("name", ["eth2g5", "eth10g"])
def test_a_probe_is_seen_on_its_fabric_alone(stage: Stage, name: str) -> None:
    found = planted.proved(stage.whole, name, planted.recipe_of(stage.whole, name), payload=PAYLOAD)
    assert found["verdict"] == "proved", found["detail"]
    sent, payload = found["deltas"]["h0"], found["payload_bytes"]
    assert payload >= PAYLOAD
    assert payload <= sent[name][1] <= 1.1 * payload
    assert all(max(counts) < 0.01 * payload for device, counts in sent.items() if device != name), sent


def test_every_pair_of_a_job_is_probed(stage: Stage) -> None:
    env = planted.recipe_of(stage.broken, "eth2g5")
    found = planted.proved(stage.broken, "eth2g5", env, ("h0", "h1", "h2"))
    assert found["verdict"] == "proved", found["detail"]
    sent = {host: counts["eth2g5"][1] for host, counts in found["deltas"].items()}
    each = 64 << 20
    assert sent["h0"] >= 2 * each
    assert sent["h1"] >= each > sent["h2"]


def test_a_job_s_probe_counts_bytes_between_hosts_alone(stage: Stage) -> None:
    """Two ranks a host, and shared memory within: the first of each host sends to the other's, no one else."""
    env = planted.recipe(planted.on_lab(stage.whole, "eth10g"), "mpich", "job").env
    found = planted.proved(stage.whole, "eth10g", env, ("h0", "h0", "h1", "h1"))
    assert found["verdict"] == "proved", found["detail"]
    assert found["payload_bytes"] <= found["deltas"]["h0"]["eth10g"][1] <= 1.1 * found["payload_bytes"]
