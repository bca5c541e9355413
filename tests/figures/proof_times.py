"""How long it takes until the fabrics are known, a lab is up, a probe is judged, and hosts are tried."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from fabrics.lab import cluster
from fabrics.lab.config import LabConfig, LabFabric
from tests import labs
from tests.fabrics import planted, trees
from tests.figures.table import Row, figure

DISCOVERY_S, LAB_S, PROBE_S, ROUTES_S = 1.0, 3.0, 3.0, 10.0
INTERFACES, NODES = 64, 16
LAB_FABRICS = (LabFabric("eth1g", 1e9), LabFabric("eth2g5", 2.5e9), LabFabric("eth10g", 10e9))
_COMMAND = """
import sys
from pathlib import Path
from fabrics.discover import survey
from suite import cli, cmd_fabrics
addresses = {f"ens{n}": [f"10.6.{n}.1/24"] for n in range(int(sys.argv[2]))}
cmd_fabrics.survey = lambda: survey(Path(sys.argv[1]), addresses)
sys.exit(cli.main(["fabrics", *sys.argv[3:]]))
"""


def discovery(folder: Path, times: int) -> tuple[list[Row], list[Row]]:
    """The command over a recorded tree of 64 interfaces, Python's start included."""
    root = trees.plain(INTERFACES).write(folder / "sys")
    rows: list[Row] = []
    for number in range(times):
        for form in ((), ("--json",)):
            start = time.monotonic()
            done = subprocess.run(
                [sys.executable, "-c", _COMMAND, str(root), str(INTERFACES), *form],
                capture_output=True, text=True, timeout=60, check=True,
            )  # fmt: skip
            took = time.monotonic() - start
            if done.stdout.count("ens63") == 0:
                raise RuntimeError("the last interface was not found")
            rows.append({"run": number, "form": "json" if form else "text", "s": took})
    return _summary(rows, "form"), [_slowest(f"`fabrics` on {INTERFACES} interfaces", rows, DISCOVERY_S)]


def lab(times: int) -> tuple[list[Row], list[Row]]:
    """Labs of 16 hosts and 3 fabrics, without DPUs and with them."""
    rows: list[Row] = []
    for number in range(times):
        for dpus in (False, True):
            name = cluster.own_name()
            start = time.monotonic()
            try:
                cluster.up(LabConfig(name, NODES, dpus, LAB_FABRICS))
                rows.append({"run": number, "dpus": NODES * dpus, "s": time.monotonic() - start})
            finally:
                cluster.down(name)
    return _summary(rows, "dpus"), [_slowest(f"a lab of {NODES} hosts x {len(LAB_FABRICS)} fabrics", rows, LAB_S)]


def probe(times: int) -> tuple[list[Row], list[Row]]:
    """What proof adds to jobs of 2, 4 and 16 hosts, where the bytes went as told and where they went elsewhere."""
    rows: list[Row] = []
    for nodes in (2, 4, 16):
        with labs.made("proof", nodes=nodes, dpus=False, fabrics=LAB_FABRICS) as where:
            for name in (fabric.name for fabric in LAB_FABRICS):
                rows += _probes(where, name, name, times)
            rows += _probes(where, "eth2g5", "eth10g", times)
    kept = [row for row in rows if row["hosts"] <= 4]
    figures = [_slowest("proof of a job of 2 or 4 hosts", kept, PROBE_S)]
    crowded = [row for row in rows if row["hosts"] > 4]
    why = "16 ranks on the cores of one machine: what it sends in all is bound by them, not by a link"
    figures.append(_slowest("proof of a job of 16 hosts", crowded, PROBE_S, why))
    return _summary(rows, "hosts", "fabric", "sent over", "verdict"), figures


def _probes(where: cluster.Lab, name: str, over: str, times: int) -> Iterator[Row]:
    """Proofs of one fabric, with the recipe of this or another."""
    wanted = "proved" if name == over else "disproved"
    for _ in range(times):
        found = planted.proved(where, name, planted.recipe_of(where, over), where.hosts)
        if found["verdict"] != wanted:
            print(f"probe: {name} sent over {over}: {found['verdict']}: {found['detail']}", flush=True)
        yield {"hosts": len(where.hosts), "fabric": name, "sent over": over, "verdict": found["verdict"],
               "s": found["took_s"]}  # fmt: skip


def routes(times: int) -> tuple[list[Row], list[Row]]:
    """Hosts that try each other over three fabrics, all whole, and one of them cut off at its last host."""
    rows: list[Row] = []
    for nodes in (2, 4, 16):
        with labs.made("proof", nodes=nodes, dpus=False, fabrics=LAB_FABRICS) as where:
            fabrics = [planted.on_lab(where, fabric.name) for fabric in LAB_FABRICS]
            for whole in (True, False):
                if not whole:
                    planted.break_route(where, where.hosts[-1], "eth1g")
                for _ in range(times):
                    found = planted.reached(where, *fabrics)
                    right = list(found.unreachable) == ([] if whole else ["eth1g"])
                    rows.append({"hosts": nodes, "whole": whole, "right": right, "s": found.took_s})
    right = sum(row["right"] for row in rows)
    figures = [
        _slowest("routes between hosts, tried both ways on 3 fabrics", rows, ROUTES_S),
        figure("fabrics told as they are", f"= {len(rows)}", right, len(rows), right == len(rows)),
    ]
    return _summary(rows, "hosts", "whole", "right"), figures


def _slowest(name: str, rows: list[Row], limit_s: float, why: str = "") -> Row:
    slowest = max(float(row["s"]) for row in rows)
    return figure(f"{name}, slowest, s", f"<= {limit_s:g}", slowest, len(rows), slowest <= limit_s,
                  why if slowest > limit_s else "")  # fmt: skip


def _summary(rows: list[Row], *by: str) -> list[Row]:
    groups: dict[tuple[object, ...], list[float]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(float(row["s"]))
    return [
        {**dict(zip(by, key, strict=True)), "n": len(times), "median s": median(times), "slowest s": max(times)}
        for key, times in groups.items()
    ]
