"""``fabricbench report``: a report from stored records, without MPI."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fabrics.errors import UserError
from reports.load import NotARun
from reports.render import FORMATS, JUDGED
from suite import arguments, gate


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "report",
        help="a report from stored records, any time later",
        description="Make the report of a run again from what is on disk, with verdicts where limits are given.",
        epilog="example: fabricbench report runs/first --format csv > first.csv",
    )
    parser.add_argument("directory", type=Path, metavar="DIR", help="the run's folder")
    parser.add_argument("--format", choices=(*FORMATS, *JUDGED), default="text", help="default: text")
    gate.add(parser)
    arguments.add_units(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the report."""
    by = gate.chosen(args)
    if by is None and args.format in JUDGED:
        raise UserError(f"--format {args.format} is for verdicts: name limits with --limits L")
    try:
        text = gate.report(args.directory, args.units, by, args.format)
    except NotARun as error:
        raise UserError(str(error)) from None
    sys.stdout.write(text)
    return 0
