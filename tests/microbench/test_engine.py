"""The native loop in real jobs, and its refusals."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from fabrics.errors import CannotRun, UserError
from microbench import mpi
from microbench.buffers import allocate
from microbench.engine import arities, check_platform
from tests import jobs

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def findings() -> dict[str, Any]:
    done = jobs.mpi(2, "-m", "tests.microbench.engine_job")
    assert done.code == 0, done.err
    return dict(json.loads(done.out))


def test_stamps_and_data(findings: dict[str, Any]) -> None:
    assert findings["shape"] == [7, 2]
    assert findings["increasing"]
    assert findings["received"]
    assert findings["sent_unchanged"]
    assert findings["no_stamps"] == [4, 0]


def test_leaf_calls(findings: dict[str, Any]) -> None:
    assert findings["deadline_kept"]
    early, earliest, late = findings["margins"]
    assert 0 < early <= earliest <= 2_000_000  # at the first look
    assert late < 0  # the deadline had passed
    margin, error = findings["other_clock"]
    assert 0 < margin <= 3_000_000
    assert error >= -2  # never before the time, but for rounding; how long after, only the scheduler knows
    assert findings["streamed"] == [6]  # two iterations of three passes
    assert findings["copied"] == [0, 0, 1, 2, 3, 0]
    assert findings["work_scales"]
    assert findings["napped"]


def test_lags_are_taken_from_a_list_one_by_one(findings: dict[str, Any]) -> None:
    first, none, third, advanced = findings["lags"]
    assert first >= 3_000_000
    assert third >= 1_000_000
    assert none < first
    assert advanced == 3 * 8


def test_a_bell_is_heard_once_for_every_ring_and_its_ringer_missed(findings: dict[str, Any]) -> None:
    bell = findings["bell"]
    assert bell["waited_ns"] >= 100_000_000
    assert bell["cpu_s"] < 0.1
    assert bell["alone"].startswith("hear (call 0) failed in iteration 0 on rank 0: Broken pipe")
    assert bell["closed"].startswith("ring (call 0) failed in iteration 0 on rank 0: Bad file descriptor")


def test_an_error_names_call_iteration_rank_and_mpi_text(findings: dict[str, Any]) -> None:
    assert findings["error"].startswith("MPI_Send (call 1) failed in iteration 0 on rank 0: Invalid count")
    assert "Negative count, value is -5" in findings["error"]


def test_wrong_programs_are_refused(findings: dict[str, Any]) -> None:
    assert findings["arity"] == "MPI_Send takes 6 arguments: 2 given"
    assert "MPI_Frobnicate" in findings["unknown"]


def test_a_watchdog_sees_the_call_in_progress(findings: dict[str, Any]) -> None:
    assert findings["watchdog"] == ["MPI_Recv (call 1) in iteration 0 of 1", "outside the loop"]


def test_a_quiet_wait_does_not_burn_the_core(findings: dict[str, Any]) -> None:
    took_s, cpu_s = findings["quiet"]
    assert cpu_s < took_s / 2


@pytest.mark.parametrize("level", ["serialized", "multiple"])
def test_thread_levels_are_given_and_recorded(level: str) -> None:
    done = jobs.mpi(2, "-m", "tests.microbench.engine_job", level)
    assert done.code == 0, done.err
    assert json.loads(done.out)["level"] in (level, "multiple")


def test_single_is_the_default(findings: dict[str, Any]) -> None:
    assert findings["level"] == "single"


def test_unknown_thread_level_is_named() -> None:
    with pytest.raises(UserError, match="'many': one of single"):
        mpi.start("many")


@pytest.mark.parametrize(
    ("system", "machine", "bits"),
    [("darwin", "arm64", 64), ("linux", "i686", 32), ("win32", "AMD64", 64), ("linux", "sparc64", 64)],
)
def test_other_platforms_are_refused(system: str, machine: str, bits: int) -> None:
    with pytest.raises(CannotRun, match="needs 64-bit Linux"):
        check_platform(system, machine, bits)


def test_arities_are_read_from_prototypes() -> None:
    text = (
        "int MPI_Barrier(MPI_Comm)\n int MPI_Init(void)\n int MPI_Finalize()\n int MPI_Send(void*, int, T, int, int, C)"
    )
    assert arities(text) == {"MPI_Barrier": 1, "MPI_Init": 0, "MPI_Finalize": 0, "MPI_Send": 6}


@pytest.mark.parametrize("pages", ["small", "huge"])
@pytest.mark.parametrize("nbytes", [0, 1, 4096, 5 << 20])
def test_buffers_are_aligned_and_written(pages: str, nbytes: int) -> None:
    buffer = allocate(nbytes, pages)
    assert buffer.size == nbytes
    assert buffer.ctypes.data % (4096 if pages == "small" else 2 << 20) == 0
    assert buffer.flags.writeable
    assert not buffer.any()


def test_unknown_page_policy_is_named() -> None:
    with pytest.raises(UserError, match="'giant': one of small, huge"):
        allocate(8, "giant")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("MPICH Version:      5.0.2\nMPICH Release date: x", "MPICH 5.0.2"),
        ("Open MPI v5.0.11, package: Open MPI root@x", "Open MPI 5.0.11"),
        ("Intel(R) MPI Library 2021.11 for Linux* OS", "Intel(R) MPI Library 2021.11"),
        ("MPI VERSION    : CRAY MPICH version 8.1.29 (ANL base 3.4a2)", "CRAY MPICH 8.1.29"),
    ],
)
def test_makes_of_mpi(text: str, name: str) -> None:
    assert mpi.make(text) == name


@pytest.mark.parametrize(
    ("library", "environment", "said"),
    [
        ("MPICH 5.0.2", {"OMPI_COMM_WORLD_SIZE": "4"}, "is Open MPI's"),
        ("Open MPI 5.0.11", {"PMI_SIZE": "4"}, "is Hydra"),
        ("Open MPI 5.0.11", {"PMI_SIZE": "4", "SLURM_JOB_ID": "1"}, ""),
        ("Open MPI 5.0.11", {"OMPI_COMM_WORLD_SIZE": "4", "PMI_SIZE": "4"}, ""),
        ("MPICH 5.0.2", {"PMI_SIZE": "4"}, ""),
        ("MPICH 5.0.2", {}, ""),
    ],
)
def test_launchers_of_another_make_are_told_before_mpi_starts(
    library: str, environment: dict[str, str], said: str
) -> None:
    if not said:
        mpi.check_launcher(library, environment)
        return
    with pytest.raises(CannotRun, match=f"{said}.*{library}.*do not fit"):
        mpi.check_launcher(library, environment)


@pytest.mark.parametrize("variable", ["OMPI_COMM_WORLD_SIZE", "PMIX_SIZE"])
def test_a_job_of_which_one_rank_is_seen_is_refused(variable: str) -> None:
    done = jobs.python("-c", "from microbench import mpi; mpi.start()", env={variable: "4"})
    assert done.code != 0
    assert "MPICH" in done.err
    assert "do not fit" in done.err


def test_one_abi3_wheel(tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "build", "*.egg-info", "*.so", "runs", "results"))
    build = ("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path))
    done = jobs.python(*build, str(source), timeout_s=120)
    assert done.code == 0, done.err
    (wheel,) = tmp_path.glob("*.whl")
    assert "-cp311-abi3-linux_" in wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    assert "microbench/_loop.abi3.so" in names
    assert {"suite/plans/quick.toml", "suite/plans/default.toml", "suite/plans/full.toml"} <= set(names)
    assert not [name for name in names if name.startswith("tests/")]
