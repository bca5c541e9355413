"""What ``fabricbench bench`` takes for benchmarks that overlap a collective with compute, or have ranks on DPUs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from collectives.offload.layout import layout_of
from collectives.offload.pieces import Task, planned
from collectives.overlap.options import COMPUTE, PLACEMENTS, Options, operation
from fabrics.errors import CannotRun, UserError
from microbench.case import Case, Unsupported
from microbench.dtypes import dtype, elements
from microbench.registry import TRAIN, Benchmark
from microbench.sizes import parse_sizes
from suite import flows, overlaps
from suite.arguments import count
from training.characterize.crew import check

ROLES = ("host", "dpu")
_OVERLAP = ("compare", "fraction", "skew", "outstanding", "compute")
_PLACEMENT = ("placement",)
_OFFLOAD = ("workers", "chunk", "dpu_memory")
_DPUS = ("roles", "dpus")


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the command line."""
    group = parser.add_argument_group(
        "overlap and DPUs", "for offload_*, overlap_*, dpu and, where DPUs take part, train"
    )
    group.add_argument("--roles", metavar="R,R,...", help="what each rank runs on, such as host,host,dpu,dpu")
    group.add_argument("--dpus", metavar="D,D,...", help="the DPUs by host name, instead of --roles")
    group.add_argument("--compare", metavar="M,M,...", help="the modes, such as host,probes16,staged")
    group.add_argument("--fraction", metavar="X", help="compute X times as long as the collective alone (default 1)")
    group.add_argument("--skew", metavar="X", help="hosts come late by up to X times that, at random (default 0)")
    group.add_argument("--outstanding", type=count, metavar="N", help="so many requests at once (default 1)")
    group.add_argument("--compute", choices=COMPUTE, help="what the compute works on (default registers)")
    group.add_argument("--placement", choices=PLACEMENTS, help="which hosts compute: how you have placed the ranks")
    group.add_argument("--workers", type=count, metavar="N", help="so many ranks make a DPU (default 1)")
    group.add_argument("--chunk", metavar="S", help="pieces of so many bytes (default: tuned by measuring)")
    group.add_argument("--dpu-memory", metavar="S", help="at most so many bytes of a DPU's memory")


def case_options(args: argparse.Namespace, benchmark: Benchmark) -> dict[str, Any]:
    """The options and workload of a case, for :class:`microbench.case.Case`; none where the benchmark has no options.

    Raises UserError for what cannot be, for an option that the benchmark has not, and where it takes DPUs and none are
    named.
    """
    refuse(args, benchmark)
    if benchmark.dpus and not (args.roles or args.dpus):
        raise UserError(f"{benchmark.name} has ranks on DPUs: say which with --roles host,host,dpu,dpu or --dpus NAMES")
    if not benchmark.overlaps:
        return {}
    given = {name: value for name in (*_OVERLAP, *_PLACEMENT, *_OFFLOAD) if (value := getattr(args, name)) is not None}
    given |= {"compare": _words(args.compare)} if args.compare is not None else {}
    given |= {name: _bytes(name, given[name]) for name in ("chunk", "dpu_memory") if name in given}
    options = Options.of(given, benchmark.kind == "offload")
    if options.thread_level not in ("single", args.thread_level or "single"):
        raise UserError(f"--compare thread: MPI's progress thread takes --thread-level {options.thread_level}")
    return {"options": overlaps.as_case(options, benchmark.kind == "offload"), "workload": options.label}


def refuse(args: argparse.Namespace, benchmark: Benchmark) -> None:
    """Raise UserError for the first option that the benchmark has no use for."""
    if args.roles and args.dpus:
        raise UserError("--roles and --dpus say the same thing: give one of them")
    trains = benchmark.kind == TRAIN
    needless = (
        (_DPUS, benchmark.dpus or trains, "has no ranks on DPUs"),
        (_PLACEMENT, benchmark.overlaps or trains, "overlaps nothing with compute"),
        (_OVERLAP, benchmark.overlaps, "overlaps nothing with compute"),
        (_OFFLOAD, benchmark.kind == "offload", "offloads nothing to DPUs"),
    )
    for names, has, why in needless:
        for name in names:
            shared = name == "compare" and benchmark.kind == flows.KIND
            if not has and not shared and getattr(args, name) is not None:
                raise UserError(f"{benchmark.name} {why}: leave out --{name.replace('_', '-')}")
    if args.roles:
        _roles(args.roles)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")]


def _bytes(name: str, text: str) -> int:
    found = parse_sizes(text)
    if len(found) != 1:
        raise UserError(f"--{name.replace('_', '-')} {text}: one size, such as 256K")
    return found[0]


def _roles(text: str) -> tuple[str, ...]:
    roles = tuple(_words(text))
    for role in roles:
        if role not in ROLES:
            raise UserError(f"--roles {text}: {role!r} is neither host nor dpu")
    return roles


def roles(args: argparse.Namespace, hosts: Sequence[str]) -> tuple[str, ...]:
    """What each rank of a job runs on, whose ranks are on these hosts; empty where nothing is said of DPUs.

    Raises UserError where there are not as many roles as ranks, CannotRun for a DPU on which no rank runs.
    """
    if args.roles:
        found = _roles(args.roles)
        if len(found) != len(hosts):
            raise UserError(f"--roles {args.roles}: {len(found)} roles for {len(hosts)} ranks")
        return found
    if not args.dpus:
        return ()
    dpus = _words(args.dpus)
    for dpu in dpus:
        if not any(_same(dpu, host) for host in hosts):
            there = ", ".join(dict.fromkeys(hosts))
            raise CannotRun(f"--dpus {args.dpus}: no rank runs on {dpu!r}: the job's ranks are on {there}")
    return tuple("dpu" if any(_same(dpu, host) for dpu in dpus) else "host" for host in hosts)


def fit(benchmark: Benchmark, cases: Sequence[Case], roles: Sequence[str], hosts: Sequence[str]) -> None:
    """Raise CannotRun where the job's ranks cannot be what a case asks for, or its pieces would be too many."""
    if benchmark.kind == "dpu":
        try:
            check(roles, len(hosts))
        except Unsupported as error:
            raise CannotRun(str(error)) from None
    for case in cases if benchmark.kind == "offload" else ():
        options = overlaps.options_of(case)
        if options is not None:
            layout = layout_of(roles, hosts, options.workers)
            kind = dtype(case.dtype)
            task = Task(operation(benchmark.name), elements(case.nbytes or 0, kind), len(layout.hosts))
            bounds = options.chunk, options.dpu_memory
            planned(task, layout.workers, layout.most_served, kind.nbytes, *bounds)


def _same(name: str, host: str) -> bool:
    """Whether a host is meant: by its whole name, or by what stands before its domain."""
    return name in (host, host.partition(".")[0])
