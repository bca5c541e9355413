"""Which launcher, whether it fits, and the command it gets."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fabrics.errors import CannotRun
from suite import launch
from suite.launch import Launcher

HYDRA = Launcher("/x/mpiexec", "hydra", "Hydra 5.0.2")
OPENMPI = Launcher("/y/mpiexec", "openmpi", "mpiexec (Open MPI) 5.0.11")


def fake_mpiexec(folder: Path, text: str, code: int = 0) -> Launcher:
    path = folder / "mpiexec"
    path.write_text(f"#!/bin/sh\ncat <<'E'\n{text}\nE\nexit {code}\n")
    path.chmod(0o755)
    return launch.find_launcher({"PATH": f"{folder}:/usr/bin:/bin"})


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Python without an mpiexec beside it."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none" / "python"))
    return tmp_path


def test_families_are_told_apart(bare: Path) -> None:
    assert fake_mpiexec(bare, "mpiexec (Open MPI) 5.0.11").family == "openmpi"
    assert fake_mpiexec(bare, "HYDRA build details:\n    Version:    4.1.2").version == "Hydra 4.1.2"
    assert fake_mpiexec(bare, "something else").family == "unknown"


def test_a_broken_launcher_is_told(bare: Path) -> None:
    with pytest.raises(CannotRun, match="no such library"):
        fake_mpiexec(bare, "no such library", code=3)


def test_no_mpi_says_how_to_get_one(bare: Path) -> None:
    with pytest.raises(CannotRun, match=r"no MPI found .*pip install 'fabricbench\[mpi\]'"):
        launch.find_launcher({"PATH": str(bare)})


def test_ours_is_found_and_fits() -> None:
    launcher = launch.find_launcher()
    assert launcher.family == "hydra"
    launch.check_match(launcher, launch.library())


@pytest.mark.parametrize(("launcher", "library"), [(OPENMPI, "MPICH 5.0.2"), (HYDRA, "Open MPI 5.0.11")])
def test_different_makes_are_refused(launcher: Launcher, library: str) -> None:
    with pytest.raises(CannotRun, match="another make"):
        launch.check_match(launcher, library)


def test_open_mpi_is_told_where_it_works() -> None:
    with pytest.raises(CannotRun, match="mpiexec -n 2 fabricbench bench"):
        launch.check_match(OPENMPI, "Open MPI 5.0.11")


def test_the_environment_is_cleaned_of_transports_and_other_jobs() -> None:
    before = {
        "UCX_TLS": "tcp",
        "FI_PROVIDER": "x",
        "PMI_RANK": "1",
        "OMPI_X": "",
        "PATH": "/bin",
        "OMP_NUM_THREADS": "8",
    }
    assert launch.clean_environment(before) == {"PATH": "/bin", "OMP_NUM_THREADS": "1"}
    assert set(launch.removed_variables(before)) == {"UCX_TLS", "FI_PROVIDER", "PMI_RANK", "OMPI_X"}


def test_commands_are_argument_vectors() -> None:
    local = launch.job_command(HYDRA, ("localhost",) * 3, ["prog"], {"A": "b c"})
    assert local == [
        "/x/mpiexec", "-launcher", "fork", "-hosts", "localhost", "-ppn", "3", "-n", "3", "-bind-to", "none",
        "-genv", "A", "b c", "prog",
    ]  # fmt: skip
    lab = launch.job_command(HYDRA, ("h0", "h1"), ["prog"], {}, enter=("enter", "h0"), agent="/run/agent")
    assert lab[:8] == ["enter", "h0", "/x/mpiexec", "-launcher", "ssh", "-launcher-exec", "/run/agent", "-hosts"]
    assert lab[8:12] == ["h0,h1", "-ppn", "1", "-n"]


def test_the_worker_is_told_its_processors() -> None:
    assert launch.worker_program("single", ((0,), (1, 3)))[-1] == "0:1,3"
