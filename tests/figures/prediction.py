"""``make prediction``: are planted parameters found again, are training steps and allreduces predicted, and is a large
run reported soon?

About half an hour, as root: two parts are runs on labs of their own. Others' work on the machine is in every number.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from fabrics.lab.config import LabFabric
from reports.chapters import simulated
from reports.load import load
from reports.models.predicted import predictions
from reports.render import FORMATS
from reports.view import View, view
from tests import labs
from tests.figures import prediction_rows, target
from tests.figures.runs import run
from tests.figures.table import Row, figure
from tests.figures.target import Found, Parts
from tests.reports.folder import lab_run
from tests.reports.models.planted import Fabric

PARTS = ("planted", "step", "simulator", "report")
PLANTED, DRAWS = 0.03, 20
SLOW, FAST = LabFabric("eth2g5", 2.5e9), LabFabric("eth10g", 10e9)
CALM = LabFabric("eth1g", 1e9)  # at which two cores keep up with four hosts
MEDIAN, WORST, AIM = 0.15, 0.25, 0.10
SIMULATED, HOSTS, ALGORITHMS = 0.20, (2, 3, 4), ("ring", "recursive-doubling")
LARGE_SAMPLES, REPORT_S, REPORT_BYTES = 1_000_000, 5.0, 500 << 20
EXCHANGES = ("gloo", "mpi")
MODELS = (("resnet20", 128, 32, 8), ("resnet50", 16, 64, 12), ("vgg16", 8, 32, 12))
_STEP = """
launches = {launches}
precision = 0
budget_s = 0.3
[latency]
sizes = "8"
[bandwidth]
sizes = "1M"
[bibw]
sizes = "1M"
[reduce_local]
sizes = "1M,16M"
[[allreduce]]
sizes = "64K,1M,4M,8196000,16M,26255360,64M,128M"
backends = ["mpi", "gloo"]
[overlap_allreduce]
sizes = "1M,4M,26255360"
compare = ["host", "probes64", "gloo"]
budget_s = 3
min_iterations = 6
max_iterations = 8
[train]
min_iterations = 3
max_iterations = 8
models = [{models}]
"""
_SIMULATOR = """
launches = {launches}
precision = 0
budget_s = 0.3
min_iterations = 8
[latency]
sizes = "8:32M,192K,384K,768K,1536K,3M,6M,12M,24M"
[bandwidth]
sizes = "4M"
[bibw]
sizes = "4M"
[reduce_local]
sizes = "64K,1M,4M,16M"
[allreduce]
sizes = "1M:32M"
ranks = [{ranks}]
algorithms = ["ring", "recursive-doubling"]
"""
_REPORT = """
import json, resource, sys, time
from pathlib import Path
from reports.render import render
begun = time.monotonic()
text = render(Path(sys.argv[1]), sys.argv[2])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"s": time.monotonic() - begun, "bytes": peak, "report bytes": len(text.encode())}))
"""


def planted(draws: int) -> Found:
    """A fabric with known parameters and 2 % noise, drawn anew each time."""
    fabric = Fabric()
    rows = [prediction_rows.parameters(fabric, prediction_rows.recovered(fabric, seed)) for seed in range(draws)]
    return rows, prediction_rows.planted_figures(rows, PLANTED)


def _read(folder: Path) -> View:
    return view(load(folder))


def _model(described: tuple[str, int, int, int]) -> str:
    """A model of a plan, with all exchanges."""
    name, batch, px, budget = described
    rest = f"budget_s = {budget}, exchanges = {json.dumps(EXCHANGES)}"
    return f'{{ model = "{name}", batch = {batch}, image_px = {px}, {rest} }}'


def step(folder: Path, launches: int) -> Found:
    """Three models by two exchanges over two rates: their steps, and what the same run's allreduces predict."""
    models = ", ".join(map(_model, MODELS))
    with labs.made("run", fabrics=(SLOW, FAST)) as lab:
        plan = _STEP.format(launches=launches, models=models)
        run(folder, plan, lab.config.name, [SLOW.name, FAST.name])
    rows = prediction_rows.steps(predictions(_read(folder)))
    return rows, prediction_rows.step_figures(rows, 2 * len(MODELS) * len(EXCHANGES), MEDIAN, WORST, AIM)


def simulator(folder: Path, launches: int) -> Found:
    """Ring and recursive doubling on 2, 3 and 4 hosts: simulated on the line through latency, and measured."""
    rows: list[Row] = []
    for hosts in HOSTS:
        there = folder / f"hosts-{hosts}"
        with labs.made("run", nodes=hosts, fabrics=(CALM,)) as lab:
            run(there, _SIMULATOR.format(launches=launches, ranks=hosts), lab.config.name, CALM.name)
        rows += prediction_rows.simulated(simulated.of_fabric(_read(there), CALM.name))
    return rows, prediction_rows.simulator_figures(rows, ALGORITHMS, HOSTS, SIMULATED)


def report(folder: Path, times: int) -> Found:
    """Reports of a run of a million samples, each in a process of its own."""
    launches = 26
    large = lab_run(launches)
    samples = sum(max((m.n for m in record.metrics.values()), default=0) for record in large.records)
    large.write(folder)
    rows: list[Row] = []
    for name in FORMATS:
        for _ in range(times):
            command = [sys.executable, "-c", _REPORT, str(folder), name]
            done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
            rows.append({"format": name, "samples": samples, **json.loads(done.stdout)})
    slowest, peak = (max(float(row[name]) for row in rows) for name in ("s", "bytes"))
    why = "" if samples >= LARGE_SAMPLES else f"{samples} samples"
    return rows, [
        figure("report of 1,000,000 samples: slowest format, s", f"<= {REPORT_S:g}", slowest, len(rows),
               not why and slowest <= REPORT_S, why),
        figure("report of 1,000,000 samples: peak memory, MiB", f"<= {REPORT_BYTES >> 20}", peak / 2**20, len(rows),
               not why and peak <= REPORT_BYTES, why),
    ]  # fmt: skip


def parts(folder: Path, quick: bool) -> Parts:
    """What can be measured, by name; ``quick`` does a few of each, to see that it runs."""
    return {
        "planted": lambda: planted(3 if quick else DRAWS),
        "step": lambda: step(folder / "step", 1 if quick else 3),
        "simulator": lambda: simulator(folder / "simulator", 1 if quick else 3),
        "report": lambda: report(folder / "report", 1 if quick else 5),
    }


if __name__ == "__main__":
    sys.exit(target.run("prediction", __doc__, PARTS, parts))
