"""What the MPI library can drive: read off what it says and has loaded, and asked of the one that is here."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fabrics.errors import CannotRun
from suite import cli, cmd_fabrics, providers
from tests.fabrics import trees

MPICH = "MPICH Version:      5.0.2\nMPICH Device:       ch4:ucx ofi\n"
OFI_ALONE = "CRAY MPICH version 8.1.27\nMPICH Device:       ch4:ofi\n"
OPEN = "Open MPI v5.0.11, package: Open MPI"
MAPS = """\
7f00-7f01 r-xp 00000000 fe:00 11 /opt/a b/lib/libfabric.so.1.29.0
7f01-7f02 r--p 00001000 fe:00 11 /opt/a b/lib/libfabric.so.1.29.0
7f02-7f03 r-xp 00000000 fe:00 12 /opt/lib/libuct.so.0
7f03-7f04 r-xp 00000000 fe:00 13 /opt/lib/ucx/libuct_cma.so.0
7f04-7f05 rw-p 00000000 00:00 0 [heap]
7f05-7f06 rw-p 00000000 00:00 0
"""
ASKING: dict[str, Callable[[str], set[str]]] = {"ofi": lambda path: {"tcp", path}, "ucx": lambda path: {"rc", path}}


def test_what_is_loaded_is_found_by_its_name() -> None:
    assert providers.loaded(MAPS) == {"ofi": "/opt/a b/lib/libfabric.so.1.29.0", "ucx": "/opt/lib/libuct.so.0"}
    assert providers.loaded("") == {}


@pytest.mark.parametrize(
    ("version", "stacks"),
    [(MPICH, ("ucx", "ofi")), (OFI_ALONE, ("ofi",)), (OPEN, ("ofi", "ucx")),
     ("Intel(R) MPI Library 2021.18", ("ofi",)), ("MPICH Device:       ch3:nemesis", ())],
)  # fmt: skip
def test_a_library_says_what_it_runs_on(version: str, stacks: tuple[str, ...]) -> None:
    assert providers.stacks(version) == stacks


def test_all_that_it_runs_on_is_asked() -> None:
    ofi, ucx = providers.loaded(MAPS).values()
    assert providers.found_in(MPICH, MAPS, ASKING) == sorted({"tcp", "rc", ofi, ucx})
    assert providers.found_in(OFI_ALONE, MAPS, ASKING) == sorted({"tcp", ofi})


@pytest.mark.parametrize(
    ("version", "said"),
    [(MPICH, "MPICH 5.0.2 does not show its ucx"), ("MPICH Version: 3.2", "MPICH 3.2 does not show its transports")],
)
def test_what_cannot_be_asked_is_not_known(version: str, said: str) -> None:
    maps = "\n".join(line for line in MAPS.splitlines() if "libuct.so" not in line)
    with pytest.raises(CannotRun, match=said):
        providers.found_in(version, maps, ASKING)


def _loads(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def test_the_library_here_drives_tcp_and_rdma_where_the_system_lets_it() -> None:
    found = providers.here()
    assert "tcp" in found
    verbs = _loads("libibverbs.so.1")
    assert ({"rc", "ud"} <= found) == verbs
    assert ("verbs" in found) == (verbs and _loads("librdmacm.so.1"))
    assert not found & {"cxi"}  # no wheel has it


def test_without_an_mpi_it_is_not_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text("#!/bin/sh\necho 'no MPI library found' >&2\nexit 4\n")
    bare.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(bare))
    with pytest.raises(CannotRun, match="no MPI library found"):
        providers.here()


@pytest.fixture
def on_infiniband(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host with an InfiniBand port that is up."""
    tree = trees.infiniband()
    found = cmd_fabrics.survey(tree.write(tmp_path), tree.addresses)
    monkeypatch.setattr(cmd_fabrics, "survey", lambda: found)
    monkeypatch.setattr(cmd_fabrics.cluster, "find", lambda: None)


def _told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[str, str]:
    assert cli.main(["fabrics", *words]) == 0
    told = capsys.readouterr()
    return told.out, told.err


def test_a_library_that_lacks_the_provider_makes_the_fabric_unusable(
    on_infiniband: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    why = "the MPI library lacks the provider: it loads none of rc, ud, dc, verbs (which need libibverbs)"
    monkeypatch.setattr(providers, "here", lambda: frozenset({"tcp", "psm2"}))
    out, err = _told(capsys, "--fabric", "ib-mlx5_0")
    assert why in out and not err
    assert f"# not measured here: {why}\n" in _told(capsys, "--recipe", "--fabric", "ib-mlx5_0")[0]
    monkeypatch.setattr(providers, "here", lambda: frozenset({"tcp", "verbs"}))
    assert "one host only" in _told(capsys, "--fabric", "ib-mlx5_0")[0]


def test_a_library_that_cannot_be_asked_is_told_of(
    on_infiniband: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> frozenset[str]:
        raise CannotRun("no MPI library found")

    monkeypatch.setattr(providers, "here", fail)
    out, err = _told(capsys, "--fabric", "ib-mlx5_0")
    assert "one host only" in out
    assert err == "fabricbench: warning: whether the MPI library drives RDMA is not known: no MPI library found\n"


def test_where_there_is_no_rdma_nothing_is_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    tree = trees.plain()
    found = cmd_fabrics.survey(tree.write(tmp_path / "sys"), tree.addresses)
    monkeypatch.setattr(cmd_fabrics, "survey", lambda: found)
    monkeypatch.setattr(providers, "here", lambda: pytest.fail("it was asked"))
    assert _told(capsys)[1] == ""
    (tmp_path / "f.toml").write_text('[fabrics.ib]\ndevices = ["mlx5_0:1"]\n')
    monkeypatch.setattr(providers, "here", lambda: frozenset({"tcp"}))
    out = _told(capsys, "--fabrics", str(tmp_path / "f.toml"), "--fabric", "ib")[0]
    assert "lacks the provider" in out
