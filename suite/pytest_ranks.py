"""pytest under mpiexec: all ranks run all tests together, rank 0 reports, and a test fails on all ranks or on none.

At the end of each phase of each test the ranks tell each other what came of it. A rank that is not heard of within the
deadline ends the job, for it may wait where nobody comes: the first failing rank has told its traceback before.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, NoReturn

import pytest

from microbench import mpi
from microbench.job import Job
from microbench.record import Record
from suite import cmd_bench, user_settings
from suite.pytest_jobs import Measured, parsed

_LOOK_S = 0.0005
_AT_ONCE_S = 2.0  # after so long without the others, a failing rank speaks
_LONGEST_TEXT = 8000
ABORTED = 4


@dataclass
class Ranks:
    """The ranks of this job, in a communicator of pytest's own; ``deadline_s`` is how long one waits for the others."""

    MPI: ModuleType
    deadline_s: float
    comm: Any
    _job: Job | None = field(default=None)

    @classmethod
    def start(cls, deadline_s: float) -> Ranks:
        """Start MPI; every rank calls it. CannotRun where it does not start."""
        user_settings.check()
        MPI = mpi.start()  # noqa: N806 - the module's own name
        return cls(MPI, deadline_s, MPI.COMM_WORLD.Dup())

    @property
    def rank(self) -> int:
        """This rank."""
        return int(self.comm.Get_rank())

    @property
    def size(self) -> int:
        """How many there are."""
        return int(self.comm.Get_size())

    def exchange(self, mine: Any, what: str, told: str = "") -> list[Any]:
        """Every rank's JSON data, on every rank; the job is ended where they do not all come within the deadline.

        ``what`` names the place, and ``told`` is what to say where others seem to wait elsewhere.
        """
        data = bytearray(json.dumps(mine).encode())
        sizes = [0] * self.size
        lengths, own = bytearray(8 * self.size), bytearray(len(data).to_bytes(8, sys.byteorder))
        byte = self.MPI.BYTE
        self._wait(self.comm.Iallgather([own, byte], [lengths, byte]), what, told)
        sizes = [int.from_bytes(lengths[8 * r : 8 * r + 8], sys.byteorder) for r in range(self.size)]
        starts = [sum(sizes[:r]) for r in range(self.size)]
        everything = bytearray(sum(sizes))
        self._wait(self.comm.Iallgatherv([data, byte], [everything, sizes, starts, byte]), what, told)
        return [json.loads(everything[s : s + n].decode()) for s, n in zip(starts, sizes, strict=True)]

    def _wait(self, request: Any, what: str, told: str) -> None:
        began, spoke = time.monotonic(), not told
        while not request.Test():
            waited = time.monotonic() - began
            if waited > _AT_ONCE_S and not spoke:
                spoke = True
                _say(self.rank, f"failed in {what}, and the others did not come there:\n{told}")
            if waited > self.deadline_s:
                self.abort(f"{what}: not all ranks came there within {self.deadline_s:g} s: the job is ended")
            time.sleep(_LOOK_S)

    def abort(self, why: str) -> NoReturn:
        """End the job."""
        _say(self.rank, why)
        time.sleep(1.0)  # a launcher drops what it has not yet read
        self.MPI.COMM_WORLD.Abort(ABORTED)
        os._exit(ABORTED)  # where the library lets an aborted rank return

    def same_tests(self, names: Sequence[str]) -> str:
        """What is wrong where ranks have not collected the same tests in the same order; nothing where they have."""
        digest = hashlib.sha256("\n".join(names).encode()).hexdigest()
        rows = self.exchange([digest, len(names)], "collecting the tests")
        other = next((r for r, row in enumerate(rows) if row != rows[0]), None)
        if other is None:
            return ""
        return (
            f"rank {other} collected other tests than rank 0 ({rows[other][1]} and {rows[0][1]}), or in another order"
        )

    def joined(self, report: pytest.TestReport) -> pytest.TestReport:
        """The report with what came of the phase on the other ranks: failed where any failed, or they differ."""
        text = _text(report)
        what = f"{report.when} of {report.nodeid}"
        rows = self.exchange([report.outcome, text], what, text if report.outcome == "failed" else "")
        outcomes = [row[0] for row in rows]
        if len(set(outcomes)) == 1 and outcomes[0] != "failed":
            return report
        others = [(r, row) for r, row in enumerate(rows) if r != self.rank and row[0] != "passed"]
        if report.outcome != "failed":
            report.outcome = "failed"
            vars(report).pop("wasxfail", None)
            listed = ", ".join(f"rank {r} {outcome}" for r, outcome in enumerate(outcomes))
            report.longrepr = "\n".join([listed, *(f"--- rank {r} ---\n{row[1]}" for r, row in others if row[1])])
        else:
            report.sections += [(f"rank {r}: {row[0]}", row[1]) for r, row in others if row[1] not in ("", text)]
        return report

    def run(self, words: Sequence[str]) -> list[Measured]:
        """Measure on all ranks; every rank has the records, rank 0 the samples too."""
        args, table, cases = parsed(words)
        if self._job is None:
            self._job = cmd_bench.open_job(self.MPI, cases[0], args)
        found = [Measured(*pair) for pair in cmd_bench.measured(self._job, cases, table, args)]
        texts = self.exchange([m.record.to_json() for m in found], f"the results of {args.name}")[0]
        if self.rank == 0:
            return found
        return [Measured(Record.from_dict(json.loads(text)), {}) for text in texts]


def _text(report: pytest.TestReport) -> str:
    """Why a phase did not pass: the traceback, or the reason why it was skipped."""
    if report.outcome == "passed":
        return ""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
    return str(reason)[:_LONGEST_TEXT]


def _say(rank: int, text: str) -> None:
    """Past pytest's capture, each line with its rank; a follower's output is shown nowhere else."""
    marked = "".join(f"[rank {rank}] {line}\n" for line in text.splitlines())
    print(marked, end="", file=sys.__stderr__, flush=True)
