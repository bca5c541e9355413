"""Recipes: the variables they hold, and the proof, by counters, that the bytes went where they say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fabrics.discover import discover, lab_fabrics
from fabrics.lab.cluster import Lab
from fabrics.model import Fabric, Proof
from fabrics.proof import judge
from fabrics.recipes import BACKENDS, NoRecipe, recipe
from tests.fabrics.conftest import gloo_ranks, mpich_ranks

PAYLOAD = 64 << 20
APART, TOGETHER = ("h0", "h1"), ("h0", "h0")
RAILS = Fabric("rails", "tcp", ("a", "b"), {"a": ("eth1", "eth2"), "b": ("eth1", "eth2")})
UNLIKE = Fabric("unlike", "tcp", ("a", "b"), {"a": ("enp1s0",), "b": ("enp2s0",)})
SHM = Fabric("shm", "shm", ("a",))


def test_transport_and_device_are_set_together() -> None:
    assert recipe(RAILS, "mpich").env == {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth1,eth2"}
    assert recipe(RAILS, "gloo").env == {"GLOO_SOCKET_IFNAME": "eth1,eth2"}


@pytest.mark.parametrize("backend", BACKENDS)
def test_unlike_devices_need_a_host(backend: str) -> None:
    with pytest.raises(NoRecipe, match="differ by host"):
        recipe(UNLIKE, backend)
    assert "enp2s0" in recipe(UNLIKE, backend, host="b").env.values()
    with pytest.raises(NoRecipe, match="no host c"):
        recipe(UNLIKE, backend, host="c")


def test_no_recipe_says_why() -> None:
    with pytest.raises(NoRecipe, match="gloo has no shared memory"):
        recipe(SHM, "gloo")
    with pytest.raises(NoRecipe, match="'openmpi': one of mpich, gloo"):
        recipe(SHM, "openmpi")
    with pytest.raises(NoRecipe, match="'job': one of pure"):
        recipe(SHM, "mpich", flavour="job")
    with pytest.raises(NoRecipe, match="no devices"):
        recipe(Fabric("ghost", "tcp", ()), "mpich")


def test_no_variable_of_a_netmod_that_is_not_in_use() -> None:
    lo = Fabric("tcp-lo", "tcp", ("a",), {"a": ("lo",)})
    assert not [name for name in recipe(lo, "mpich").env if name.startswith("UCX_")]
    assert not [name for name in recipe(RAILS, "mpich").env if name.startswith("FI_")]


def verdict(fabric: Fabric, rows: list[dict[str, Any]]) -> Proof:
    sent: dict[str, int] = {}
    received: dict[str, int] = {}
    for row in rows:
        sent[row["host"]] = sent.get(row["host"], 0) + row["sent"]
        received[row["host"]] = received.get(row["host"], 0) + row["received"]
    deltas, idle = ({row["host"]: row[key] for row in rows} for key in ("delta", "background"))
    return judge(fabric, sent, received, deltas, idle)


def on_lab(lab: Lab, name: str) -> Fabric:
    return next(fabric for fabric in lab_fabrics(lab) if fabric.name == name)


def on_h0(name: str) -> Fabric:
    """A fabric of one host, as lab host h0 sees it: there no one else's traffic is on lo."""
    fabric = next(fabric for fabric in discover() if fabric.name == name)
    return replace(fabric, hosts=("h0",), devices=dict.fromkeys(("h0",) * bool(fabric.devices), ("lo",)))


@pytest.mark.parametrize("name", ["eth2g5", "eth10g"])
def test_mpich_on_a_lab_fabric_is_proved(lab: Lab, name: str) -> None:
    fabric = on_lab(lab, name)
    rows = mpich_ranks(lab, APART, recipe(fabric, "mpich").env, PAYLOAD)
    assert sorted(row["host"] for row in rows) == ["h0", "h1"]
    proof = verdict(fabric, rows)
    assert proof.verdict == "proved", proof.detail
    carried = next(row["delta"][name][1] for row in rows if row["host"] == "h0")
    assert PAYLOAD <= carried <= 1.1 * PAYLOAD  # no more than headers


def test_mpich_without_a_recipe_is_disproved(lab: Lab) -> None:
    for fabric in lab_fabrics(lab):
        proof = verdict(fabric, mpich_ranks(lab, APART, {}, PAYLOAD))
        assert proof.verdict == "disproved"
        assert "striped" in proof.detail


def test_a_recipe_for_another_fabric_is_disproved(lab: Lab) -> None:
    proof = verdict(on_lab(lab, "eth10g"), mpich_ranks(lab, APART, recipe(on_lab(lab, "eth2g5"), "mpich").env, PAYLOAD))
    assert proof.verdict == "disproved"
    assert "eth2g5 on h0 rose" in proof.detail


@pytest.mark.parametrize("name", ["shm", "tcp-lo"])
def test_mpich_on_one_host_is_proved(lab: Lab, name: str) -> None:
    fabric = on_h0(name)
    proof = verdict(fabric, mpich_ranks(lab, TOGETHER, recipe(fabric, "mpich").env, PAYLOAD))
    assert proof.verdict == "proved", proof.detail


def test_shared_memory_is_not_taken_for_loopback_nor_loopback_for_it(lab: Lab) -> None:
    shm, lo = on_h0("shm"), on_h0("tcp-lo")
    by_memory = verdict(lo, mpich_ranks(lab, TOGETHER, recipe(shm, "mpich").env, PAYLOAD))
    assert by_memory.verdict == "disproved"
    assert "shared memory" in by_memory.detail
    by_loopback = verdict(shm, mpich_ranks(lab, TOGETHER, recipe(lo, "mpich").env, PAYLOAD))
    assert by_loopback.verdict == "disproved"
    assert "lo on h0 rose" in by_loopback.detail


def test_gloo_is_proved_where_its_recipe_says(lab: Lab) -> None:
    for fabric, hosts in ((on_lab(lab, "eth10g"), APART), (on_h0("tcp-lo"), TOGETHER)):
        proof = verdict(fabric, gloo_ranks(lab, hosts, recipe(fabric, "gloo").env, PAYLOAD))
        assert proof.verdict == "proved", proof.detail
