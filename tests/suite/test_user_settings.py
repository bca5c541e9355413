"""A user's own variables in a job of the user's own: what is warned of, what is refused, what is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabrics.errors import UserError
from fabrics.recipes.settings import elsewhere
from suite import user_settings
from suite.user_settings import findings, stacks_of
from tests.fabrics import trees

MPICH = "MPICH Version:      5.0.2\nMPICH Device:       ch4:ucx ofi\nMPICH configure:    --with-device=ch4:ucx,ofi\n"
CRAY = "MPI VERSION    : CRAY MPICH version 8.1.27\nMPICH Device:       ch4:ofi\n"
OPEN = "Open MPI v5.0.11, package: Open MPI"
INTEL = "Intel(R) MPI Library 2021.15 for Linux* OS"
HERE = ("eth0", "lo", "mlx5_0:1")


@pytest.mark.parametrize(
    ("version", "environment", "stacks"),
    [
        (MPICH, {}, ("mpich-ucx",)),
        (MPICH, {"MPIR_CVAR_CH4_NETMOD": "ofi"}, ("mpich-ofi",)),
        (MPICH, {"MPIR_CVAR_CH4_NETMOD": "nope"}, ()),
        (MPICH.replace("ch4:ucx ofi", "ch4:ofi,ucx"), {}, ("mpich-ofi",)),
        (CRAY, {}, ("mpich-ofi",)),
        (OPEN, {}, ("openmpi-ob1", "openmpi-ucx", "openmpi-ofi")),
        (OPEN, {"OMPI_MCA_pml": "ucx"}, ("openmpi-ucx",)),
        (INTEL, {}, ("impi-ofi",)),
        ("MPICH Device:       ch3:nemesis", {}, ()),
        ("MVAPICH2 Version 2.3", {}, ()),
    ],
)
def test_what_a_library_may_run_on(version: str, environment: dict[str, str], stacks: tuple[str, ...]) -> None:
    assert stacks_of(version, environment) == stacks


@pytest.mark.parametrize(
    ("version", "environment", "refused", "warned"),
    [
        (MPICH, {"UCX_NET_DEVICES": "nope0"}, ["UCX_NET_DEVICES"], 0),
        (MPICH, {"UCX_NET_DEVICES": "nope0", "UCX_TLS": "tcp,self"}, ["UCX_NET_DEVICES"], 0),
        (MPICH, {"UCX_NET_DEVICES": "eth0"}, [], 1),
        (MPICH, {"UCX_NET_DEVICES": "nope0,eth0", "UCX_TLS": "tcp"}, [], 1),
        (MPICH, {"UCX_NET_DEVICES": "mlx5_0:1", "UCX_TLS": "rc"}, [], 0),
        (MPICH, {"FI_PROVIDER": "tcp", "FI_TCP_IFACE": "eth0", "FI_LOG": "x"}, ["FI_PROVIDER", "FI_TCP_IFACE"], 1),
        (CRAY, {"FI_PROVIDER": "cxi"}, [], 0),
        (CRAY, {"FI_PROVIDER": "tcp", "FI_TCP_IFACE": "nope0"}, ["FI_TCP_IFACE"], 0),
        (OPEN, {"OMPI_MCA_btl_tcp_if_include": "nope0"}, ["OMPI_MCA_btl_tcp_if_include"], 0),
        (OPEN, {"OMPI_MCA_btl_tcp_if_include": "10.1.0.0/24"}, [], 0),
        (OPEN, {"UCX_NET_DEVICES": "mlx5_0:1"}, [], 0),
        (OPEN, {"OMPI_MCA_pml": "ob1", "UCX_NET_DEVICES": "mlx5_0:1"}, ["UCX_NET_DEVICES"], 0),
        (OPEN, {"FI_PROVIDER": "nope"}, ["FI_PROVIDER"], 0),
        (CRAY, {"FI_PROVIDER": "nope,tcp"}, [], 1),
        (INTEL, {"I_MPI_FABRICS": "shm:ofi", "FI_PROVIDER": "tcp"}, [], 0),
        (MPICH, {"GLOO_SOCKET_IFNAME": "nope0", "NCCL_SOCKET_IFNAME": "nope0"}, [], 0),
    ],
)  # fmt: skip
def test_a_fabric_named_in_vain_is_refused_and_the_rest_warned_of(
    version: str, environment: dict[str, str], refused: list[str], warned: int
) -> None:
    stacks = stacks_of(version, environment)
    assert list(elsewhere(environment, stacks, HERE)) == refused
    lines = findings(environment, stacks, HERE)
    assert [line.partition("=")[0] for line in lines[: len(refused)]] == refused
    assert len(lines) == len(refused) + warned
    assert all("\n" not in line for line in lines)


def test_devices_are_those_of_the_tree(tmp_path: Path) -> None:
    assert user_settings.devices(trees.infiniband().write(tmp_path)) == {"ib0", "mlx5_0:1", "mlx5_1:1"}


def test_a_refusal_names_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(user_settings.mpi, "library_version", lambda: MPICH)
    root = trees.infiniband().write(tmp_path)
    user_settings.check({"UCX_NET_DEVICES": "mlx5_0:1", "UCX_TLS": "rc,self", "HOME": "/root"}, root)
    assert capsys.readouterr().err == ""
    with pytest.raises(UserError, match="mend or unset UCX_NET_DEVICES"):
        user_settings.check({"UCX_NET_DEVICES": "nope0"}, root)
    told = capsys.readouterr().err.splitlines()
    assert told == [
        "fabricbench: warning: UCX_NET_DEVICES=nope0: no such device here; here are ib0, mlx5_0:1, mlx5_1:1"
    ]


def test_without_such_variables_no_library_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_settings.mpi, "library_version", lambda: pytest.fail("it was loaded"))
    user_settings.check({"HOME": "/root", "PMI_RANK": "0"})
