"""What a 4-host job's start costs beyond a bare mpi4py program's: from the launch to sampling, proof left out."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from statistics import median
from typing import Any

from fabrics.lab import cluster
from microbench import registry
from microbench.case import Case
from suite import launch
from suite.children import Children, Lines
from suite.supervise import supervise
from tests import labs
from tests.fabrics import planted
from tests.figures.table import Row, figure

MORE_S = 1.0
FABRIC = "eth10g"
HOSTS = ("h0", "h1", "h2", "h3")
_DEADLINE_S = 60.0
_HELLO = "from mpi4py import MPI; c = MPI.COMM_WORLD; c.Barrier(); print('hello', c.rank, c.size, flush=True)"


def measure(times: int) -> tuple[list[Row], list[Row]]:
    """Both in turns; the figure is the median difference of pairs."""
    rows: list[Row] = []
    with labs.made("start", nodes=len(HOSTS), dpus=False) as lab:
        for number in range(times + 1):
            bare, (start, proof) = _hello_s(lab), _start_s(lab)
            if number:  # the first of each reads its files from the disk
                rows.append({"bare s": bare, "start s": start, "proof s": proof, "more s": start - bare})
    more = median(float(row["more s"]) for row in rows)
    text = f"a {len(HOSTS)}-host job's start beyond a bare mpi4py program's, proof left out, median, s"
    return rows, [figure(text, f"<= {MORE_S:g}", more, len(rows), more <= MORE_S)]


def _hello_s(lab: cluster.Lab) -> float:
    """Until every rank has said hello after a barrier."""
    command = planted.command(lab, HOSTS, [sys.executable, "-c", _HELLO], **planted.recipe_of(lab, FABRIC))
    start, heard = time.monotonic(), 0
    with Children(command, launch.clean_environment()) as job, Lines(job) as lines:
        for item in lines:
            if isinstance(item, bytes):
                heard += item.count(b"hello")  # launchers join what comes together
            if heard == len(HOSTS):
                return time.monotonic() - start
            if time.monotonic() > start + _DEADLINE_S:
                break
    raise RuntimeError(f"{heard} of {len(HOSTS)} ranks said hello")


def _start_s(lab: cluster.Lab) -> tuple[float, float]:
    """Until sampling of a barrier begins, all that is learned before included, but the proof; and the proof's time."""
    case = Case("barrier", FABRIC, ranks=len(HOSTS), budget_s=0.05, min_iterations=10, max_iterations=10)
    allowed = sorted(os.sched_getaffinity(0))
    cpus = [(allowed[rank % len(allowed)],) for rank in range(len(HOSTS))]
    program = launch.worker_program("single", cpus, hosts=HOSTS)
    command = planted.command(lab, HOSTS, program, **planted.recipe_of(lab, FABRIC))
    spec: dict[str, Any] = {
        "fabric": planted.on_lab(lab, FABRIC).as_dict(), "roles": ["host"] * len(HOSTS), "launch": 1, "seed": 1,
        "pages": "small", "modules": list(registry.MODULES), "cases": [{**asdict(case), "deadline_s": _DEADLINE_S}],
    }  # fmt: skip
    seen: dict[str, float] = {}

    def handle(event: Mapping[str, Any]) -> None:
        seen.setdefault(str(event["event"]), time.monotonic())
        if event["event"] == "job":
            seen["proof_s"] = float(event["proof_s"])
        if event["event"] == "record":
            if event["record"]["status"] != "ok":
                raise RuntimeError(f"the barrier was not measured: {event['record']['reason']}")
            seen["measuring_s"] = float(event["record"]["method"]["measuring_s"])

    start = time.monotonic()
    ending = supervise(command, launch.clean_environment(), spec, handle, lambda text: None)
    if ending.status != "ok":
        raise RuntimeError(f"the job did not end well: {ending.reason}")
    return seen["record"] - seen["measuring_s"] - start - seen["proof_s"], seen["proof_s"]
