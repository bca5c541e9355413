"""A run over hosts that a real ssh and sshd reach: in h0 of a lab sits the user, h1 and h2 are the cluster."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fabrics.lab import cleanup, cluster
from suite import launch
from tests import jobs, labs, sshd

HOSTS = f"h[1-2] user=root port={sshd.PORT}\n"
FABRICS = '[fabrics.wire]\ncidr = "10.77.2.0/24"\nrate = "10gbit"\n'
PLAN = """
launches = 1
budget_s = 0.05
min_iterations = 5
[latency]
sizes = "8,64K"
fabrics = ["wire"]
"""
_ENDING_S = 10.0
passes_on = pytest.mark.skipif(
    launch.backend(launch.library()) == "impi-ofi", reason="Intel MPI's launcher does not pass on what ssh says"
)


@pytest.fixture(scope="module")
def lab() -> Iterator[cluster.Lab]:
    sshd.program()
    with labs.or_skip("ssh", nodes=3, dpus=False) as made:
        yield made


@pytest.fixture(scope="module")
def ssh(lab: cluster.Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with sshd.serving(lab, ("h1", "h2"), tmp_path_factory.mktemp("ssh")) as words:
        yield words


def run(lab: cluster.Lab, folder: Path, hosts: str, ssh: str, **env: str) -> jobs.Done:
    for name, text in (("hosts", hosts), ("fabrics.toml", FABRICS), ("plan.toml", PLAN)):
        (folder / name).write_text(text)
    options = [f"--{name.split('.')[0]}={folder / name}" for name in ("hosts", "fabrics.toml", "plan.toml")]
    options += ["--ssh", ssh, "--env-dir", sys.prefix, "-o", str(folder / "run")]
    command = [sys.executable, "-m", "suite.cli", "run", *options]
    return jobs.run(lab.enter("h0", command), 120, env)


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "run" / "records.jsonl").read_text().splitlines()]


def test_ranks_are_started_by_ssh_and_measured(lab: cluster.Lab, ssh: str, tmp_path: Path) -> None:
    before = {host: set(cleanup.processes_of(lab.name, host)) for host in ("h1", "h2")}
    done = run(lab, tmp_path, HOSTS, ssh, UCX_TLS="self", LC_ALL="C")
    assert done.code == 0, done.err + done.out
    found = records(tmp_path)
    assert [(r["nbytes"], " ".join(r["hosts"]), r["status"], r["proof"], r["emulated"]) for r in found] == [
        (8, "h1 h2", "ok", "proved", True), (65536, "h1 h2", "ok", "proved", True),
    ]  # fmt: skip
    kept = json.loads((tmp_path / "run" / "run.json").read_text())
    assert kept["environment"]["removed_variables"] == {"UCX_TLS": "self"}
    assert all(job["cpus"] and all(job["cpus"]) for job in kept["jobs"])
    deadline = time.monotonic() + _ENDING_S
    while left := {host: set(cleanup.processes_of(lab.name, host)) - before[host] for host in before}:
        if not any(left.values()) or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    assert not any(left.values()), left


@passes_on
@pytest.mark.parametrize(
    ("hosts", "said"),
    [
        (HOSTS.replace(f"port={sshd.PORT}", "port=2223"), "Connection refused"),
        (HOSTS.replace("user=root", "user=nobody"), "Permission denied"),
    ],
)
def test_what_ssh_says_of_a_host_that_it_cannot_reach_is_told(
    lab: cluster.Lab, ssh: str, hosts: str, said: str, tmp_path: Path
) -> None:
    done = run(lab, tmp_path, hosts, ssh)
    assert done.code == 4
    assert said in done.err, done.err


@passes_on
def test_a_host_with_another_key_is_not_trusted(lab: cluster.Lab, ssh: str, tmp_path: Path) -> None:
    folder = Path(ssh.rsplit(maxsplit=1)[-1]).parent
    (folder / "other").write_text((folder / "client").read_text().replace("/known", "/none"))
    (folder / "none").write_text("")
    done = run(lab, tmp_path, HOSTS, f"ssh -F {folder / 'other'}")
    assert done.code == 4
    assert re.search(r"h[12] did not answer: .*host key is known for \[h[12]\]:2222", done.err), done.err
