"""``fabricbench run``: the whole suite, then the text report."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import NoReturn

from tabulate import tabulate

from fabrics import discover
from fabrics.errors import CannotRun
from fabrics.lab import cluster
from fabrics.lab.check import why_not
from fabrics.lab.config import LabConfig
from fabrics.model import Fabric
from microbench import registry
from microbench.buffers import PAGE_POLICIES
from reports.render import render
from suite import launch
from suite.plan import Plan, estimate_job_s, make_plan
from suite.planfile import PlanFile, read_plan, read_tier
from suite.run import Run
from suite.store import RunFolder


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "run",
        help="the whole suite, then the text report",
        description="Measure every usable fabric, keep every sample, and print the report."
        " As root this brings up an emulated lab cluster for the time of the run, unless one is up.",
        epilog="example: fabricbench run --quick -o runs/first",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    tier = parser.add_mutually_exclusive_group()
    tier.add_argument("--quick", action="store_const", const="quick", dest="tier", help="within 180 s on two cores")
    tier.add_argument(
        "--full", action="store_const", const="full", dest="tier", help="every size and type, six launches"
    )
    tier.add_argument("--plan", type=Path, metavar="P.toml", help="a plan file instead of a tier")
    parser.add_argument("--fabric", action="append", metavar="F", help="only this fabric; may be given again")
    parser.add_argument("--dry-run", action="store_true", help="say what would run and about how long, and stop")
    parser.add_argument("--pages", choices=PAGE_POLICIES, default="small", help="page policy of message buffers")
    parser.add_argument("--seed", type=int, default=1, help="seed of data and orders (default 1)")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="the run's folder (default runs/DATE)")
    parser.add_argument("--module", action="append", default=[], help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Plan, then measure and report, or only say what would be done."""
    modules = (*registry.MODULES, *args.module)
    table = registry.load(modules)
    file = read_plan(args.plan, table) if args.plan else read_tier(args.tier or "default", table)
    cpus = sorted(os.sched_getaffinity(0))
    if args.dry_run:
        fabrics = discover.discover(_standing_lab())
        print(_outline(make_plan(file, _chosen(fabrics, args.fabric, file), cpus), fabrics))
        return 0
    with _lab() as lab:
        fabrics = discover.discover(lab)
        plan = make_plan(file, _chosen(fabrics, args.fabric, file), cpus)
        launcher = launch.find_launcher()
        library = launch.library()
        launch.check_match(launcher, library)
        folder_path = args.output or Path("runs") / datetime.now().strftime("%Y-%m-%d-%H%M%S")
        with RunFolder(folder_path) as folder, _interruptible():
            job = Run(folder, plan, fabrics, launcher, library, modules, lab, args.pages, args.seed)
            try:
                code = job.execute()
            finally:  # an interrupted run has a report too
                text = render(folder_path, "text")
                folder.write_report(text)
    sys.stdout.write(text)
    print(f"fabricbench: the run is in {folder_path}", file=sys.stderr)
    return code


@contextmanager
def _interruptible() -> Iterator[None]:
    """SIGTERM and SIGHUP end the run as Ctrl-C does: workers ended, records kept."""

    def interrupt(number: int, frame: object) -> NoReturn:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _chosen(fabrics: Sequence[Fabric], names: Sequence[str] | None, file: PlanFile) -> list[Fabric]:
    """The fabrics asked for; CannotRun where one of them is not usable here."""
    for section in file.sections:
        discover.by_names(fabrics, section.fabrics)
    chosen = discover.by_names(fabrics, names) if names else list(fabrics)
    for fabric in chosen if names else ():
        if not fabric.usable:
            raise CannotRun(f"fabric {fabric.name} cannot be measured here: {fabric.unusable}")
    if not any(fabric.usable for fabric in chosen):
        raise CannotRun("no fabric can be measured here: see fabricbench fabrics")
    return chosen


def _standing_lab() -> cluster.Lab | None:
    return next((status.lab for status in cluster.status() if status.name == LabConfig.name), None)


@contextmanager
def _lab() -> Iterator[cluster.Lab | None]:
    """The lab that is up, or one for the time of the run, or none where none can be made."""
    cluster.remove_orphans()
    standing = _standing_lab()
    if standing is not None or why_not():
        yield standing
        return
    name = cluster.own_name()
    try:
        yield cluster.up(LabConfig(name=name))
    finally:
        cluster.down(name)


def _outline(plan: Plan, fabrics: Sequence[Fabric]) -> str:
    rows = [
        (job.number, job.launch, job.fabric.name, len(job.hosts), len(job.cases),
         ", ".join(dict.fromkeys(case.benchmark for case in job.cases)), f"{estimate_job_s(job):.0f}")
        for job in plan.jobs
    ]  # fmt: skip
    table = tabulate(rows, headers=("job", "launch", "fabric", "ranks", "cases", "benchmarks", "about s"))
    skipped = [f"skipped: {s.case.id}: {s.reason}" for s in plan.skips]
    skipped += [f"skipped: fabric {f.name}: {f.unusable}" for f in fabrics if not f.usable]
    total = f"plan {plan.name}: {len(plan.jobs)} jobs, about {plan.estimate_s / 60:.1f} minutes"
    return "\n".join([table, *skipped, total])
