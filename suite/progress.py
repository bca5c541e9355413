"""Progress on standard error: a live bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TextIO

_WIDTH = 24
_PLAIN_EVERY_S = 5.0


class Progress:
    """Tells what is being measured, and how much is done, of a known number of cases."""

    def __init__(self, total: int, stream: TextIO = sys.stderr) -> None:
        self._total, self._done, self._stream = total, 0, stream
        self._live = stream.isatty()
        self._start = time.monotonic()
        self._last = 0.0
        self._shown = ""
        self._what = ""

    def begin(self, what: str) -> None:
        """``what`` is being measured now."""
        self._what = what
        self._show()

    def advance(self, cases: int = 1) -> None:
        """So many cases are done, with a number or without."""
        self._done += cases
        if self._shown:
            self._show()

    def say(self, text: str) -> None:
        """A line of its own, for what the user must see."""
        live = bool(self._shown)
        self._wipe()
        print(text, file=self._stream, flush=True)
        if live:
            self._show()

    def close(self) -> None:
        """Leave the terminal clean; elsewhere, where the last line told of less, tell how much was done in the end."""
        self._wipe()
        if (self._last or self._done) and not self._live:
            print(f"{self._count()}, {time.monotonic() - self._start:.0f} s", file=self._stream, flush=True)

    def _count(self) -> str:
        return f"{self._done}/{self._total} cases"

    def _show(self) -> None:
        what, took = self._what, time.monotonic() - self._start
        if self._live:
            filled = _WIDTH * self._done // max(1, self._total)
            bar = "#" * filled + "-" * (_WIDTH - filled)
            self._wipe()
            self._shown = f"[{bar}] {self._done}/{self._total} {took:4.0f} s  {what}"[:100]
            self._stream.write(self._shown)
            self._stream.flush()
        elif took - self._last >= _PLAIN_EVERY_S or not self._last:
            self._last = took or 1e-9
            print(f"{self._count()}, {took:.0f} s: {what}", file=self._stream, flush=True)

    def _wipe(self) -> None:
        if self._shown:
            self._stream.write("\r" + " " * len(self._shown) + "\r")
            self._stream.flush()
            self._shown = ""
