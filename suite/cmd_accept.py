"""``fabricbench accept``: the verdict on every criterion, from what is on disk; it never measures."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from reports.limits.judge import judge
from reports.limits.junit import to_junit
from reports.limits.model import Judgement
from reports.limits.told import to_json, to_text
from reports.units import BYTE_RATES
from reports.view import View, view
from suite import arguments, gate
from suite.store import stored, write_whole

_FORMATS: Mapping[str, Callable[[View, Judgement], str]] = MappingProxyType(
    {"text": to_text, "json": to_json, "junit": to_junit}
)
_CODES = "exit codes: 0 all pass, 1 a criterion fails, 2 usage, 3 inconclusive, 4 something was not measured"


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "accept",
        help="a verdict per criterion, from a run that is on disk",
        description="Judge a run by limits: pass where a whole interval is inside, fail where it is outside,"
        " else inconclusive; what has no number is not measured. Nothing is measured here:"
        " fabricbench run --limits L measures again what is in doubt.",
        epilog=f"example: fabricbench accept runs/first --limits lan-10g --junit verdicts.xml\n\n{_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("directory", type=Path, metavar="DIR", help="the run's folder")
    gate.add(parser, required=True)
    parser.add_argument("--format", choices=_FORMATS, default="text", help="default: text")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML for a CI server, too")
    arguments.add_units(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Judge and tell; the exit code."""
    by = gate.chosen(args)
    assert by is not None  # noqa: S101 - argparse has required it
    v = view(stored(args.directory), BYTE_RATES[args.units])
    judgement = judge(v, by.limits, by.baseline)
    if args.junit is not None:
        write_whole(args.junit, to_junit(v, judgement))
    sys.stdout.write(_FORMATS[args.format](v, judgement))
    return judgement.code
