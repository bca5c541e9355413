"""``fabricbench compare``: two runs, or a run and a baseline, metric by metric."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fabrics.errors import UserError
from reports.comparison.alike import pair
from reports.comparison.told import Compared, to_json, to_text
from reports.comparison.verdicts import compare
from reports.units import BYTE_RATES
from suite import arguments, gate

_CODES = (
    "exit codes: 0 nothing regressed, 1 something did, 2 usage, 3 not enough is known of a metric,"
    " 4 something could not be compared or went wrong in NEW"
)


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "compare",
        help="two runs, metric by metric, with intervals",
        description="Tell what regressed, improved or stayed the same from OLD to NEW. Cases that differ in proof,"
        " ranks, hosts, thread level, page policy or recipe are not compared, and the difference is named.",
        epilog=f"example: fabricbench compare baseline.json runs/today\n\n{_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("old", type=Path, metavar="OLD", help="a run's folder, or what fabricbench baseline made")
    parser.add_argument("new", type=Path, metavar="NEW", help="the same")
    parser.add_argument("--metric", action="append", default=[], metavar="M", help="only this; may be given again")
    parser.add_argument(
        "--margin", type=arguments.share, default=0.0, metavar="PART",
        help="call nothing different that differs by less, such as 0.05 (default and least: 0.01 point to point,"
        " 0.03 elsewhere, and how far the runs of a baseline lie apart)",
    )  # fmt: skip
    parser.add_argument("--other-hosts", action="store_true", help="compare cases that ran on other hosts, too")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    arguments.add_units(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compare and tell; the exit code."""
    old, new = (gate.side(path, samples=True) for path in (args.old, args.new))
    known = {name for side in (old, new) for case in side.cases.values() for name in case.metrics}
    for name in args.metric:
        if name not in known:
            raise UserError(f"--metric {name}: neither side has it; there are {', '.join(sorted(known)) or 'none'}")
    pairing = pair(old, new, args.other_hosts)
    found = Compared(old, new, pairing, compare(pairing, args.metric, args.margin))
    sys.stdout.write(to_json(found) if args.format == "json" else to_text(found, BYTE_RATES[args.units]))
    return found.code
