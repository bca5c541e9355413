"""``fabricbench baseline``: several runs as one file to compare with, and to judge by."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

from fabrics.errors import UserError
from reports.comparison import baseline
from reports.comparison.sides import FEWEST_RUNS, Side
from reports.limits.judge import judge
from reports.units import count
from reports.view import view
from suite import environment, gate
from suite.store import stored, write_whole


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "baseline",
        help="several runs as one file to compare with and to judge by",
        description=f"Make a baseline of {FEWEST_RUNS} runs or more: the bar is the median of their medians, which no"
        " lucky run moves far; what differs by no more than these runs do among themselves is never called different.",
        epilog="example: fabricbench baseline runs/mon runs/tue runs/wed -o baseline.json",
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="a run's folder")
    parser.add_argument("-o", "--output", required=True, type=Path, metavar="FILE", help="the baseline, new")
    parser.add_argument("--limits", metavar="L", help="take only runs that these limits do not fail")
    parser.set_defaults(run=run, baseline=None)


def run(args: argparse.Namespace) -> int:
    """Write the baseline, and tell what it leaves out."""
    if len(args.runs) < FEWEST_RUNS:
        raise UserError(
            f"a baseline takes {FEWEST_RUNS} runs or more, not {len(args.runs)}: of fewer nobody knows which is the"
            " lucky one"
        )
    if args.output.exists():
        raise UserError(f"{args.output} exists already: choose another name with -o")
    by = gate.chosen(args)
    try:
        made = baseline.make([_side(path, by) for path in args.runs])
    except baseline.NotABaseline as error:
        raise UserError(str(error)) from None
    now = datetime.now(UTC).isoformat(timespec="seconds")
    write_whole(args.output, baseline.to_json(made, environment.version(), now))
    print(f"{args.output}: {count(len(made.side.cases), 'case')} of {count(len(made.side.runs), 'run')}")
    for case, why in made.left_out.items():
        print(f"fabricbench: left out {case}: {why}", file=sys.stderr)
    return 0


def _side(path: Path, by: gate.Gate | None) -> Side:
    """The run in a folder; UserError where there is none, or limits fail it."""
    v = view(stored(path))
    judgement = judge(v, by.limits) if by else None
    if judgement is not None and judgement.code:
        failed = next(ruling.criterion.name for ruling in judgement.rulings if ruling.verdict != "pass")
        raise UserError(
            f"{path} is not accepted by limits {judgement.limits.name} ({failed}): leave it out of the baseline"
        )
    return baseline.side_of(v, path)
