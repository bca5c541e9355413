"""The ``fabricbench`` command: parses, dispatches, and turns errors into one line and an exit code."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from fabrics.errors import CannotRun, UserError
from microbench import mpi
from suite import together

EXIT_CODES = (
    "exit codes: 0 all ran and passed, 1 a criterion failed or a number regressed, 2 usage, 3 inconclusive,"
    " 4 something could not run, timed out, came back wrong, took another way or was not measured,"
    " 124 the budget of time passed, 130 interrupted; of several, the first of 130, 124, 2, 4, 1, 3, 0 counts"
)
_COMMANDS = ("run", "bench", "fabrics", "lab", "report", "accept", "compare", "baseline", "import")
_TOLD_S = 0.8  # so that rank 0, which tells for all, comes to it, and the launcher forwards it
_FLOORS = ("fabrics", "microbench", "collectives", "training", "reports", "suite")
INTERRUPTED = 130


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Raise UserError: what is wrong, and where help is."""
        raise UserError(f"{message} (see {self.prog} --help)")


def parser(command: str = "") -> argparse.ArgumentParser:
    """The whole command line, or no more of it than ``command`` takes: every rank of a job starts with it."""
    top = Parser(
        prog="fabricbench",
        description="Measure what a cluster's fabrics can do, prove where the bytes went, and tell whether it matters.",
        epilog=f"example: fabricbench run --quick\n\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=_version())
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=Parser)
    for name in (command,) if command in _COMMANDS else _COMMANDS:
        importlib.import_module(f"suite.cmd_{name}").add(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code."""
    if sys.stdout is None:
        return _told("standard output is closed: nothing could be told", CannotRun.exit_code)
    try:
        check_packages()
        args = _parsed(argv)
        code = int(args.run(args))
        sys.stdout.flush()
    except (UserError, CannotRun) as error:
        fault = together.known(error) if _in_a_job(argv) else error
        return _told(str(fault), fault.exit_code)
    except KeyboardInterrupt as error:
        return _told(str(error) or "interrupted", INTERRUPTED)
    except BrokenPipeError:  # the reader of our output left, as `head` does
        _close_stdout()
        return 0
    except OSError as error:
        _close_stdout()
        where = f" {error.filename}" if error.filename else ""
        return _told(f"cannot read or write{where}: {error.strerror or error}", CannotRun.exit_code)
    return code


def _parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    words = _words(argv)
    try:
        return parser(next(iter(words), "")).parse_args(words)
    except SystemExit:
        sys.stdout.flush()  # help that cannot be written is an error, not silence
        raise


def _in_a_job(argv: Sequence[str] | None) -> bool:
    """Whether this is the one command whose ranks start MPI and wait there for each other."""
    return _words(argv)[:1] == ["bench"]


def _words(argv: Sequence[str] | None) -> list[str]:
    return list(sys.argv[1:] if argv is None else argv)


def _told(message: str, code: int) -> int:
    if mpi.launched_rank() == 0:
        print(f"fabricbench: {message}", file=sys.stderr, flush=True)
    if mpi.launched_size() > 1:  # a launcher ends a job when its first rank fails, and drops what it has not yet read
        time.sleep(_TOLD_S)
    return code


def _close_stdout() -> None:
    """What could not be written is not tried again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def check_packages(floors: Sequence[str] = _FLOORS) -> None:
    """Raise CannotRun where another distribution's package stands in the place of one of ours."""
    home = Path(__file__).resolve().parent.parent
    for name in floors:
        spec = importlib.util.find_spec(name)
        found = Path(spec.origin).resolve().parent if spec is not None and spec.origin else None
        if found != home / name:
            raise CannotRun(
                f"the package {name!r} at {found} is not fabricbench's: another distribution or folder hides it;"
                " install fabricbench into an environment of its own"
            )


def _version() -> str:
    from suite import environment  # noqa: PLC0415 - only --version and runs need it

    return f"fabricbench {environment.version()}"


if __name__ == "__main__":
    sys.exit(main())
