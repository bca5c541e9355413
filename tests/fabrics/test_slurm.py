"""Slurm in a lab: up, used by srun and salloc, alone, and gone. They need root, slurm-wlm and munge; else they skip."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fabrics.errors import CannotRun
from fabrics.lab import cleanup, cluster, enter, slurm
from fabrics.lab.config import LabConfig
from tests.fabrics.conftest import DEADLINE_S, MPIEXEC, ROOT, run_in
from tests.fabrics.test_commands import fabricbench
from tests.fabrics.test_lab import host_says, traces

RANK = """
import os
from mpi4py import MPI
world = MPI.COMM_WORLD
total = world.allreduce(world.rank + 1)
line = f"{world.rank} {world.size} {total} {MPI.Get_processor_name()}\\n"
os.write(1, line.encode())  # one write: lines of two ranks do not mix
"""
SYSTEM = (
    "/etc/slurm", "/etc/munge", "/var/lib/slurm", "/var/lib/munge", "/var/log/slurm", "/var/log/munge",
    "/run/munge", "/run/slurm", "/run/slurmctld", "/run/slurmd", "/var/spool/slurm", "/var/spool/slurmd",
)  # fmt: skip


@pytest.fixture(scope="module")
def can_slurm(can_lab: None) -> None:
    """Skip, with the reason, where no lab with Slurm can be made."""
    if reason := slurm.why_not():
        pytest.skip(reason)


@pytest.fixture(scope="module")
def slurm_lab(can_slurm: None) -> Iterator[cluster.Lab]:
    """A lab of two hosts with Slurm."""
    name = f"slurm{os.getpid()}"
    try:
        yield cluster.up(LabConfig(name, dpus=False, slurm=True))
    finally:
        cluster.down(name)


def test_all_paths_of_the_configuration_are_the_lab_s() -> None:
    text = slurm.configuration(LabConfig("x", 3, slurm=True), 2)
    values = [line.partition("=")[2].removeprefix("socket=") for line in text.splitlines()]
    paths = {value for value in values if value.startswith("/")} - {"/bin/true"}
    assert len(paths) == 7
    assert all(Path(path).is_relative_to("/run/fabricbench/x/slurm") for path in paths)
    assert text.count("NodeName=") == 3
    assert "SlurmctldHost=h0(10.77.0.1)\n" in text
    assert "PartitionName=lab Nodes=h0,h1,h2 " in text


def test_there_is_a_daemon_for_each_host() -> None:
    config = LabConfig("x", 3, slurm=True)
    assert [(d.name, d.host) for d in slurm.daemons(config)] == [
        ("munged", "h0"), ("slurmctld", "h0"), ("slurmd", "h0"), ("slurmd", "h1"), ("slurmd", "h2"),
    ]  # fmt: skip
    assert slurm.daemons(LabConfig("x")) == ()


def test_missing_packages_are_told_in_one_line(can_lab: None, spare: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm, "_program", lambda name: None)
    told = "a lab with Slurm needs munged, slurmctld, slurmd, sinfo: install the packages munge slurm-wlm"
    with pytest.raises(CannotRun, match=told):
        cluster.up(LabConfig(spare, slurm=True))
    assert traces(spare) == []


def test_another_slurm_s_variables_do_not_enter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(enter, "BASE", str(tmp_path))
    caller = {"PATH": "/bin", "SLURM_JOB_ID": "7", "SLURM_CONF": "/etc/slurm/slurm.conf"}
    assert enter.host_environment("x", caller) == caller  # a lab without Slurm
    (tmp_path / "x/slurm").mkdir(parents=True)
    conf = tmp_path / "x/slurm/slurm.conf"
    conf.touch()
    assert enter.host_environment("x", caller) == {"PATH": "/bin", "SLURM_CONF": str(conf)}
    inside = {**caller, "SLURM_CONF": str(conf)}
    assert enter.host_environment("x", inside) == inside  # a job of the lab's own goes on


def test_every_host_is_an_idle_node(slurm_lab: cluster.Lab) -> None:
    assert host_says(slurm_lab, "h1", "sinfo -h -N -o '%N %T'").splitlines() == ["h0 idle", "h1 idle"]
    assert slurm.absent(slurm_lab.config) == ()


def test_srun_reaches_the_hosts_themselves(slurm_lab: cluster.Lab) -> None:
    command = "hostname; cat /proc/sys/kernel/random/boot_id; readlink /proc/self/ns/net /proc/self/ns/ipc"
    ran = host_says(slurm_lab, "h0", f"srun -N 2 -l sh -c '{command}' | sort -n -s -k 1,1")
    wanted = [host_says(slurm_lab, host, command).splitlines() for host in slurm_lab.hosts]
    told = [line.split(": ", 1) for line in ran.splitlines()]
    assert [[text for task, text in told if task == str(index)] for index in range(2)] == wanted


def _ranks(text: str) -> list[list[str]]:
    return sorted(line.split() for line in text.splitlines() if line[:1].isdigit())


def test_srun_launches_mpich_ranks(slurm_lab: cluster.Lab) -> None:
    result = run_in(slurm_lab, "h0", "srun", "--mpi=pmi2", "-N", "2", "-n", "2", sys.executable, "-c", RANK)
    assert result.returncode == 0, result.stderr
    assert _ranks(result.stdout) == [["0", "2", "3", "h0"], ["1", "2", "3", "h1"]]


def test_srun_hands_the_exit_code_back(slurm_lab: cluster.Lab) -> None:
    assert run_in(slurm_lab, "h1", "srun", "-N", "1", "sh", "-c", "exit 7").returncode == 7


def test_salloc_holds_hosts_for_srun_and_for_mpiexec(slurm_lab: cluster.Lab) -> None:
    job = 'echo "$SLURM_JOB_NODELIST"; srun --mpi=pmi2 "$0" -c "$1"'
    result = run_in(slurm_lab, "h0", "salloc", "-N", "2", "sh", "-c", job, sys.executable, RANK)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[0] == "h[0-1]"
    assert len(_ranks(result.stdout)) == 2
    hydra = [str(MPIEXEC), "-launcher", "slurm", "-bind-to", "none", "-n", "2", "-ppn", "1", sys.executable, "-c", RANK]
    result = run_in(slurm_lab, "h0", "salloc", "-N", "2", *hydra)
    assert result.returncode == 0, result.stderr
    assert [row[3] for row in _ranks(result.stdout)] == ["h0", "h1"]


def test_a_job_knows_the_lab_s_configuration(slurm_lab: cluster.Lab) -> None:
    result = run_in(slurm_lab, "h0", "salloc", "-N", "2", "sh", "-c", "printenv SLURM_CONF SLURM_JOB_NUM_NODES")
    assert result.stdout.splitlines() == [str(slurm.configuration_file(slurm_lab.name)), "2"]


def test_up_is_idempotent_and_restores_a_daemon_that_died(slurm_lab: cluster.Lab) -> None:
    pids = [daemon.pid_file.read_text() for daemon in slurm.daemons(slurm_lab.config)]
    assert cluster.up(slurm_lab.config) == slurm_lab
    assert [daemon.pid_file.read_text() for daemon in slurm.daemons(slurm_lab.config)] == pids
    os.kill(int(pids[-1]), signal.SIGKILL)
    _wait(lambda: slurm.absent(slurm_lab.config) == ("slurmd on h1",))
    row = next(line for line in fabricbench("lab", "status").stdout.splitlines() if slurm_lab.name in line)
    assert "Slurm without slurmd on h1" in row
    assert cluster.up(slurm_lab.config) == slurm_lab
    assert slurm.absent(slurm_lab.config) == ()


def _wait(holds: object) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds() and time.monotonic() < deadline:  # type: ignore[operator]
        time.sleep(0.02)
    assert holds()  # type: ignore[operator]


def test_down_ends_jobs_and_daemons_and_leaves_nothing(can_slurm: None, spare: str) -> None:
    before = _system()
    made = fabricbench("lab", "up", "--name", spare, "--no-dpus", "--slurm")
    assert (made.returncode, made.stderr) == (0, f"lab {spare}: h0, h1 on eth2g5, eth10g, with Slurm\n")
    lab = cluster.load(spare)
    with subprocess.Popen(lab.enter("h0", ["srun", "-N", "2", "sh", "-c", "echo on; exec sleep 60"]),
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT) as job:  # fmt: skip
        assert job.stdout is not None
        assert [job.stdout.readline(), job.stdout.readline()] == ["on\n", "on\n"]
        running = cleanup.processes(spare)
        assert len(running) >= len(slurm.daemons(lab.config)) + 2
        assert cluster.down(spare)
        job.wait(timeout=DEADLINE_S)
    assert traces(spare) == []
    left = [pid for pid in running if Path("/proc", str(pid)).exists() and _state(pid) != "Z"]
    assert left == []
    assert _system() == before


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _system() -> dict[str, float]:
    """When anything of the machine's own Slurm and MUNGE was changed last."""
    paths = [path for root in SYSTEM for path in (Path(root), *Path(root).rglob("*")) if path.exists()]
    return {str(path): path.lstat().st_mtime for path in paths}


def test_two_at_once_do_not_meet(slurm_lab: cluster.Lab, spare: str) -> None:
    other = cluster.up(LabConfig(spare, 3, dpus=False, slurm=True))
    assert host_says(other, "h2", "srun -N 3 hostname | sort").split() == ["h0", "h1", "h2"]
    keys = [slurm.folder(each.name) / "munge.key" for each in (slurm_lab, other)]
    assert keys[0].read_bytes() != keys[1].read_bytes()
    assert keys[0].stat().st_mode & 0o777 == 0o600
    cluster.down(spare)
    assert slurm.absent(slurm_lab.config) == ()
    assert host_says(slurm_lab, "h0", "srun -N 2 hostname | sort").split() == ["h0", "h1"]


def test_a_daemon_that_does_not_start_is_told_and_leaves_nothing(
    can_slurm: None, spare: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = slurm.configuration
    wrong = "SelectType=select/absent\n"
    monkeypatch.setattr(slurm, "configuration", lambda config, cores: whole(config, cores) + wrong)
    with pytest.raises(CannotRun, match=f"lab {spare}: slurmctld") as told:
        cluster.up(LabConfig(spare, slurm=True))
    assert "\n" not in str(told.value)
    assert traces(spare) == []
