"""What a command judges by: limits, and the baseline that they may rest on."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from fabrics.errors import UserError
from microbench import registry
from reports.comparison.baseline import NotABaseline, read_side
from reports.comparison.sides import Side
from reports.limits.model import BASELINE, Limits
from reports.load import NotARun
from reports.render import render
from suite.limitsfile import PROFILES, read_limits


@dataclass(frozen=True)
class Gate:
    """Limits and, where they need one, a baseline."""

    limits: Limits
    baseline: Side | None = None


def add(parser: argparse.ArgumentParser, required: bool = False) -> None:
    """Add ``--limits`` and ``--baseline`` to a command."""
    parser.add_argument(
        "--limits", required=required, metavar="L", help=f"a limits file, or one of the profiles {', '.join(PROFILES)}"
    )
    parser.add_argument(
        "--baseline", type=Path, metavar="B", help="what fabricbench baseline made; default: the one that L names"
    )


def chosen(args: argparse.Namespace) -> Gate | None:
    """What was asked for, or nothing; UserError where it cannot be read or meant."""
    if args.limits is None:
        if args.baseline is not None:
            raise UserError("--baseline is what limits rest on: name them with --limits L")
        return None
    table = registry.load((*registry.MODULES, *getattr(args, "module", ())))
    limits = read_limits(args.limits, [benchmark.name for benchmark in table])
    needed = any(criterion.reference == BASELINE for criterion in limits.criteria)
    named = args.baseline or (Path(limits.baseline) if limits.baseline and needed else None)
    if args.baseline is not None and not needed:
        raise UserError(f'--baseline {args.baseline}: no criterion of limits {limits.name} has reference = "baseline"')
    return Gate(limits, None if named is None else side(named))


def side(path: Path, samples: bool = False) -> Side:
    """The run or baseline at ``path``; UserError where there is none."""
    try:
        return read_side(path, samples)
    except (NotARun, NotABaseline) as error:
        raise UserError(str(error)) from None


def report(directory: Path, units: str, by: Gate | None, format: str = "text") -> str:
    """The report on a run, with verdicts where there is something to judge by."""
    return render(directory, format, units, *((by.limits, by.baseline) if by else ()))
