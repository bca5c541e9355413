"""What ``fabricbench bench train`` takes, and the plan that it is where a fabric is named and ranks are launched."""

from __future__ import annotations

import argparse
from typing import Any

from fabrics.errors import UserError
from microbench.registry import TRAIN, Benchmark
from reports.load import RunData, mapping
from reports.units import Unit
from suite import arguments, benchmodes, benchtable, flows, trained
from suite.placement import FEWEST_HOSTS
from suite.planfile import PlanFile, Section
from training.models import MODELS
from training.setup import SINGLE, Setup

USUAL_S = 25.0
"""How long steps are sampled where nothing is said: 8 rounds and as many steps alone, of the usual model."""
USUAL_MODEL, USUAL_PX = "resnet50", 64
_OPTIONS = ("model", "batch", "image_px", "dropout", "hook", "scaling", "data", "augment", "peer", "fabric")
_PLACED = ("roles", "dpus", "thread_level")


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the command line."""
    group = parser.add_argument_group("training", "for train")
    group.add_argument("--model", metavar="NAME", help=f"the network (default {USUAL_MODEL})")
    group.add_argument("--batch", type=arguments.count, metavar="N", help="images a rank takes in a step (default 16)")
    group.add_argument("--image-px", type=arguments.count, metavar="N", help=f"side of an image (default {USUAL_PX})")
    group.add_argument("--dropout", type=arguments.share, metavar="P", help="share of dropout (default: the model's)")
    group.add_argument(
        "--hook", metavar="E,E,...",
        help="what exchanges gradients, compared step by step: gloo (default), mpi, mpi-ring, dpu, ...; with +64M or"
        " +unfused behind it for buckets of another size",
    )  # fmt: skip
    group.add_argument(
        "--scaling", metavar="S",
        help="strong: the batch is that of all ranks together; in cfd, the one rank beside: both (default), strong,"
        " weak, none",
    )  # fmt: skip
    group.add_argument("--data", metavar="D", help="synthetic (default), cifar10:PATH or folder:PATH")
    group.add_argument("--augment", action="store_const", const=True, help="crop, flip, jitter and normalise images")
    group.add_argument("--peer", metavar="P", help="computes (default), or replayed: only the first host trains")
    group.add_argument("--fabric", metavar="F", help="launch two ranks over this fabric, as run does")


def setup(args: argparse.Namespace) -> Setup:
    """What the options make of a case. UserError says which of them cannot be meant."""
    names = ("model", "batch", "image_px", "dropout", "scaling", "data", "augment", "peer", "dtype", "placement")
    given = {name: value for name in names if (value := getattr(args, name)) is not None}
    if "image_px" not in given and (model := MODELS.get(str(args.model or USUAL_MODEL))):
        given["image_px"] = max(model.least_px, min(USUAL_PX, model.image_px))
    if args.hook is not None:
        given["exchanges"] = [word.strip() for word in args.hook.split(",")]
    return Setup.of(given)


def case_options(args: argparse.Namespace) -> dict[str, Any]:
    """What a case of training has, for :class:`microbench.case.Case`.

    UserError where it lacks the names of DPUs, and for a thread level that its exchanges cannot have.
    """
    found = setup(args)
    if found.with_dpus and not (args.roles or args.dpus or args.fabric):
        raise UserError(f"{'/'.join(found.exchanges)}: say which ranks are DPUs: --roles host,host,dpu,dpu or --dpus D")
    if args.thread_level is not None and found.thread_level not in (SINGLE, args.thread_level):
        raise UserError(
            f"--hook {','.join(found.exchanges)} takes MPI at thread level {found.thread_level}:"
            f" leave out --thread-level {args.thread_level}"
        )
    return {**trained.identity(found), "options": found.options}


def refuse(args: argparse.Namespace, benchmark: Benchmark) -> None:
    """Raise UserError for the first option of training where the benchmark does not train."""
    for name in _OPTIONS:
        shared = name == "scaling" and benchmark.kind == flows.KIND
        if benchmark.kind != TRAIN and not shared and getattr(args, name) is not None:
            raise UserError(f"{benchmark.name} trains nothing: leave out --{name.replace('_', '-')}")


def plan(args: argparse.Namespace, benchmark: Benchmark) -> PlanFile:
    """One launch of the case on two hosts, whose fabric is for the run to choose."""
    for name in _PLACED:
        if getattr(args, name) is not None:
            raise UserError(f"--fabric places and starts the ranks: leave out --{name.replace('_', '-')}")
    found, budget_s = setup(args), USUAL_S if args.seconds is None else args.seconds
    found.batch_of(FEWEST_HOSTS)
    section = Section(
        benchmark.name, models=(found.options,), budget_s=budget_s,
        max_iterations=args.iterations, min_iterations=min(10, args.iterations), kind=benchmark.kind,
        precision=benchmark.precision if args.precision is None else args.precision,
    )  # fmt: skip
    return PlanFile(f"bench {benchmark.name}", 1, (section,))


def lines(found: RunData, byte_rate: Unit) -> list[str]:
    """What is printed of a run of one case: as in a job of the user's own, with what counters said of it."""
    told = [] if found.records else ["# nothing was measured"]
    for record in found.records:
        if record.status != "ok":  # a title would stand over no row, and of ranks that may never have met
            told += benchmodes.lines(record, byte_rate)
            continue
        why = mapping(record.counters).get("detail") or ""
        proof = f"# proof: {record.proof}{f': {why}' if why else ''}"
        told += [benchtable.title(record), proof, *benchmodes.lines(record, byte_rate)]
    return told
