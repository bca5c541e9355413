"""``make phases``: does the flow's solver keep up with C, how much of its communication hides, and how does it scale?

A few minutes, as root: on a lab of its own, over 1 and 10 Gbit/s.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.figures import cfd_rows, target
from tests.figures.target import Parts

PARTS = ("loop", "hosts")
LAUNCHES = 6  # so that every value has an interval over launches
BLOCKS = 30


def parts(folder: Path, quick: bool) -> Parts:
    """What can be measured, by name; ``quick`` does a few of each, to see that it runs."""
    return {
        "loop": lambda: cfd_rows.loop(folder / "loop", 6 if quick else BLOCKS),
        "hosts": lambda: cfd_rows.hosts(folder / "hosts", 1 if quick else LAUNCHES),
    }


if __name__ == "__main__":
    sys.exit(target.run("phases", __doc__, PARTS, parts))
