"""A live bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import io
import re
from pathlib import Path

from suite.progress import Progress
from tests import jobs


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
    assert stream.getvalue().splitlines()[-1].startswith("1000/1000 cases, ")
    assert len(stream.getvalue().splitlines()) < 5


def test_a_bar_counts_what_is_done_at_once_and_is_still_there_after_a_line() -> None:
    """A count that stands still while cases are lost, and a bar that a warning takes away until the next case."""
    stream = Terminal()
    progress = Progress(4, stream)
    progress.begin("first")
    progress.say("first: failed")
    assert stream.getvalue().endswith("0/4    0 s  first")
    progress.advance()
    progress.advance()
    assert stream.getvalue().endswith("2/4    0 s  first")
    progress.close()
    assert stream.getvalue().endswith("\r")


def test_cases_that_are_lost_before_any_begins_are_counted_in_the_end() -> None:
    stream = io.StringIO()
    progress = Progress(3, stream)
    progress.say("the job did not start")
    progress.advance(3)
    progress.close()
    assert stream.getvalue().splitlines()[1].startswith("3/3 cases, ")


def test_a_run_that_loses_cases_and_starts_jobs_again_counts_to_its_end(tmp_path: Path) -> None:
    """Each case once, lost or measured, whichever job came to it."""
    plan = tmp_path / "plan.toml"
    plan.write_text("launches = 1\nbudget_s = 0.02\n[plant_ok]\n[plant_die]\n[plant_wrong]\n[plant_raise]\n[barrier]\n")
    where = ("--fabric", "shm", "--module", "tests.plant", "-o", str(tmp_path / "run"))
    told = jobs.fabricbench("run", "--plan", str(plan), *where).err
    counts = re.findall(r"^(\d+)/5 cases, ", told, re.MULTILINE)
    assert (counts[0], counts[-1]) == ("0", "5"), told


def test_nothing_to_do_is_no_count() -> None:
    stream = io.StringIO()
    Progress(0, stream).close()
    assert stream.getvalue() == ""
