"""``fabricbench run``: the whole suite, then the text report."""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from fabrics import discover
from fabrics.errors import CannotRun, UserError
from fabrics.lab import cluster
from fabrics.lab.check import why_not
from fabrics.lab.config import LabConfig
from fabrics.model import Fabric
from microbench import mpi, registry
from microbench.buffers import PAGE_POLICIES
from suite import again, arguments, budget, gate, launch, leftovers, neighbours, sites, trained
from suite.interrupts import interruptible
from suite.outline import outline
from suite.placement import HERE, Target
from suite.plan import Plan, make_plan, why_nothing
from suite.planfile import PlanFile, read_plan, read_tier
from suite.run import Run
from suite.store import RunFolder, holds_run


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "run",
        help="the whole suite, then the text report",
        description="Measure every usable fabric, keep every sample, and print the report."
        " As root this brings up an emulated lab cluster for the time of the run, unless one is up.",
        epilog="examples: fabricbench run --quick -o runs/first"
        "\n          fabricbench run --quick -o runs/first --resume    (goes on with it, should it have been ended)",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    tier = parser.add_mutually_exclusive_group()
    tier.add_argument("--quick", action="store_const", const="quick", dest="tier", help="within 180 s on two cores")
    tier.add_argument(
        "--full", action="store_const", const="full", dest="tier", help="every size and type, six launches"
    )
    tier.add_argument("--plan", type=Path, metavar="P.toml", help="a plan file instead of a tier")
    parser.add_argument("--fabric", action="append", metavar="F", help="only this fabric; may be given again")
    parser.add_argument(
        "--budget",
        type=arguments.duration,
        metavar="TIME",
        help="keep to so much time, such as 90s, 30m or 1h30m (a number needs a unit): launches and then the longest"
        " cases that may not fit are dropped and told, and when the time has passed the run ends with 124",
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would run and about how long, and stop")
    parser.add_argument("--pages", choices=PAGE_POLICIES, default="small", help="page policy of message buffers")
    parser.add_argument("--seed", type=arguments.whole, default=1, help="seed of data and orders (default 1)")
    parser.add_argument(
        "-o",
        "--output",
        type=arguments.folder,
        metavar="DIR",
        help="the run's folder, new or empty (default runs/DATE)",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on with the run in DIR: with the same options and the same environment, only what is missing",
    )
    parser.add_argument(
        "--retry", action="store_true", help="with --resume: measure again what failed, timed out or came back wrong"
    )
    _add_hosts(parser)
    parser.add_argument("--lab", metavar="NAME", help=f"a lab that is up (default {LabConfig.name}, if it is)")
    gate.add(parser)
    arguments.add_units(parser)
    parser.add_argument("--module", action="append", default=[], help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def _add_hosts(parser: argparse.ArgumentParser) -> None:
    hosts = parser.add_argument_group(
        "several hosts", "Without these it is this machine. Inside an allocation of Slurm's, --fabrics alone will do."
    )
    hosts.add_argument(
        "--hosts", type=Path, metavar="FILE", help="a host or range a line, such as node[01-16] slots=2 user=me port=22"
    )
    hosts.add_argument("--fabrics", type=Path, metavar="FILE", help="TOML that says which devices join them")
    hosts.add_argument(
        "--ssh",
        default="",
        metavar="COMMAND",
        help=f"what to start ranks with instead of ssh (default: {sites.SSH_VARIABLE}, or ssh)",
    )
    hosts.add_argument("--launcher", choices=("auto", "mpiexec", "srun"), default="auto", help="default: auto")
    hosts.add_argument("--env-dir", type=Path, metavar="DIR", help="a Python environment on every host's own disk")
    hosts.add_argument(
        "--same-host", action="store_true", help="measure a network also where all ranks are on one host"
    )


def run(args: argparse.Namespace) -> int:
    """Plan, then measure and report, or only say what would be done."""
    if mpi.launched_size() > 1:
        raise UserError(
            "run launches its own ranks: start it without mpiexec; fabricbench bench is for a job of your own"
        )
    _check_resume(args)
    table = registry.load((*registry.MODULES, *args.module))
    return measure(args, read_plan(args.plan, table) if args.plan else read_tier(args.tier or "default", table))


def usual(**given: Any) -> argparse.Namespace:
    """The options of a run that says nothing but these."""
    parser = argparse.ArgumentParser()
    add(parser.add_subparsers())
    args = parser.parse_args(["run"])
    vars(args).update(given)
    return args


def measure(args: argparse.Namespace, file: PlanFile, tell: Callable[[Path], str] | None = None) -> int:
    """Measure a plan; what ``tell`` says of the run's folder is printed, or the whole report."""
    by = gate.chosen(args)
    modules = (*registry.MODULES, *args.module)
    site = _site(args)
    if site is None and not args.resume:
        _check_images(file)
    python = sites.python_of(args.env_dir, elsewhere=site is not None)
    if args.dry_run and site is None:
        return _dry(args, file, discover.discover(_standing_lab(args.lab)), HERE)
    with interruptible(), _lab(args.lab, site) as lab, leftovers.scratch() as scratch, neighbours.watch() as others:
        launcher, library = launch.choose(site is not None, args.launcher, python if Path(python).exists() else "")
        slots, beside = (site.slots, site.beside) if site else ({}, {})
        target = Target(launch.backend(library), slots, args.same_host, beside)
        access = launch.Access(python=python, scratch=str(scratch))
        access = sites.access(site, launcher, scratch, args.ssh, python) if site else access
        fabrics = sites.fabrics(site, sites.start(launcher, access)) if site else discover.discover(lab)
        if args.dry_run:
            return _dry(args, file, fabrics, target)
        plan = _plan(args, file, fabrics, target)
        if not plan.jobs:
            raise CannotRun(why_nothing(plan, file, fabrics, args.fabric or ()))
        folder_path = args.output or _new_folder()
        with RunFolder(folder_path, args.resume) as folder:
            job = Run(folder, plan, fabrics, launcher, library, modules, lab, args.pages, args.seed, others)
            job.access = access
            if args.resume and not job.go_on(args.retry) and not (by and again.left(job, by)):
                return _nothing_missing(job, folder, args.units, by)
            _tell(budget.check_space(job.todo.jobs, folder.directory), *budget.told(plan))
            code = _execute(job, folder, args.units, by, tell)
    _tell(f"the run is in {folder_path}")
    return code


def _check_images(file: PlanFile) -> None:
    """Refuse images that are not here before anything is launched: without named hosts, ranks see this file system."""
    for section in file.sections:
        for model in section.models:
            options = {key: value for key, value in model.items() if key != "budget_s"}
            trained.check_images(options, section.ranks)


def _site(args: argparse.Namespace) -> sites.Site | None:
    """The hosts that are named; UserError where an option says something of them, and none is."""
    site = sites.named(args.hosts, args.fabrics)
    if site is None:
        needless = {"--ssh": args.ssh, "--same-host": args.same_host, "--launcher srun": args.launcher == "srun"}
        for option, given in needless.items():
            if given:
                raise UserError(f"{option} is for several hosts: name them with --hosts and --fabrics")
    return site


def _dry(args: argparse.Namespace, file: PlanFile, fabrics: Sequence[Fabric], target: Target) -> int:
    """Say what a run would do."""
    planned = _plan(args, file, fabrics, target)
    print(outline(planned, fabrics))
    if not planned.jobs:
        _tell(why_nothing(planned, file, fabrics, args.fabric or ()))
    return 0 if planned.jobs else CannotRun.exit_code


def _check_resume(args: argparse.Namespace) -> None:
    """Raise UserError where there is nothing that can be gone on with."""
    if args.retry and not args.resume:
        raise UserError("--retry measures again what went wrong in a run: name it with -o DIR --resume")
    if not args.resume:
        return
    if args.output is None:
        raise UserError("--resume goes on with a run: say in which folder it is with -o DIR")
    if args.dry_run:
        raise UserError("--dry-run tells what a whole run does: leave out --resume")
    if not holds_run(args.output):
        raise UserError(f"{args.output} holds no run to go on with: leave out --resume to begin one")


def _plan(args: argparse.Namespace, file: PlanFile, fabrics: Sequence[Fabric], target: Target) -> Plan:
    cpus = sorted(os.sched_getaffinity(0))
    plan = make_plan(file, _chosen(fabrics, args.fabric, file), cpus, args.seed, target)
    return plan if args.budget is None else budget.fit(plan, args.budget)


def _tell(*texts: str) -> None:
    for text in filter(None, texts):
        print(f"fabricbench: {text}", file=sys.stderr)


def _nothing_missing(job: Run, folder: RunFolder, units: str, by: gate.Gate | None) -> int:
    """The report again."""
    sys.stdout.write(gate.report(folder.directory, units, by))
    _tell(f"nothing is missing of the run in {folder.directory}")
    return again.code(job, job.code, by)


def _execute(
    job: Run, folder: RunFolder, units: str, by: gate.Gate | None, tell: Callable[[Path], str] | None = None
) -> int:
    """Measure and report; an interrupted run has a report too, in its folder."""
    try:
        code = again.execute(job, by, _tell) if by else job.execute()
    except KeyboardInterrupt:
        folder.write_report(gate.report(folder.directory, units, by))
        raise KeyboardInterrupt(
            f"interrupted: what was measured is in {folder.directory}, with its report; --resume goes on with it"
        ) from None
    except OSError as error:
        raise CannotRun(
            f"the run in {folder.directory} ended: cannot write: {error.strerror}; what was stored is kept"
        ) from None
    text = gate.report(folder.directory, units, by)
    folder.write_report(text)
    sys.stdout.write(tell(folder.directory) if tell else text)
    return again.code(job, code, by)


def _new_folder() -> Path:
    """runs/DATE, or the next name that is free."""
    base = Path("runs") / datetime.now().strftime("%Y-%m-%d-%H%M%S")
    names = (base if n == 1 else base.with_name(f"{base.name}-{n}") for n in itertools.count(1))
    return next(path for path in names if not path.exists())


def _chosen(fabrics: Sequence[Fabric], names: Sequence[str] | None, file: PlanFile) -> list[Fabric]:
    """The fabrics asked for; CannotRun where one of them is not usable here."""
    for section in file.sections:
        try:
            discover.by_names(fabrics, section.named)
        except UserError as error:
            raise UserError(f"plan {file.name}: [{section.benchmark}]: {error}") from None
    chosen = discover.by_names(fabrics, names) if names else list(fabrics)
    for fabric in chosen if names else ():
        if not fabric.usable:
            raise CannotRun(f"fabric {fabric.name} cannot be measured here: {fabric.unusable}")
    if not any(fabric.usable for fabric in chosen):
        raise CannotRun("no fabric can be measured here: see fabricbench fabrics")
    return chosen


def _standing_lab(name: str | None) -> cluster.Lab | None:
    return cluster.find() if name is None else cluster.load(name)


@contextmanager
def _lab(name: str | None, site: sites.Site | None) -> Iterator[cluster.Lab | None]:
    """The lab that is up, or one for the time of the run, or none where none can be made or hosts are named."""
    leftovers.remove_stale()
    leftovers.remove_scratch()
    leftovers.remove_topologies()
    if site is not None:
        yield None
        return
    cluster.remove_orphans()
    standing = _standing_lab(name)
    if standing is not None or why_not():
        yield standing
        return
    own = cluster.own_name()
    try:
        yield cluster.up(LabConfig(name=own))
    finally:
        cluster.down(own)
