"""Watching one job: its events, its deadlines, its end. The supervisor itself never touches MPI."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from suite.children import TERM_S, Children, Lines
from suite.diagnosis import Seen, death, told
from suite.watchdog import BETWEEN_S, START_S

_GRACE_S = 1.5  # beyond a deadline, for the ranks to tell where they are
_DYING_S = 5.0  # what a job may take to end after the first rank has died or raised
_ABORTING_S = 0.25  # within it, no rank that raises has yet ended the others
_NOISE = 20
_WHOLE_S = 10.0  # from which on tenths of a second say nothing
_LONGEST_LINE = 2000
_LAST_WORDS = 200
_BOILERPLATE = re.compile(  # what launchers print around the one line that matters
    r"^[\s=|-]*$|BAD TERMINATION|EXIT CODE|CLEANING UP|YOU CAN IGNORE|RUNNING AT|(?i:exit string)|FAQ page|PID \d+"
    r"|This typically refers to|KILLED BY SIGNAL|^@fb |^prterun (detected|noticed|has exited)|^thus causing"
    r"|Process name:|Exit code: |^MPI_ABORT was|^  Proc: |^  Errorcode: |^NOTE: invoking|^You may or may not see"
    r"|^exactly when|^\[\S+:\d+\] \*\*\* |^\"?abort\"?\. This may|^terminated by signals"
    r"|^srun: (error: \S+: tasks? |launch/slurm|Job step|cluster configuration lacks|Terminating)|^slurmstepd"
)


@dataclass(frozen=True)
class Ending:
    """How a job ended: ``case`` is the one in flight, None where none was; ``status`` is ok, failed or timeout."""

    status: str
    reason: str = ""
    case: int | None = None


@dataclass
class _Rank:
    """What events and processes say of a rank; ``pid`` is that of its watchdog."""

    host: str
    pid: int
    stopped: bool = False
    reported: bool = False
    where: str = ""


def supervise(
    command: list[str],
    env: Mapping[str, str],
    spec: Mapping[str, Any],
    handle: Callable[[dict[str, Any]], None],
    log: Callable[[str], None],
    start_deadline_s: float = START_S,
    until: float | None = None,
) -> Ending:
    """Run a job to its end, hand over every event, and log the rest.

    A case may take its ``deadline_s``, the start ``start_deadline_s``, the shutdown 10 s; then the job is ended, at
    most 5 s later. So it is when the monotonic clock passes ``until``, the end of the whole run's time: its status
    then is ``ended``.
    """
    with Children(command, env) as children, Lines(children) as lines:
        children.send(json.dumps(spec))
        watch = _Watch(children, lines, spec, log, start_deadline_s)
        for item in lines:
            if item is None:
                if until is not None and time.monotonic() > until and not watch.ended:
                    return Ending("ended", "the time of the whole run has passed", watch.case)
                if ending := watch.look():
                    return ending
            elif isinstance(item, bytes):
                watch.hear(item)
            else:
                watch.apply(item)
                handle(item)
                if item["event"] == "record":
                    children.send(f"stored {item['case']}")
                watch.allow(item)
        return watch.ending(children.wait(TERM_S))


class _Watch:
    """What is known of a running job, and until when it may go on as it does."""

    def __init__(
        self,
        children: Children,
        lines: Lines,
        spec: Mapping[str, Any],
        log: Callable[[str], None],
        start_deadline_s: float,
    ) -> None:
        self.case: int | None = None
        self.ended = False
        self._children, self._lines, self._log = children, lines, log
        self._limits = [float(case["deadline_s"]) for case in spec["cases"]]
        self._size = len(spec["roles"])
        self._ranks: dict[int, _Rank] = {}
        self._described, self._stored = False, 0
        self._fault, self._dead, self._killed = "", -1, False
        self._raised_at = 0.0
        self._noise: list[str] = []
        self._limit_s = start_deadline_s
        self._deadline = time.monotonic() + start_deadline_s
        self._grace: float | None = None

    def apply(self, event: Mapping[str, Any]) -> None:
        """Take note of an event."""
        kind = event["event"]
        if kind == "rank":
            self._follow(event)
        elif kind == "job":
            self._described = True
            self._children.note()
        elif kind == "start":
            self.case = int(event["case"])
        elif kind == "record":
            self.case, self._stored = None, self._stored + 1
        elif kind == "end":
            self.ended = True
        elif kind == "raised":
            joint = ":" if event.get("told") else " raised"
            self._first_fault(f"rank {event['rank']} on {event['host']}{joint} {event['error']}")
        elif kind in ("stuck", "stopped", "continued") and event["rank"] in self._ranks:
            rank = self._ranks[event["rank"]]
            rank.where, rank.stopped, rank.reported = event["where"], kind == "stopped", kind == "stuck"
        elif kind == "died":
            self._died(event)

    def allow(self, event: Mapping[str, Any]) -> None:
        """The time that an event which begins a stage gives to the stage, from now on."""
        if event["event"] not in ("job", "start", "record", "end"):
            return
        self._limit_s = BETWEEN_S if self.ended or self.case is None else self._limits[self.case]
        self._deadline, self._grace = time.monotonic() + self._limit_s, None
        for rank in self._ranks.values():
            rank.reported = False

    def hear(self, line: bytes) -> None:
        """Log a line that is no event; of one that no one wrote to be read, such as a torn record, its beginning."""
        text = line.decode("utf-8", "replace").replace("\0", "").rstrip()  # PRRTE writes the ends of its C strings
        if len(text) > _LONGEST_LINE:
            self._log(f"{text[:_LONGEST_LINE]} ... {len(text)} characters")
        elif text:
            self._log(text)
            self._noise = [*self._noise[-_NOISE:], text]

    def look(self) -> Ending | None:
        """How the job has ended where its time is up, and None where it may go on."""
        now = time.monotonic()
        for pid in self._lines.gone():
            self._vanished(pid)
        if self._children.wait(0) is not None:  # its outputs are still open: something has outlived the launcher
            self._hurry(TERM_S)
        if now <= self._deadline:
            return None
        self._grace = self._grace or now + _GRACE_S
        if now <= self._grace and not self._fault and not self._all_told():
            return None
        return self._too_late()

    def ending(self, code: int | None) -> Ending:
        """How a job has ended whose launcher left with ``code``, None where it has closed its outputs and stays."""
        if self.ended:
            return Ending("ok")
        for pid in self._lines.gone():
            self._vanished(pid)
        last = next((text.strip() for text in reversed(self._noise) if not _BOILERPLATE.search(text)), "")[:_LAST_WORDS]
        if code is not None and code < 0:
            last = f"the launcher was ended by {signal.Signals(-code).name}" + (f": {last}" if last else "")
        words = f": {last}" if last else ""
        if self._fault:
            reason = self._fault + (words if self._dead >= 0 else "")
        elif self._described:
            reason = f"a rank ended early, with exit code {code}{words}"
        else:
            reason = f"the job did not start (exit code {code}): {last or 'the launcher said nothing'}"
        return Ending("failed", reason, self.case)

    def _follow(self, event: Mapping[str, Any]) -> None:
        pid = int(event["pid"])
        self._ranks[int(event["rank"])] = _Rank(event["host"], pid)
        if not self._children.here(pid):
            self._children.note()
        if self._children.here(pid):
            self._lines.follow(pid)

    def _first_fault(self, text: str) -> None:
        if not self._fault:
            self._fault, self._raised_at = text, time.monotonic()
        self._hurry(_DYING_S)

    def _died(self, event: Mapping[str, Any]) -> None:
        """A rank's end. What killed its watchdog with it has been told before, in fewer words.

        A rank that is killed makes others raise or leave, and they may be quicker to tell: its death is the cause.
        """
        known = bool(self._fault) and self._dead != event["rank"]
        if self.ended or (known and not self._the_cause(event)):
            return
        self._fault = death(event) + (f"; then {self._fault[:_LAST_WORDS]}" if known else "")
        self._dead, self._killed, self._raised_at = event["rank"], _killed(event), time.monotonic()
        if self.case is None and event.get("case") == self._stored:
            self.case = self._stored  # it had begun before rank 0 could tell
        self._hurry(_DYING_S)

    def _the_cause(self, death: Mapping[str, Any]) -> bool:
        """Whether a rank was killed before one that raised or left could have ended it."""
        soon = not self._killed and time.monotonic() - self._raised_at < _ABORTING_S
        return soon and _killed(death)

    def _vanished(self, pid: int) -> None:
        """A watchdog has ended: after its rank's ``died``, at the job's end, or because it was killed itself."""
        number, rank = next((n, r) for n, r in self._ranks.items() if r.pid == pid)
        if not self._fault and not self.ended:
            self._died({"rank": number, "host": rank.host})

    def _hurry(self, within_s: float) -> None:
        if not self.ended:
            self._deadline = min(self._deadline, time.monotonic() + within_s)

    def _all_told(self) -> bool:
        return all(rank.state in ("stopped", "running") for rank in self._seen())

    def _too_late(self) -> Ending:
        if self.ended:
            late = f"did not shut down within {_rounded(self._limit_s)} s and was ended: {told(self._seen())}"
            self._log(f"the job {late}; its results are safe")
            return Ending("ok", late)
        if self._fault or self._children.wait(0) is not None:
            return self.ending(self._children.wait(0))
        if self.case is not None:
            stage = f"passed its deadline of {_rounded(self._limit_s)} s"
        elif self._described:
            stage = f"no case began within {_rounded(self._limit_s)} s"
        else:
            stage = f"the start passed its deadline of {_rounded(self._limit_s)} s"
        return Ending("timeout", f"{stage}: {told(self._seen())}", self.case)

    def _seen(self) -> list[Seen]:
        return [self._seen_rank(number, self._ranks.get(number)) for number in range(self._size)]

    def _seen_rank(self, number: int, rank: _Rank | None) -> Seen:
        if rank is None:
            return Seen(number, "", "absent")
        if rank.stopped or self._children.stopped(rank.pid):
            return Seen(number, rank.host, "stopped", rank.where if rank.stopped else "")
        return Seen(number, rank.host, "running" if rank.reported else "silent", rank.where if rank.reported else "")


def _rounded(limit_s: float) -> str:
    """A limit in s, as exactly as anyone has to know it: ``0.5``, ``62``."""
    return f"{limit_s:.0f}" if limit_s >= _WHOLE_S else f"{limit_s:.2g}"


def _killed(death: Mapping[str, Any]) -> bool:
    """Whether a rank was killed from outside: a library that gives up leaves with a code, or aborts."""
    return (death.get("code") or 0) < 0 and death["code"] != -signal.SIGABRT
