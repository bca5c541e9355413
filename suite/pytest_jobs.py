"""A case as a test asks for it: options as ``fabricbench bench`` has them, and the job that measures it."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabrics.errors import CannotRun, UserError
from microbench import registry
from microbench.case import Case
from microbench.record import Record
from reports.samples import headline
from suite import cmd_bench, launch, protocol
from suite.children import Children, Lines
from suite.cli import parser

LARGEST = 10_000  # samples of one test: 100,000 are 3.5 MB of JSON, and a second of arithmetic
EXIT_S = 30.0
_TOLD = 12  # lines of what a job that failed said
_RENAMED = {"size": "sizes"}


@dataclass(frozen=True)
class Measured:
    """A record, and the samples behind it."""

    record: Record
    samples: Mapping[str, NDArray[Any]]


def arguments(name: str, options: Mapping[str, Any]) -> list[str]:
    """``allreduce`` and ``size="64K", mode="nonblocking"`` as the command line of ``bench``."""
    words = ["bench", name, "--format", "events"]
    for option, given in options.items():
        if given is None:
            continue
        plain = _RENAMED.get(option, option).replace("_", "-")
        words += [f"--{plain}", ",".join(map(str, given)) if isinstance(given, list | tuple) else str(given)]
    return words


def parsed(words: Sequence[str]) -> tuple[argparse.Namespace, registry.Registry, list[Case]]:
    """The command line as ``bench`` reads it, and its cases; UserError where it cannot be meant."""
    args = parser().parse_args(list(words))
    if args.iterations > LARGEST:
        raise UserError(f"iterations={args.iterations}: a test takes at most {LARGEST} samples")
    table = registry.load((*registry.MODULES, *args.module))
    return args, table, cmd_bench.cases_of(args, table)


def launched(words: Sequence[str], hosts: Sequence[str], env: Mapping[str, str], timeout_s: float) -> list[Measured]:
    """What a job of its own measured, a rank per host named; CannotRun with its last words where it failed.

    The job is ended when its time is over, or the test is.
    """
    parsed(words)  # a mistake is told before a job is launched for it
    program = [sys.executable, "-m", "suite.cli", *words]
    command = launch.job_command(launch.find_launcher(), hosts, program, dict(env))
    found: list[Measured] = []
    said: list[str] = []
    until = time.monotonic() + timeout_s
    with Children(command, {**launch.clean_environment(), **env}) as children, Lines(children) as lines:
        for item in lines:
            children.note()
            if isinstance(item, dict):
                found.append(_measured(item))
            elif item is not None:
                said.append(item.decode("utf-8", "replace").rstrip())
            if time.monotonic() > until:
                raise CannotRun(f"{' '.join(words[1:3])}: over after {timeout_s:g} s; {_last(said)}")
        code = children.wait(EXIT_S)
    if not found or code is None:
        raise CannotRun(_last(said) or f"the job ended with {code} and without a word")
    return found


def _measured(event: Mapping[str, Any]) -> Measured:
    return Measured(Record.from_dict(event["record"]), protocol.unpack(event["samples"]))


def _last(said: Sequence[str]) -> str:
    return "; ".join(line.removeprefix("fabricbench: ") for line in said[-_TOLD:])


def series_of(measured: Measured) -> list[float]:
    """The samples that a record's median is of, in s; UserError where a benchmark has no one time."""
    if "time" not in measured.record.metrics or "time" not in measured.samples:
        raise UserError(f"{measured.record.benchmark} has no one time to make statistics of: use fabric_case")
    return [float(x) for x in np.asarray(headline(measured.record, measured.samples))]
