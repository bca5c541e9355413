"""``make verdicts``: does the gate fail what is slower, and nothing else?

About ten minutes, as root: runs are on labs of their own, and nothing else should run on the machine.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.figures import target, verdicts_gate
from tests.figures.target import Parts

PARTS = ("gate",)


def parts(folder: Path, quick: bool) -> Parts:
    """What can be measured, by name; ``quick`` does a few of each, to see that it runs."""
    return {"gate": lambda: verdicts_gate.measure(folder / "gate", 2 if quick else 40, 1 if quick else 20)}


if __name__ == "__main__":
    sys.exit(target.run("verdicts", __doc__, PARTS, parts))
