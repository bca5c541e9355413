"""Which launcher, whether it fits, and the command it gets: pure, but for asking mpiexec its name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fabrics.errors import CannotRun, UserError
from suite import launch
from suite.launch import Access, Launcher, find, prrte

HYDRA = Launcher("/x/mpiexec", "hydra", "Hydra 5.0.2")
INTEL = Launcher("/i/mpiexec", "intel", "Intel(R) MPI Library for Linux* OS, Version 2021.18")
PRRTE = Launcher("/y/mpiexec", "prrte", "mpiexec (Open MPI) 5.0.11")
ORTE = Launcher("/z/mpiexec", "orte", "mpiexec (Open MPI) 4.1.4")
SLURM = Launcher("/usr/bin/srun", "slurm", "slurm 22.05.8")
MIXED = Access(agent="/run/agent", pythons={"d0": "/opt/arm/python"})


def fake_mpiexec(folder: Path, text: str, code: int = 0, name: str = "mpiexec") -> dict[str, str]:
    path = folder / name
    path.write_text(f"#!/bin/sh\ncat <<'E'\n{text}\nE\nexit {code}\n")
    path.chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Python without an mpiexec beside it."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none" / "python"))
    return tmp_path


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ("mpiexec (Open MPI) 5.0.11\n\nReport bugs to ...", "prrte"),
        ("mpirun (Open MPI) 10.0.0a1", "prrte"),
        ("mpirun (Open MPI) 4.1.4", "orte"),
        ("mpirun (OpenRTE) 3.1.6", "orte"),
        ("prterun (PRRTE) 3.0.11", "prrte"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.18 Build 20260101 (id: x)", "intel"),
        ("HYDRA build details:\n    Version:    4.1.2\n", "hydra"),
        ("something else", "unknown"),
    ],
)
def test_families_are_told_apart_by_their_version(text: str, family: str) -> None:
    assert find.family(text) == family


def test_the_version_is_kept(bare: Path) -> None:
    made = launch.find_launcher(fake_mpiexec(bare, "HYDRA build details:\n    Version:    4.1.2"))
    assert made == Launcher(str(bare / "mpiexec"), "hydra", "Hydra 4.1.2")


def test_a_broken_launcher_is_told(bare: Path) -> None:
    with pytest.raises(CannotRun, match="no such library"):
        launch.find_launcher(fake_mpiexec(bare, "no such library", code=3))


def test_no_mpi_says_how_to_get_one(bare: Path) -> None:
    with pytest.raises(CannotRun, match=r"no MPI found .*pip install 'fabricbench\[mpi\]'"):
        launch.find_launcher({"PATH": str(bare)})


def test_ours_is_found_and_fits() -> None:
    launcher = launch.find_launcher()
    assert launcher.family in ("hydra", "intel", "prrte")
    launch.check_match(launcher, launch.library())


@pytest.mark.parametrize(
    ("launcher", "library"),
    [(PRRTE, "MPICH 5.0.2"), (HYDRA, "Open MPI 5.0.11"), (PRRTE, "Intel(R) MPI Library 2021.18"), (ORTE, "MPICH 4.1"),
     (SLURM, "Open MPI 5.0.11"), (INTEL, "Open MPI 5.0.11"), (Launcher("/q", "unknown", "?"), "MPICH 5.0.2")],
)  # fmt: skip
def test_different_makes_are_refused(launcher: Launcher, library: str) -> None:
    with pytest.raises(CannotRun, match="another make"):
        launch.check_match(launcher, library)


@pytest.mark.parametrize(
    ("launcher", "library", "backend"),
    [(PRRTE, "Open MPI 5.0.11", "openmpi"), (INTEL, "Intel(R) MPI Library 2021.18", "impi-ofi"),
     (HYDRA, "MPICH 5.0.2", "mpich"), (SLURM, "MPICH 5.0.2", "mpich"), (HYDRA, "CRAY MPICH 8.1", "mpich"),
     (HYDRA, "MVAPICH 3.0", "mpich")],
)  # fmt: skip
def test_each_library_has_its_launcher_and_its_recipes(launcher: Launcher, library: str, backend: str) -> None:
    launch.check_match(launcher, library)
    assert launch.backend(library) == backend


def test_an_open_mpi_before_5_is_told_where_it_works() -> None:
    with pytest.raises(CannotRun, match="mpiexec -n 2 fabricbench bench"):
        launch.check_match(ORTE, "Open MPI 4.1.4")


def test_srun_starts_libraries_of_an_allocation_that_speak_its_language(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_mpiexec(bare, "slurm 22.05.8", name="srun")
    inside = {**fake_mpiexec(bare, "mpiexec (Open MPI) 5.0.11"), "SLURM_JOB_ID": "7"}
    names = iter(["MPICH 5.0.2", "Open MPI 5.0.11", "MPICH 5.0.2"])
    monkeypatch.setattr(find, "library", lambda python: next(names))
    srun = Launcher(str(bare / "srun"), "slurm", "slurm 22.05.8")
    assert launch.choose(True, environment=inside) == (srun, "MPICH 5.0.2")
    assert launch.choose(True, environment=inside)[0].family == "prrte"
    with pytest.raises(CannotRun, match="another make"):
        launch.choose(True, "mpiexec", environment=inside)
    with pytest.raises(CannotRun, match="run inside one"):
        launch.choose(True, "srun", environment={"PATH": inside["PATH"]})


def test_the_environment_is_cleaned_of_transports_and_other_jobs() -> None:
    chosen = dict.fromkeys(
        ("UCX_TLS", "FI_PROVIDER", "PMI_RANK", "OMPI_X", "NCCL_IB_HCA", "HFI_UNIT", "PSM2_MULTIRAIL", "I_MPI_FABRICS",
         "GLOO_SOCKET_IFNAME", "PRTE_MCA_x", "MPI_LOCALRANKID"), "x"
    )  # fmt: skip
    kept = {"PATH": "/bin", "I_MPI_ROOT": "/opt/intel", "FI_PROVIDER_PATH": "/opt/intel/prov", "SLURM_JOB_ID": "7"}
    before = {**chosen, **kept, "OMP_NUM_THREADS": "8"}
    assert launch.clean_environment(before) == {**kept, "OMP_NUM_THREADS": "1"}
    assert launch.removed_variables(before) == chosen


def test_what_a_bare_ssh_would_drop_is_passed_by_name() -> None:
    before = {"PATH": "/a b", "PYTHONPATH": "/p", "MPI4PY_MPIABI": "mpich", "HOME": "/root", "EDITOR": "vi"}
    assert launch.passed(before) == {"PATH": "/a b", "PYTHONPATH": "/p", "MPI4PY_MPIABI": "mpich"}
    assert launch.passed(before, allocation=True) == {k: v for k, v in before.items() if k != "EDITOR"}


def test_commands_of_hydra() -> None:
    local = launch.job_command(HYDRA, ("localhost",) * 3, ["prog"], {"A": "b c"})
    assert local == [
        "/x/mpiexec", "-launcher", "fork", "-hosts", "localhost", "-ppn", "3", "-bind-to", "none", "-genv", "A", "b c",
        "-n", "3", "prog",
    ]  # fmt: skip
    lab = launch.job_command(HYDRA, ("h0", "h1"), ["prog"], {}, Access(("enter", "h0"), "/run/agent"))
    assert lab[:8] == ["enter", "h0", "/x/mpiexec", "-launcher", "ssh", "-launcher-exec", "/run/agent", "-hosts"]
    assert lab[8:12] == ["h0,h1", "-ppn", "1", "-bind-to"]
    uneven = launch.job_command(HYDRA, ("a", "b", "b"), ["prog"], {}, Access(agent="ssh"))
    assert uneven[uneven.index("-hosts") + 1] == "a:1,b:2" and "-ppn" not in uneven
    last_less = launch.job_command(HYDRA, ("a", "a", "b"), ["prog"], {}, Access(agent="ssh"))
    assert last_less[last_less.index("-hosts") + 1 :][:3] == ["a,b", "-ppn", "2"]


def test_intel_is_told_not_to_bind_by_a_variable() -> None:
    words = launch.job_command(INTEL, ("localhost",) * 2, ["prog"], {})
    assert words[words.index("-genv") :][:3] == ["-genv", "I_MPI_PIN", "0"] and "-bind-to" not in words
    uneven = launch.job_command(INTEL, ("a", "a", "b", "c"), ["prog"], {}, Access(agent="ssh"))
    assert " ".join(uneven).endswith(" -host a -n 2 prog : -host b -n 1 prog : -host c -n 1 prog")


def test_commands_of_prrte() -> None:
    way = Access(("enter", "h0"), "/run/agent", "mgmt", scratch="/tmp/x", one_machine=True)
    words = prrte.command(PRRTE, ("h0", "h1"), ["prog", "a"], {"A": "b,c;d e"}, way, root=False)
    assert words == [
        "enter", "h0", "/y/mpiexec", "--prtemca", "ras", "^slurm,pbs,gridengine,lsf", "--prtemca", "plm", "ssh",
        "--prtemca", "plm_ssh_agent", "/run/agent", "--prtemca", "plm_ssh_no_tree_spawn", "1",
        "--prtemca", "prte_if_include", "mgmt", "--prtemca", "prte_tmpdir_base", "/tmp/x",
        "--bind-to", "none", "--map-by", "slot", "-n", "2", "--host", "h0:1,h1:1", "-x", "A=b,c;d e", "prog", "a",
    ]  # fmt: skip
    assert "--allow-run-as-root" in prrte.command(PRRTE, ("localhost",) * 3, ["prog"], {}, Access(), root=True)
    assert "localhost:3" in prrte.command(PRRTE, ("localhost",) * 3, ["prog"], {}, Access(), root=True)
    inside = prrte.command(PRRTE, ("a", "b"), ["prog"], {}, Access(allocation=True), root=False)
    assert "--prtemca" not in inside


def test_commands_of_srun() -> None:
    words = launch.job_command(SLURM, ("a", "a", "b"), ["prog"], {"T": "tcp,self", "P": "1"}, Access(allocation=True))
    assert words == [
        "env", "T=tcp,self", "P=1", "/usr/bin/srun", "--mpi", "pmi2", "--nodes", "2", "--ntasks", "3",
        "--nodelist", "a,b", "--ntasks-per-node", "2", "--distribution", "block", "--overlap", "--overcommit",
        "--cpu-bind", "none", "--input", "0", "--kill-on-bad-exit=1", "--export", "T,P", "prog",
    ]  # fmt: skip


def test_hosts_with_a_python_of_their_own_get_it() -> None:
    hydra = launch.job_command(HYDRA, ("h0", "h1", "d0"), ["py", "-m", "w"], {}, MIXED)
    assert hydra[-14:] == [
        "h0,h1,d0", "-ppn", "1", "-bind-to", "none", "-n", "2", "py", "-m", "w", ":", "-n", "1", "/opt/arm/python",
        "-m", "w",
    ][-14:]  # fmt: skip
    words = prrte.command(PRRTE, ("h0", "h1", "d0"), ["py", "-m", "w"], {"A": "b"}, MIXED, root=False)
    assert words[words.index(":") :] == [":", "-n", "1", "--host", "d0:1", "-x", "A=b", "/opt/arm/python", "-m", "w"]
    with pytest.raises(UserError, match="srun starts one program"):
        launch.job_command(SLURM, ("h0", "d0"), ["py"], {}, MIXED)
    elsewhere = launch.job_command(HYDRA, ("h0", "d0"), ["py", "-m"], {}, Access(agent="s", python="/local/py"))
    assert elsewhere[-2:] == ["/local/py", "-m"] and "py" not in elsewhere


def test_an_unknown_launcher_is_refused() -> None:
    with pytest.raises(CannotRun, match="no launcher that is known"):
        launch.job_command(Launcher("/q", "unknown", "?"), ("localhost",), ["prog"], {})


def test_the_worker_is_told_its_processors() -> None:
    assert launch.worker_program("single", ((0,), (1, 3)))[-1] == "0:1,3"
    own = launch.worker_program("single", ((),) * 4, hosts=("a", "a", "b", "b"), settings="{}")
    assert own[-4:] == ["--settings", "{}", "--cpus", "+0:+1:+0:+1"]
