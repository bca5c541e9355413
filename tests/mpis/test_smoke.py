"""What must hold under every MPI: `make mpis` runs this with Open MPI and Intel MPI, `make unit` with MPICH."""

from __future__ import annotations

import json
import os
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from collectives import library as collectives
from fabrics.lab import cluster, slurm
from fabrics.lab.check import why_not
from microbench.dtypes import DTYPES
from suite import launch, leftovers
from tests import jobs, labs
from tests.figures.parity import compile_reference

ROOT = Path(__file__).resolve().parents[2]
HOST = socket.gethostname()
LIBRARY = launch.library()
BACKEND = launch.backend(LIBRARY)
PLAN = """
launches = 1
budget_s = 0.05
min_iterations = 5
[latency]
sizes = "8,64K"
[allreduce]
sizes = "8,64K"
"""
FAULTS = """
launches = 1
[plant_kill]
[plant_stop]
deadline_s = 1
[plant_raise]
[plant_ok]
ranks = [3]
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[cluster.Lab]:
    """Four hosts on one fabric; skips with the reason where no lab can be made."""
    with labs.or_skip("mpis", nodes=4, dpus=False) as made:
        yield made


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]


def kept(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "run.json").read_text()))


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """A folder for temporary files that no one else uses."""
    (tmp_path / "scratch").mkdir()
    return tmp_path / "scratch"


def left(scratch: Path) -> list[str]:
    """What a run has left there, but for the file by which runs notice each other."""
    return [path.name for path in scratch.iterdir() if path.name != "fabricbench-running"]


def test_the_launcher_is_the_librarys_own() -> None:
    launcher, library = launch.choose()
    assert library == LIBRARY
    expected = {"mpich": "hydra", "openmpi": "prrte", "impi-ofi": "intel"}
    assert launcher.family == expected[BACKEND]


def test_the_loop_runs_what_it_is_given() -> None:
    done = jobs.mpi(2, "-m", "tests.microbench.engine_job")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert (found["shape"], found["increasing"], found["received"]) == ([7, 2], True, True)
    assert re.match(r"MPI_Send \(call 1\) failed in iteration 0 on rank 0: \S", found["error"])
    assert found["arity"] == "MPI_Send takes 6 arguments: 2 given"
    assert "MPI_Recv" in found["watchdog"][0]


def test_the_loop_and_c_do_the_same(tmp_path: Path) -> None:
    launcher = launch.find_launcher()
    if not Path(launcher.path).with_name("mpicc").exists():
        pytest.skip(f"{LIBRARY} has come without mpicc: there is no C to compare with")
    library = compile_reference(launcher.path, tmp_path)
    done = jobs.mpi(2, "-m", "tests.figures.parity_worker", str(library), "1", "8,65536")
    assert done.code == 0, done.err
    cells = [json.loads(line) for line in done.out.splitlines()]
    assert [(cell["benchmark"], cell["nbytes"]) for cell in cells] == [
        (name, size) for name in ("pingpong", "window", "allreduce") for size in (8, 65536)
    ]
    assert all(cell["mpi"] == LIBRARY and cell["native_ns"][0] > 0 and cell["reference_ns"][0] > 0 for cell in cells)


@pytest.mark.parametrize(("name", "metric"), [("latency", "time"), ("allreduce", "busbw")])
def test_bench_in_a_job_of_the_users_own(name: str, metric: str) -> None:
    options = ("--sizes", "8,64K", "--seconds", "0.05", "--json")
    done = jobs.mpi(2, "-m", "suite.cli", "bench", name, *options)
    assert done.code == 0, done.err
    found = [json.loads(line) for line in done.out.splitlines()]
    assert [(r["nbytes"], r["status"], r["mpi"], r["ranks"]) for r in found] == [
        (8, "ok", LIBRARY, 2), (65536, "ok", LIBRARY, 2),
    ]  # fmt: skip
    assert all(r["metrics"][metric]["value"] > 0 for r in found)


def test_every_collective_in_every_mode() -> None:
    done = jobs.mpi(2, "-m", "tests.collectives.library_job", "52")
    assert done.code == 0, done.err
    found = [json.loads(line) for line in done.out.splitlines()]
    modes = {(b.name, mode) for b in collectives.BENCHMARKS for mode in b.modes}
    assert {(r["benchmark"], r["mode"] or "blocking") for r in found} == modes
    for record in found:
        assert (record["mpi"], record["status"]) == (LIBRARY, "ok"), (record["id"], record["reason"])


def test_every_type_is_right_or_unsupported() -> None:
    done = jobs.mpi(3, "-m", "tests.collectives.library_job", "40", ",".join(DTYPES), "blocking", "allreduce")
    assert done.code == 0, done.err
    found = {(r["dtype"], r["status"]) for r in map(json.loads, done.out.splitlines())}
    lacking = {"mpich": set(), "openmpi": {"bfloat16"}}.get(BACKEND, {"bfloat16"})
    assert found == {(name, "unsupported" if name in lacking else "ok") for name in DTYPES}


def test_the_message_rate_of_pairs() -> None:
    done = jobs.mpi(2, "-m", "suite.cli", "bench", "message_rate", "--sizes", "8", "--seconds", "0.05", "--json")
    assert done.code == 0, done.err
    record = json.loads(done.out)
    assert (record["status"], record["mpi"]) == ("ok", LIBRARY)
    assert record["metrics"]["message_rate"]["value"] > 0


def test_a_run_is_proved_on_every_fabric(tmp_path: Path, scratch: Path, request: pytest.FixtureRequest) -> None:
    fabrics, more = ["shm", "tcp-lo"], list[str]()
    if not why_not():
        fabrics.append("eth10g")
        more = ["--lab", request.getfixturevalue("lab").name]
    (tmp_path / "plan.toml").write_text(PLAN)
    chosen = [word for fabric in fabrics for word in ("--fabric", fabric)]
    where = ("--plan", str(tmp_path / "plan.toml"), "-o", str(tmp_path / "run"))
    done = jobs.fabricbench("run", *where, *chosen, *more, env={"TMPDIR": str(scratch)})
    assert done.code == 0, done.err
    found = {(r["fabric"], r["benchmark"], r["nbytes"]): (r["status"], r["proof"]) for r in records(tmp_path / "run")}
    cases = [(benchmark, nbytes) for benchmark in ("latency", "allreduce") for nbytes in (8, 65536)]
    expected = {(fabric, *case): ("ok", "proved") for fabric in fabrics for case in cases}
    assert found == expected, kept(tmp_path / "run")["jobs"]
    for job in kept(tmp_path / "run")["jobs"]:
        assert (job["status"], job["recipe"]["backend"], job["mpi"]) == ("ok", BACKEND, LIBRARY)
        assert all(len(cpus) == 1 for cpus in job["cpus"])
    assert left(scratch) == []


def test_faults_are_told_and_nothing_is_left(tmp_path: Path, scratch: Path) -> None:
    (tmp_path / "plan.toml").write_text(FAULTS)
    shm = leftovers.present()
    where = ("--fabric", "shm", "--module", "tests.plant", "-o", str(tmp_path / "run"))
    done = jobs.fabricbench("run", "--plan", str(tmp_path / "plan.toml"), *where, env={"TMPDIR": str(scratch)})
    assert done.code == 4, done.err
    found = {(r["benchmark"], r["ranks"]): (r["status"], r["reason"]) for r in records(tmp_path / "run")}
    reasons = {
        "plant_kill": ("failed", rf"rank 1 on {HOST} was killed by SIGKILL \(last in [^)]+(\)[^)]*)?\)$"),
        "plant_stop": ("timeout", rf"passed its deadline of 1 s: rank 1 on {HOST} is stopped \(last in "),
        "plant_raise": ("failed", rf"rank 1 on {HOST} raised RuntimeError: planted: this rank raises$"),
        "plant_ok": ("ok", "$"),
    }
    for (benchmark, _), (status, reason) in found.items():
        expected, text = reasons[benchmark]
        assert status == expected and re.match(text, reason), (benchmark, status, reason)
    assert set(found) == {("plant_kill", 2), ("plant_stop", 2), ("plant_raise", 2), ("plant_ok", 3)}
    assert leftovers.remove_new(shm) == []
    assert left(scratch) == []


def test_a_launcher_of_another_make_is_refused() -> None:
    other = ROOT / (".venv-openmpi" if BACKEND != "openmpi" else ".venv") / "bin" / "mpiexec"
    if not other.exists():
        pytest.skip(f"there is no other MPI: {other} is missing")
    made = launch.Launcher(str(other), "prrte" if BACKEND != "openmpi" else "hydra", "")
    program = [sys.executable, "-m", "suite.cli", "bench", "latency", "--sizes", "8"]
    done = jobs.run(launch.job_command(made, ("localhost",) * 2, program, {}))
    assert done.code == 4
    assert f"and the MPI library that mpi4py uses is {LIBRARY}" in done.err


HOSTS = "# four hosts, of which one takes two ranks\nh0 slots=2\nh[1-3]\n"
FABRICS = '[fabrics.wire]\ncidr = "10.77.2.0/24"\nrate = "10gbit"\n[fabrics.named]\ndevices = ["eth2g5"]\n'
BRIEF = """
launches = 1
budget_s = 0.05
min_iterations = 5
[[barrier]]
ranks = [5, 6]
fabrics = ["wire"]
sync = "barrier"
[[barrier]]
ranks = [4]
fabrics = ["named"]
sync = "barrier"
[[latency]]
sizes = "8"
fabrics = ["shm"]
"""


def stand_in(folder: Path, lab: cluster.Lab) -> Path:
    """What reaches a lab's hosts, each on a core of its own as far as there are: they think that they have all."""
    cores = sorted(os.sched_getaffinity(0))
    places = " ".join(f"h{n}) core={cores[n % len(cores)]}; break;;" for n in range(4))
    path = folder / "stand-in"
    path.write_text(
        f'#!/bin/sh\nfor word; do case $word in {places} esac; done\nexec taskset -c "$core" {lab.agent} "$@"\n'
    )
    path.chmod(0o755)
    return path


def test_a_run_over_hosts_that_a_file_names(lab: cluster.Lab, tmp_path: Path) -> None:
    for name, text in (("hosts", HOSTS), ("fabrics.toml", FABRICS), ("plan.toml", BRIEF)):
        (tmp_path / name).write_text(text)
    options = [f"--{name.split('.')[0]}={tmp_path / name}" for name in ("hosts", "fabrics.toml", "plan.toml")]
    command = ["-m", "suite.cli", "run", *options, "-o", str(tmp_path / "run")]
    env = {"FABRICBENCH_SSH": str(stand_in(tmp_path, lab))}
    done = jobs.run(lab.enter("h0", [sys.executable, *command]), 120, env)
    assert done.code == 0, done.err + done.out
    found = {(r["fabric"], r["ranks"]): r for r in records(tmp_path / "run")}
    told = {key: (" ".join(r["hosts"]), r["recipe"], r["status"], r["proof"]) for key, r in found.items()}
    assert told == {
        ("shm", 2): ("h0 h0", "pure", "ok", "proved"),
        ("named", 4): ("h0 h1 h2 h3", "pure", "ok", "proved"),
        ("wire", 5): ("h0 h0 h1 h2 h3", "job", "ok", "proved"),
        ("wire", 6): ("", "pure", "skipped", "unknown"),
    }, kept(tmp_path / "run")["jobs"]
    emulated = {fabric: r["emulated"] for (fabric, _), r in found.items()}
    assert emulated == {"shm": False, "named": True, "wire": True}
    assert found["named", 4]["oversubscribed"] == (len(os.sched_getaffinity(0)) < 4)  # one machine's cores
    assert found["wire", 6]["reason"] == "6 ranks wanted, and the hosts of wire take 5: give them more slots"
    assert "2 ranks a host" in done.out and "EMULATED: " in done.out


def test_a_run_inside_an_allocation_of_slurms(tmp_path: Path) -> None:
    if reason := why_not() or slurm.why_not():
        pytest.skip(reason)
    (tmp_path / "fabrics.toml").write_text(FABRICS)
    (tmp_path / "plan.toml").write_text(BRIEF.replace("[5, 6]", "[3]").replace("[4]", "[2]"))
    run = [sys.executable, "-m", "suite.cli", "run", f"--fabrics={tmp_path / 'fabrics.toml'}"]
    run += [f"--plan={tmp_path / 'plan.toml'}", "-o", str(tmp_path / "run")]
    with labs.made("slurm", dpus=False, slurm=True) as allocated:
        done = jobs.run(allocated.enter("h0", ["salloc", "-Q", "-N2", "--ntasks-per-node=2", *run]), 120)
    assert done.code == 0, done.err
    found = {(r["fabric"], r["ranks"]): r for r in records(tmp_path / "run")}
    told = {key: (" ".join(r["hosts"]), r["recipe"], r["status"], r["proof"]) for key, r in found.items()}
    assert told == {
        ("shm", 2): ("h0 h0", "pure", "ok", "proved"),
        ("named", 2): ("h0 h1", "pure", "ok", "proved"),
        ("wire", 3): ("h0 h0 h1", "job", "ok", "proved"),
    }, kept(tmp_path / "run")["jobs"]
    assert ("srun" in kept(tmp_path / "run")["environment"]["mpiexec"]) == (BACKEND == "mpich")


def test_one_host_is_no_network(lab: cluster.Lab, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("h0 slots=4\n")
    (tmp_path / "fabrics.toml").write_text('[fabrics.wire]\ndevices = ["eth10g"]\n')
    options = [f"--{name.split('.')[0]}={tmp_path / name}" for name in ("hosts", "fabrics.toml")]
    command = [sys.executable, "-m", "suite.cli", "run", "--quick", "--dry-run", "--fabric", "wire", *options]
    done = jobs.run(lab.enter("h0", [*command, "--ssh", str(lab.agent)]))
    assert done.code == 4
    assert "skipped: barrier/wire/pure/mpi/library/2r: all ranks are on h0" in done.out
    done = jobs.run(lab.enter("h0", [*command, "--ssh", str(lab.agent), "--same-host"]))
    assert done.code == 0, done.err
