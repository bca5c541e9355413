"""``fabricbench report``: a report from stored records, without MPI."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fabrics.errors import UserError
from reports.load import NotARun
from reports.render import FORMATS, render
from suite import arguments


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "report",
        help="a report from stored records, any time later",
        description="Make the report of a run again from what is on disk.",
        epilog="example: fabricbench report runs/first --format csv > first.csv",
    )
    parser.add_argument("directory", type=Path, metavar="DIR", help="the run's folder")
    parser.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    arguments.add_units(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the report."""
    try:
        text = render(args.directory, args.format, args.units)
    except NotARun as error:
        raise UserError(str(error)) from None
    sys.stdout.write(text)
    return 0
