"""``fabricbench bench``: one benchmark, inside the caller's own MPI job or alone."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType

from tabulate import tabulate

from fabrics.errors import CannotRun, UserError
from fabrics.model import Fabric, Proof
from microbench import mpi, registry, sync
from microbench.buffers import PAGE_POLICIES
from microbench.case import Case
from microbench.device import CPU, DEVICES, require
from microbench.dtypes import DTYPES, dtype, elements
from microbench.job import Job
from microbench.page import Page
from microbench.record import Record
from microbench.sizes import parse_sizes
from reports.load import load
from reports.samples import Samples
from reports.summary import WRONG
from reports.units import BYTE_RATES
from suite import (
    arguments,
    benchcfd,
    benchdpus,
    benchrows,
    benchtable,
    benchtrain,
    flows,
    osuformat,
    overlaps,
    protocol,
    session,
    together,
    trained,
    user_settings,
)
from suite.lookout import Lookout

TABLE, JSON, OSU, EVENTS = "table", "json", "osu", "events"  # the last with samples, for programs of ours
_FABRIC = "as launched"
_SIZES = "8:4M"
_USUAL_S = 0.5
_WAYS = {
    "mode": "how a collective is called, such as nonblocking or in-place (default: blocking)",
    "algorithm": "one of our own instead of the library's, such as ring",
    "backend": "a library of torch.distributed instead of MPI, such as gloo",
}


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "bench",
        help="one benchmark, inside your own MPI job or alone",
        description="Run one benchmark on the ranks of the job it is started in; rank 0 prints.",
        epilog="example: mpiexec -n 4 fabricbench bench allreduce --sizes 8:4M",
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="the benchmark; --list names them")
    parser.add_argument("--list", action="store_true", help="name the benchmarks and stop")
    parser.add_argument("--sizes", metavar="S", help=f"bytes per rank (default {_SIZES})")
    parser.add_argument(
        "--dtype", metavar="T",
        help=f"one of {', '.join(DTYPES)} (default: int8 in latency, bandwidth, bibw, message_rate, loggp;"
             " float32 in others)",
    )  # fmt: skip
    parser.add_argument(
        "--iterations", type=arguments.count, default=1000, metavar="N", help="at most so many (default 1000)"
    )
    parser.add_argument(
        "--seconds", type=arguments.seconds, metavar="X",
        help=f"sample about so long a size (default {_USUAL_S:g}, train {benchtrain.USUAL_S:g}); 10 slow iterations may"
        " take ten times that, or they are fewer",
    )  # fmt: skip
    parser.add_argument(
        "--precision", type=arguments.share, metavar="P",
        help="stop when the median's interval is within so much of it; 0: never early (default: the benchmark's)",
    )  # fmt: skip
    parser.add_argument(
        "--sync", choices=sync.NAMES, help="how the ranks of a collective start together (default auto)"
    )
    parser.add_argument("--device", choices=DEVICES, default="cpu", help="whose memory the buffers are in")
    for option, what in _WAYS.items():
        parser.add_argument(f"--{option}", metavar="NAME", help=what)
    benchtrain.add(parser)
    benchdpus.add(parser)
    benchcfd.add(parser)
    parser.add_argument(
        "--thread-level", choices=mpi.THREAD_LEVELS, help="default: single; in train, what its hooks take"
    )
    parser.add_argument("--pages", choices=PAGE_POLICIES, default="small", help="page policy (default: small)")
    arguments.add_units(parser)
    parser.add_argument(
        "--format", choices=(TABLE, JSON, OSU, EVENTS), default=TABLE, metavar="F",
        help="table (the default), json (a record a line), or osu (columns and statistics of OSU's own tests)",
    )  # fmt: skip
    parser.add_argument("--json", dest="format", action="store_const", const=JSON, help="the same as --format json")
    parser.add_argument("--module", action="append", default=[], help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """List, or measure and print."""
    table = registry.load((*registry.MODULES, *args.module))
    if args.list:
        print(
            tabulate(
                [(b.name, b.min_ranks, b.summary) for b in table],
                headers=("name", "ranks", "what it measures"),
            )
        )
        return 0
    cases = cases_of(args, table)
    if args.format == OSU:
        osuformat.table(table.get(args.name), args.mode)
    if args.fabric:
        return _launched(args, table)
    require(cases[0].device)
    user_settings.check()
    with Lookout().on_watch() as lookout:
        MPI = mpi.start(args.thread_level or trained.usual_level(cases[0]))  # noqa: N806 - the module's own name
        together.agree(MPI)  # a mistake that a rank has found before this comes here by way of the command's main
        return _measure(MPI, cases, table, args, lookout)


def _launched(args: argparse.Namespace, table: registry.Registry) -> int:
    """Measure on ranks of our own, over a fabric that is named, and print what a job of the user's would."""
    from suite import cmd_run  # noqa: PLC0415 - what launches is nothing that the ranks of a job need

    if mpi.launched_size() > 1:
        raise UserError("--fabric launches ranks of its own: leave it out in a job of yours, or start without mpiexec")
    file = benchtrain.plan(args, table.get(args.name))
    usual = cmd_run.usual(fabric=[args.fabric], pages=args.pages, units=args.units, module=args.module)

    def told(directory: Path) -> str:
        found = load(directory)
        if args.format == JSON:
            return "".join(f"{record.to_json()}\n" for record in found.records)
        return "".join(f"{line}\n" for line in benchtrain.lines(found, BYTE_RATES[args.units]))

    return cmd_run.measure(usual, file, told)


def cases_of(args: argparse.Namespace, table: registry.Registry) -> list[Case]:
    """The cases that a command line asks for, a size each; UserError for what cannot be meant."""
    if not args.name:
        raise UserError(f"bench needs a NAME: one of {', '.join(b.name for b in table)}")
    try:
        benchmark = table.get(args.name)
    except KeyError as error:
        raise UserError(error.args[0]) from None
    benchtrain.refuse(args, benchmark)
    if args.sync and not benchmark.synchronised:
        raise UserError(f"{benchmark.name} starts its ranks itself: leave out --sync")
    mode, algorithm, backend = (_way(option, getattr(args, option), benchmark) for option in _WAYS)
    if [mode, algorithm, backend].count("") < 2:
        raise UserError("--mode, --algorithm and --backend are ways apart: give one of them")
    _refuse_device(args.device, benchmark)
    trains = benchmark.kind == registry.TRAIN
    budget_s = (benchtrain.USUAL_S if trains else _USUAL_S) if args.seconds is None else args.seconds
    base = Case(
        benchmark.name, _FABRIC, recipe="", mode=registry.case_mode(mode), algorithm=algorithm or registry.LIBRARY,
        backend=backend or registry.MPI, budget_s=budget_s, max_iterations=args.iterations,
        min_iterations=min(10, args.iterations), dtype=_dtype(args.dtype, benchmark), sync=args.sync or "auto",
        precision=benchmark.precision if args.precision is None else args.precision, device=args.device,
    )  # fmt: skip
    dpus = benchdpus.case_options(args, benchmark)
    flow = benchcfd.case_options(args, benchmark)
    base = replace(base, **(benchtrain.case_options(args) if trains else dpus | flow))
    if not benchmark.sized:
        _refuse_sizes(args, benchmark)
        return [base]
    kind = dtype(base.dtype)
    sizes = [size for size in parse_sizes(_SIZES if args.sizes is None else args.sizes) if elements(size, kind) >= 0]
    return [replace(base, nbytes=size) for size in sizes]


def _way(option: str, name: str | None, benchmark: registry.Benchmark) -> str:
    """The name given for an option, if the benchmark has it; nothing where none, or the usual one, is."""
    has = getattr(benchmark, f"{option}s")
    if name is not None and name not in has:
        allowed = f"one of {', '.join(has)}" if has else f"leave out --{option}"
        raise UserError(f"{benchmark.name} has no {option} {name!r}: {allowed}")
    return "" if name is None or name == has[0] else name


def _refuse_sizes(args: argparse.Namespace, benchmark: registry.Benchmark) -> None:
    for option in ("sizes", "dtype"):
        if getattr(args, option) is not None and (benchmark.kind, option) != (registry.TRAIN, "dtype"):
            why = "has no message sizes" if benchmark.kind == flows.KIND else "moves no data"
            raise UserError(f"{benchmark.name} {why}: leave out --{option}")


def _refuse_device(device: str, benchmark: registry.Benchmark) -> None:
    if device != CPU and not benchmark.on_devices:
        why = "takes host memory alone" if benchmark.dtypes else "moves no data"
        raise UserError(f"{benchmark.name} {why}: leave out --device")


def _dtype(name: str | None, benchmark: registry.Benchmark) -> str:
    if not benchmark.dtypes:
        return ""
    return dtype(benchmark.usual_dtype if name is None else name).name


def _measure(
    MPI: ModuleType,  # noqa: N803 - the module's own name
    cases: Sequence[Case],
    table: registry.Registry,
    args: argparse.Namespace,
    lookout: Lookout,
) -> int:
    try:
        job = open_job(MPI, cases[0], args, lookout.page)
        lookout.seat(job.comm.allgather((job.hosts[job.rank], os.getpid())))
        job.roles = benchdpus.roles(args, job.hosts)
        benchdpus.fit(table.get(args.name), cases, job.roles, job.hosts)
        return _rows(job, cases, table, args)
    except Exception as error:
        if isinstance(error, UserError | CannotRun) and together.all_come(MPI):  # raised by every rank alike
            raise
        if isinstance(error, OSError) and MPI.COMM_WORLD.Get_size() == 1:
            raise  # nobody waits for this rank
        session.abort(MPI, error)


def open_job(
    MPI: ModuleType,  # noqa: N803 - the module's own name
    case: Case,
    args: argparse.Namespace,
    page: Page | None = None,
) -> Job:
    """The job of all ranks, as they were launched; its loop tells on ``page`` where it is."""
    fabric = Fabric(_FABRIC, "tcp" if overlaps.libraries(case) else "shm", ())
    return session.open_job(MPI, fabric, page, pages=args.pages)


def measured(
    job: Job, cases: Sequence[Case], table: registry.Registry, args: argparse.Namespace
) -> Iterator[tuple[Record, Samples]]:
    """Run the cases on every rank; on rank 0 each record with its samples. Every rank has to take them all."""
    if table.get(args.name).kind == registry.TRAIN and job.size == 1:
        raise CannotRun("train needs 2 ranks or more: start it with mpiexec, or name a --fabric to launch them over")
    level, proof = mpi.provided_level(job.engine.MPI), Proof("unknown", "no probe in a job of your own")
    sizes = ",".join(str(case.nbytes) for case in cases if case.nbytes is not None) or "none"
    wanted = {
        "sizes": sizes,
        "dtype": cases[0].dtype or "no data",
        "iterations": args.iterations,
        "sync": cases[0].sync,
        "precision": cases[0].precision,
        **{option: given for option in _WAYS if (given := getattr(args, option))},
        **{option: given for option in ("roles", "dpus") if (given := getattr(args, option))},
        **({"workload": cases[0].workload} if cases[0].workload else {}),
    }
    job.agree(args.name, **wanted, seconds=cases[0].budget_s, pages=args.pages)
    for case in (replace(case, ranks=job.size) for case in cases):
        outcome = session.run_case(job, case, table)
        if job.rank == 0:
            yield session.compose(job, case, outcome, proof, level), outcome.samples


def _rows(job: Job, cases: Sequence[Case], table: registry.Registry, args: argparse.Namespace) -> int:
    records: list[Record] = []
    timed = not table.get(args.name).kind
    for record, samples in measured(job, cases, table, args):
        if args.format == EVENTS:
            sys.stdout.buffer.write(protocol.encode({"record": asdict(record), "samples": protocol.pack(samples)}))
            sys.stdout.flush()
        elif args.format == OSU:
            benchrows.show_osu(osuformat.table(table.get(args.name), args.mode), record, samples, not records)
        else:
            benchrows.show(record, records, None if args.format == JSON else BYTE_RATES[args.units], timed)
        records.append(record)
    for line in () if args.format != TABLE else benchtable.notes(records) if timed else benchtable.data(records):
        print(line)
    return int(job.decide(CannotRun.exit_code if any(record.status in WRONG for record in records) else 0))
