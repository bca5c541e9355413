"""Recipes: the variables they hold, and the proof, by counters, that the bytes went where they say."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any, get_args

import pytest

from fabrics.discover import discover, lab_fabrics
from fabrics.lab.cluster import Lab
from fabrics.model import Fabric, Kind, Proof
from fabrics.proof import judge
from fabrics.recipes import FLAVOURS, LIBRARIES, TRANSPORTS, NoRecipe, SourcedRecipe, exports, recipe
from fabrics.recipes.settings import check_settings, ignored, in_use, readers
from tests.fabrics.conftest import gloo_ranks, mpich_ranks

PAYLOAD = 64 << 20
APART, TOGETHER = ("h0", "h1"), ("h0", "h0")
RAILS = Fabric("rails", "tcp", ("a", "b"), {"a": ("eth1", "eth2"), "b": ("eth1", "eth2")})
UNLIKE = Fabric("unlike", "tcp", ("a", "b"), {"a": ("enp1s0",), "b": ("enp2s0",)})
SHM = Fabric("shm", "shm", ("a",))


def test_transport_and_device_are_set_together() -> None:
    assert recipe(RAILS, "mpich").env == {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth1,eth2"}
    assert recipe(RAILS, "gloo").env == {"GLOO_SOCKET_IFNAME": "eth1,eth2"}


@pytest.mark.parametrize("backend", ["mpich", "gloo"])
def test_unlike_devices_need_a_host(backend: str) -> None:
    with pytest.raises(NoRecipe, match="differ by host"):
        recipe(UNLIKE, backend)
    assert "enp2s0" in recipe(UNLIKE, backend, host="b").env.values()
    with pytest.raises(NoRecipe, match="no host c"):
        recipe(UNLIKE, backend, host="c")


def of(kind: Kind, *devices: str, rails: tuple[int, ...] = (), **gids: int) -> Fabric:
    """A fabric of two hosts; a GID index is given by device, ``mlx5_0_1=3``."""
    index = {device: gids[device.replace(":", "_")] for device in devices if gids}
    return Fabric("net", kind, ("a", "b"), {"a": devices, "b": devices}, gids=index, rails=rails)


UCX = "https://github.com/openucx/ucx/blob/master/docs/source/faq.md"
MAN = "https://github.com/ofiwg/libfabric/blob/main/man/"
OPA = "https://docs.open-mpi.org/en/v5.0.x/networking/opa.html"
NCCL = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html"
IB, IB2 = of("ib", "mlx5_0:1"), of("ib", "mlx5_0:1", "mlx5_1:1", rails=(0, 0, 1))
ROCE = of("roce", "mlx5_2:1", mlx5_2_1=3)
VERBS = {"FI_PROVIDER": "verbs;ofi_rxm"}
OFI, PURE_OFI = {"MPIR_CVAR_CH4_NETMOD": "ofi"}, {"MPIR_CVAR_CH4_NETMOD": "ofi", "MPIR_CVAR_NOLOCAL": "1"}
OWN = {"OMPI_MCA_coll": "^hcoll,ucc"}
PML_UCX = {"OMPI_MCA_pml": "ucx", "OMPI_MCA_pml_ucx_tls": "any", "OMPI_MCA_pml_ucx_devices": "any", **OWN}
ALONE = {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}


def mtl(provider: str) -> dict[str, str]:
    return {"OMPI_MCA_pml": "cm", "OMPI_MCA_mtl": "ofi", "OMPI_MCA_mtl_ofi_provider_include": provider, **OWN}


GOLDEN: list[tuple[Fabric, str, str, dict[str, Any], dict[str, str], str]] = [
    (IB, "mpich", "pure", {}, {"UCX_TLS": "rc_x,self", "UCX_NET_DEVICES": "mlx5_0:1"}, UCX),
    (IB, "mpich", "job", {}, {"UCX_TLS": "rc_x,sm,self", "UCX_NET_DEVICES": "mlx5_0:1"}, UCX),
    (IB, "openmpi", "pure", {}, {**PML_UCX, "UCX_TLS": "rc_x,self", "UCX_NET_DEVICES": "mlx5_0:1"}, UCX),
    (
        IB, "openmpi-ucx", "job", {"transport": "dc"},
        {**PML_UCX, "UCX_TLS": "dc,sm,self", "UCX_NET_DEVICES": "mlx5_0:1"}, UCX,
    ),
    (
        IB, "mpich-ucx", "pure", {"transport": "ud"},
        {
            "MPIR_CVAR_CH4_NETMOD": "ucx", "MPIR_CVAR_NOLOCAL": "1",
            "UCX_TLS": "ud,self", "UCX_NET_DEVICES": "mlx5_0:1",
        }, UCX,
    ),
    (
        ROCE, "mpich", "pure", {},
        {"UCX_TLS": "rc_x,self", "UCX_NET_DEVICES": "mlx5_2:1", "UCX_IB_GID_INDEX": "3"}, UCX,
    ),
    (of("roce", "bnxt_re0:1"), "mpich", "pure", {}, {"UCX_TLS": "rc,self", "UCX_NET_DEVICES": "bnxt_re0:1"}, UCX),
    (IB2, "mpich", "pure", {}, {"UCX_TLS": "rc_x,self", "UCX_NET_DEVICES": "mlx5_0:1,mlx5_1:1"}, UCX),
    (IB2, "mpich", "pure", {"local_rank": 2}, {"UCX_TLS": "rc_x,self", "UCX_NET_DEVICES": "mlx5_1:1"}, UCX),
    (IB2, "mpich", "pure", {"local_rank": 3}, {"UCX_TLS": "rc_x,self", "UCX_NET_DEVICES": "mlx5_0:1"}, UCX),
    (IB, "mpich-ofi", "pure", {}, {**PURE_OFI, **VERBS, "FI_VERBS_DEVICE_NAME": "mlx5_0"}, MAN + "fi_verbs.7.md"),
    (ROCE, "mpich-ofi", "job", {}, {**OFI, **VERBS, "FI_VERBS_DEVICE_NAME": "mlx5_2"}, MAN + "fi_verbs.7.md"),
    (IB, "openmpi-ofi", "pure", {}, {**mtl("verbs"), **VERBS, "FI_VERBS_DEVICE_NAME": "mlx5_0"}, MAN + "fi_verbs.7.md"),
    (
        IB2, "impi-ofi", "job", {"local_rank": 2},
        {"I_MPI_FABRICS": "shm:ofi", **VERBS, "FI_VERBS_DEVICE_NAME": "mlx5_1"}, MAN + "fi_verbs.7.md",
    ),
    (of("opa", "hfi1_1:1"), "mpich", "pure", {}, {**PURE_OFI, "FI_PROVIDER": "psm2", "HFI_UNIT": "1"}, OPA),
    (of("opa", "hfi1_0:1"), "openmpi", "job", {}, {**mtl("psm2"), "FI_PROVIDER": "psm2", "HFI_UNIT": "0"}, OPA),
    (
        of("opa", "hfi1_0:1", "hfi1_1:1"), "impi-ofi", "pure", {},
        {"I_MPI_FABRICS": "ofi", "FI_PROVIDER": "psm2", "PSM2_MULTIRAIL": "1", "PSM2_MULTIRAIL_MAP": "0:1,1:1"}, OPA,
    ),
    (
        of("opa", "hfi1_1:1"), "mpich-ofi", "job", {"transport": "opx"},
        {**OFI, "FI_PROVIDER": "opx", "FI_OPX_HFI_SELECT": "1"}, MAN + "fi_opx.7.md",
    ),
    (
        of("opa", "hfi1_0:2"), "mpich-ofi", "job", {"transport": "opx"},
        {**OFI, "FI_PROVIDER": "opx", "FI_OPX_HFI_SELECT": "0", "FI_OPX_PORT": "2"}, MAN + "fi_opx.7.md",
    ),
    (
        of("efa", "rdmap0s6:1"), "openmpi", "job", {},
        {**mtl("efa"), "FI_PROVIDER": "efa", "FI_EFA_IFACE": "rdmap0s6"}, MAN + "fi_efa.7.md",
    ),
    (
        of("cxi", "cxi0", "cxi1"), "mpich", "job", {},
        {**OFI, "FI_PROVIDER": "cxi", "FI_CXI_DEVICE_NAME": "cxi0,cxi1"}, MAN + "fi_cxi.7.md",
    ),
    (
        IB, "nccl", "pure", {},
        {"NCCL_NET": "IB", "NCCL_IB_DISABLE": "0", "NCCL_IB_HCA": "=mlx5_0:1", **ALONE}, NCCL,
    ),
    (
        ROCE, "nccl", "job", {},
        {"NCCL_NET": "IB", "NCCL_IB_DISABLE": "0", "NCCL_IB_HCA": "=mlx5_2:1", "NCCL_IB_GID_INDEX": "3"}, NCCL,
    ),
    (
        RAILS, "nccl", "job", {},
        {"NCCL_NET": "Socket", "NCCL_IB_DISABLE": "1", "NCCL_SOCKET_IFNAME": "=eth1,eth2"}, NCCL,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("fabric", "backend", "flavour", "options", "env", "source"), GOLDEN)
def test_recipes_not_seen_on_hardware_are_as_documented(
    fabric: Fabric, backend: str, flavour: str, options: dict[str, Any], env: dict[str, str], source: str
) -> None:
    found = recipe(fabric, backend, flavour, **options)
    assert (dict(found.env), found.flavour, found.backend) == (env, flavour, backend)
    assert (found.source, found.verified) == (source, False)
    assert exports(found)[-2:] == ["# not verified on hardware", f"# source: {source}"]


def test_recipes_seen_here_are_plain_words() -> None:
    found = recipe(RAILS, "openmpi", "job")
    assert found.verified
    assert exports(found) == [
        "export OMPI_MCA_pml=ob1",
        "export OMPI_MCA_coll='^hcoll,ucc'",
        "export OMPI_MCA_btl=self,sm,tcp",
        "export OMPI_MCA_btl_tcp_if_include=eth1,eth2",
        "# source: https://docs.open-mpi.org/en/v5.0.x/tuning-apps/networking/tcp.html",
    ]
    assert recipe(SHM, "mpich-ofi").env["FI_TCP_IFACE"] == "lo"
    assert recipe(SHM, "impi-ofi", "job").env == {"I_MPI_FABRICS": "shm"}


@pytest.mark.parametrize(
    ("fabric", "backend", "options", "why"),
    [
        (SHM, "gloo", {}, "gloo has no shared-memory transport"),
        (SHM, "mvapich", {}, "'mvapich': one of mpich, mpich-ucx, "),
        (SHM, "mpich", {"flavour": "fast"}, "'fast': one of pure, job"),
        (SHM, "openmpi-ofi", {}, "nothing within a host"),
        (SHM, "mpich", {"transport": "rc"}, "none to choose"),
        (Fabric("ghost", "tcp", ()), "mpich", {}, "no devices"),
        (of("tcp", "lo"), "mpich-ucx", {}, "no route over lo"),
        (of("tcp", "lo"), "mpich", {"flavour": "job"}, "lo joins no hosts"),
        (of("tcp", "eth0"), "openmpi-ofi", {"flavour": "job"}, "no shared memory beside tcp"),
        (of("tcp", "eth0"), "mpich", {"transport": "rc"}, "'rc': ucx takes tcp on tcp"),
        (of("tcp", "eth0"), "gloo", {"transport": "tcp"}, "gloo has none to choose"),
        (RAILS, "mpich-ofi", {}, "FI_TCP_IFACE names one device, not eth1, eth2: map ranks to rails"),
        (IB, "openmpi-ob1", {}, "no transport for ib"),
        (IB, "gloo", {}, "gloo speaks TCP, not ib"),
        (IB, "mpich", {"transport": "psm2"}, "'psm2': ucx takes rc, ud, dc"),
        (IB, "mpich-ofi", {"transport": "rc"}, "'rc': ofi takes verbs;ofi_rxm on ib"),
        (of("ib", "mlx5_0:2"), "mpich-ofi", {}, "takes no port: mlx5_0:2"),
        (of("opa", "hfi1_0:1"), "mpich-ucx", {}, "no transport of its own for opa"),
        (of("opa", "opap1s0:1"), "mpich", {}, "no unit number"),
        (of("efa", "rdmap0s6:1"), "nccl", {}, "nccl reaches efa through a plugin"),
        (of("roce", "mlx5_0:1", "mlx5_1:1", mlx5_0_1=1, mlx5_1_1=3), "mpich", {}, "GID indexes of .* differ"),
        (of("ib", "mlx5_0:1", rails=(0, 1)), "mpich", {"local_rank": 1}, "rail 1 of local rank 1: it has 1 devices"),
    ],
)
def test_no_recipe_says_why(fabric: Fabric, backend: str, options: dict[str, Any], why: str) -> None:
    with pytest.raises(NoRecipe, match=why):
        recipe(fabric, backend, **options)


DEVICES: dict[str, list[tuple[str, ...]]] = {
    "shm": [()],
    "tcp": [("eth0",), ("eth0", "eth1"), ("lo",)],
    "ib": [("mlx5_0:1",), ("mlx4_0:1", "mlx4_1:1")],
    "roce": [("mlx5_0:1",), ("bnxt_re0:1", "bnxt_re1:1")],
    "opa": [("hfi1_0:1",), ("hfi1_0:1", "hfi1_1:1")],
    "efa": [("rdmap0s6:1",), ("rdmap0s6:1", "rdmap1s6:1")],
    "cxi": [("cxi0",), ("cxi0", "cxi1")],
}


def combinations() -> Iterator[SourcedRecipe]:
    """Every recipe that there is, over all kinds, libraries, flavours, transports, GIDs and ranks."""
    for kind, backend, flavour, transport, rank in product(
        get_args(Kind), LIBRARIES, FLAVOURS, (None, *TRANSPORTS), (None, 0, 1)
    ):
        for devices in DEVICES[kind]:
            for gids in ({}, dict.fromkeys(devices, 3)):
                fabric = Fabric("x", kind, ("a",), {"a": devices}, gids=gids, rails=tuple(range(len(devices))))
                try:
                    yield recipe(fabric, backend, flavour, transport=transport, local_rank=rank)
                except NoRecipe:
                    continue


def test_what_a_shell_makes_of_the_lines_is_the_recipe() -> None:
    for found in combinations():
        lines = exports(found)
        for line in lines:
            if line.startswith("export "):
                name, _, value = line.removeprefix("export ").partition("=")
                assert shlex.split(value, comments=True) == [found.env[name]], line
        assert sum(line.startswith("export ") for line in lines) == len(found.env)
        passed = {word for line in lines if "mpirun" in line for word in line.split("-x ")[1:]}
        if found.backend.startswith("openmpi"):
            others = {name for name in found.env if not name.startswith("OMPI_MCA_")}
            assert {word.strip() for word in passed} == others


def test_no_recipe_holds_a_variable_that_its_library_passes_over() -> None:
    seen = set()
    for found in combinations():
        assert found.env
        assert not ignored(found.env, found.backend), found
        assert all(readers(name) for name in found.env), found
        stack = in_use(found.backend, found.env)
        assert not found.backend.startswith("openmpi-") or found.backend == in_use("openmpi", found.env)
        here = {device for sets in DEVICES.values() for devices in sets for device in devices}
        assert check_settings(found.env, found.backend, here) == [], found
        assert found.verified or found.source.startswith("https://")
        seen.add(stack)
    assert seen == set(LIBRARIES) - {"mpich", "openmpi"}


@pytest.mark.parametrize(
    ("backend", "settings", "lines"),
    [
        ("mpich", {"FI_PROVIDER": "tcp"}, ["FI_PROVIDER=tcp: mpich-ucx does not read it"]),
        ("mpich", {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0"}, []),
        (
            "mpich",
            {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "nope0,eth0"},
            ["UCX_NET_DEVICES=nope0,eth0: no such device here: nope0; "],
        ),
        ("mpich", {"UCX_NET_DEVICES": "nope0"}, ["UCX_NET_DEVICES=nope0: is ignored where another transport is free"]),
        ("mpich", {"UCX_TLS": "rc", "UCX_NET_DEVICES": "mlx5_*:1"}, []),
        ("mpich", {"UCX_TLS": "tcp", "UCX_IB_GID_INDEX": "3"}, ["UCX_IB_GID_INDEX=3: no transport of UCX_TLS is RDMA"]),
        ("mpich", {"MPIR_CVAR_CH4_NETMOD": "ofi", "UCX_TLS": "tcp"}, ["UCX_TLS=tcp: mpich-ofi does not read it"]),
        ("mpich-ucx", {"MPIR_CVAR_CH4_NETMOD": "ofi"}, ["MPIR_CVAR_CH4_NETMOD=ofi: mpich-ucx needs ucx"]),
        ("mpich-ofi", {"FI_PROVIDER": "nope"}, ["FI_PROVIDER=nope: libfabric has no provider 'nope'"]),
        (
            "mpich-ofi",
            {"FI_PROVIDER": "tcp", "FI_TCP_IFACE": "nope0"},
            ["FI_TCP_IFACE=nope0: no such device here: nope0"],
        ),
        ("mpich-ofi", {"FI_TCP_IFACE": "eth0"}, ["FI_TCP_IFACE=eth0: is ignored .* set FI_PROVIDER=tcp too"]),
        ("mpich-ofi", {"FI_PROVIDER": "^tcp", "FI_TCP_IFACE": "eth0"}, ["FI_TCP_IFACE=eth0: is ignored"]),
        ("mpich-ofi", {"FI_PROVIDER": "verbs;ofi_rxm", "FI_VERBS_DEVICE_NAME": "mlx5_0"}, []),
        ("openmpi", {"OMPI_MCA_btl_tcp_if_include": "eth0"}, ["OMPI_MCA_btl_tcp_if_include=eth0: is ignored"]),
        (
            "openmpi",
            {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,tcp", "OMPI_MCA_btl_tcp_if_include": "nope0,10.1.0.0/24"},
            ["OMPI_MCA_btl_tcp_if_include=nope0,10.1.0.0/24: no such device here: nope0; here are eth0, lo, mlx5_0:1"],
        ),
        ("openmpi-ob1", {"OMPI_MCA_pml": "ucx"}, ["OMPI_MCA_pml=ucx: openmpi-ob1 needs ob1"]),
        (
            "openmpi",
            {"OMPI_MCA_pml": "ucx", "UCX_TLS": "tcp,self"},
            ["OMPI_MCA_pml_ucx_tls is not any", "OMPI_MCA_pml_ucx_devices"],
        ),
        ("openmpi", {"OMPI_MCA_pml": "cm", "FI_PROVIDER": "tcp"}, ["mtl_ofi_provider_include lacks tcp"]),
        (
            "openmpi",
            {"UCX_TLS": "tcp", "I_MPI_FABRICS": "shm"},
            ["UCX_TLS=tcp: openmpi-ob1 does not", "I_MPI_FABRICS=shm: "],
        ),
        ("mpich", {"GLOO_SOCKET_IFNAME": "nope0", "PATH": "/bin"}, []),
        (
            "gloo",
            {"GLOO_SOCKET_IFNAME": "nope0", "UCX_TLS": "tcp"},
            ["GLOO_SOCKET_IFNAME=nope0: no such device here: nope0"],
        ),
        ("gloo", {"NCCL_SOCKET_IFNAME": "eth0"}, ["NCCL_SOCKET_IFNAME=eth0: gloo does not read it"]),
        ("nccl", {"NCCL_SOCKET_IFNAME": "eth"}, []),
        ("nccl", {"NCCL_SOCKET_IFNAME": "=eth"}, ["NCCL_SOCKET_IFNAME==eth: no such device here: =eth"]),
        ("nccl", {"NCCL_SOCKET_IFNAME": "^docker"}, []),
        ("nccl", {"NCCL_IB_HCA": "=mlx5_0:1"}, []),
        (
            "nccl",
            {"NCCL_IB_HCA": "mlx5_0", "NCCL_IB_DISABLE": "1"},
            ["NCCL_IB_HCA=mlx5_0: NCCL_IB_DISABLE turns InfiniBand off"],
        ),
        ("nccl", {"NCCL_IB_HCA": "=mlx5_7:1"}, ["NCCL_IB_HCA==mlx5_7:1: no such device here: =mlx5_7:1"]),
    ],
)
def test_settings_that_do_not_do_what_they_say_are_told(
    backend: str, settings: dict[str, str], lines: list[str]
) -> None:
    told = check_settings(settings, backend, ("eth0", "lo", "mlx5_0:1"))
    assert len(told) == len(lines), told
    for line, pattern in zip(told, lines, strict=True):
        assert "\n" not in line
        assert re.search(pattern.replace("^", r"\^"), line), line


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


STACKS = [("mpich-ucx", "pure"), ("mpich-ofi", "pure"), ("mpich-ucx", "job"), ("mpich-ofi", "job")]


@pytest.mark.parametrize(("backend", "flavour"), STACKS)
def test_each_stack_of_mpich_is_proved_between_hosts(lab: Lab, backend: str, flavour: str) -> None:
    fabric = on_lab(lab, "eth10g")
    proof = verdict(fabric, mpich_ranks(lab, APART, recipe(fabric, backend, flavour).env, PAYLOAD))
    assert proof.verdict == "proved", proof.detail


@pytest.mark.parametrize("backend", ["mpich", "mpich-ucx", "mpich-ofi"])
def test_a_job_leaves_shared_memory_to_ranks_of_one_host(lab: Lab, backend: str) -> None:
    env = recipe(on_lab(lab, "eth10g"), backend, "job").env
    proof = verdict(on_h0("shm"), mpich_ranks(lab, TOGETHER, env, PAYLOAD))
    assert proof.verdict == "proved", proof.detail


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
