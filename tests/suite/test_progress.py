"""A live bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import io

from suite.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_on_a_terminal_that_leaves_nothing() -> None:
    stream = Terminal()
    progress = Progress(4, stream)
    progress.begin("first")
    progress.advance()
    progress.begin("second")
    shown = stream.getvalue()
    assert "[------------------------] 0/4" in shown
    assert "[######------------------] 1/4" in shown
    progress.say("a line of its own")
    progress.close()
    assert "a line of its own\n" in stream.getvalue()
    last = stream.getvalue().splitlines()[-1]
    assert "second" not in last.rsplit("\r", 1)[-1]


def test_plain_lines_elsewhere_and_not_too_many() -> None:
    stream = io.StringIO()
    progress = Progress(1000, stream)
    for number in range(1000):
        progress.begin(f"case {number}")
        progress.advance()
    progress.close()
    assert "\r" not in stream.getvalue()
    assert stream.getvalue().startswith("0/1000 cases")
    assert len(stream.getvalue().splitlines()) < 5
