"""A second pair of eyes in a job of the user's, where no supervisor watches: a thread that sleeps beside the loop.

Python acts on a signal when the native loop comes back, which a rank that waits for another may never do; so Ctrl-C is
heard by the thread, which ends the rank wherever it is. On the first two ranks it also looks, seldom, whether the
job has stood still, and tells where.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from fabrics import launched
from microbench.page import Page
from suite import leftovers

STILL_S, LOOK_S = 20.0, 10.0
INTERRUPTED = 130
_TOLD_S = 0.8  # so that rank 0 comes to speak, and the launcher forwards it
_WATCHING = 2  # ranks: the second sees it where the first is the one that is stopped
_STATES = {"T": "is stopped", "t": "is stopped", "Z": "has ended", "": "has ended"}
_END = b"\0"

Seat = tuple[str, int]
"""The host and the process of a rank."""


class Stillness:
    """Tells once that a loop has stood still for too long; ``rank`` is this one, ``seats`` are known late."""

    def __init__(self, rank: int, page: Page, proc: Path = Path("/proc")) -> None:
        self.rank, self._page, self._proc = rank, page, proc
        self.seats: Sequence[Seat] = ()
        self._seen: tuple[int, int, str] | None = None
        self._since_s, self._told = 0.0, False

    def told(self, now_s: float) -> str:
        """What is to be said at this time, mostly nothing."""
        seen = (*self._page.at, self._page.loop())
        if seen != self._seen:
            self._seen, self._since_s, self._told = seen, now_s, False
        still_s = now_s - self._since_s
        if self._told or still_s < STILL_S:
            return ""
        wrong = self._wrong()
        if self.rank and "rank 0 " not in wrong:  # it speaks for itself
            return ""
        if not wrong and not self._page.loop():  # Python at work
            return ""
        self._told = True
        where = f"rank {self.rank} has been in {self._page.loop() or 'Python code'} for {still_s:.0f} s"
        return f"{where}; {wrong or 'no rank of its host is stopped'} (Ctrl-C ends the job)"

    def _wrong(self) -> str:
        """The ranks of this host that do not run, of which alone it can be seen."""
        here = self.seats[self.rank][0] if self.seats else ""
        states = [(rank, host, _state(self._proc / str(pid))) for rank, (host, pid) in enumerate(self.seats)]
        return ", ".join(
            f"rank {rank} on {host} {_STATES[state]}"
            for rank, host, state in states
            if host == here and state in _STATES
        )


def _state(process: Path) -> str:
    """The letter of a process's state, nothing where it has gone."""
    try:
        return (process / "stat").read_text().rpartition(") ")[2][:1]
    except OSError:
        return ""


class Lookout:
    """The thread and what it watches: ``page`` is where the loop tells where it is."""

    def __init__(self) -> None:
        self.page = Page()
        self._rank = launched.rank()
        self._stillness = Stillness(self._rank, self.page)
        self._heard, self._bell = os.pipe()
        for end in (self._heard, self._bell):
            os.set_blocking(end, False)
        self._thread = threading.Thread(target=self._watch, name="lookout", daemon=True)

    def seat(self, seats: Sequence[Seat]) -> None:
        """Where the ranks of the job are."""
        self._stillness.seats = tuple(seats)

    def _watch(self) -> None:
        pause_s = LOOK_S if self._rank < _WATCHING else None
        while True:
            if select.select([self._heard], [], [], pause_s)[0]:
                came = os.read(self._heard, 64)
                if _END in came:
                    return
                if signal.SIGINT in came:
                    end(self._rank)
            elif line := self._stillness.told(time.monotonic()):
                print(f"fabricbench: {line}", file=sys.stderr, flush=True)

    @contextmanager
    def on_watch(self) -> Iterator[Lookout]:
        """Watch for the time of the block; to be entered by the main thread. An ignored Ctrl-C stays ignored."""
        before, bell = signal.getsignal(signal.SIGINT), signal.set_wakeup_fd(self._bell, warn_on_full_buffer=False)
        if before is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, lambda number, frame: None)  # the thread acts on it
        self._thread.start()
        try:
            yield self
        finally:
            os.write(self._bell, _END)
            self._thread.join()
            signal.set_wakeup_fd(bell)
            signal.signal(signal.SIGINT, before)
            os.close(self._heard)
            os.close(self._bell)


def end(rank: int) -> NoReturn:
    """End this rank wherever it is, rank 0 says so: all at the same time, else the launcher kills whoever is last."""
    until_s = time.monotonic() + _TOLD_S
    if rank == 0:
        print("fabricbench: interrupted", file=sys.stderr, flush=True)
    leftovers.remove_own()
    time.sleep(max(0.0, until_s - time.monotonic()))
    os._exit(INTERRUPTED)
