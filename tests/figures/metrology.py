"""``make metrology``: do the intervals hold, do two runs of the same agree, is a slow-down found, is time saved,
and does a run survive its ranks?

Half an hour to an hour, as root: all but the first part run on labs of their own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from fabrics.lab import cluster
from tests import labs
from tests.figures import coverage, killed, pace, target, twins
from tests.figures.target import Found, Parts

PARTS = ("coverage", "twins", "pace", "killed")


def _on_lab(measure: Callable[[cluster.Lab], Found]) -> Callable[[], Found]:
    """Measure on a lab of two hosts that lasts as long."""

    def act() -> Found:
        with labs.made("run") as lab:
            return measure(lab)

    return act


def parts(folder: Path, quick: bool) -> Parts:
    """What can be measured, by name; ``quick`` does a tenth, to see that it runs."""
    fabrics = ("shm",) if quick else ("shm", "eth2g5", "eth10g")
    return {
        "coverage": lambda: coverage.measure(200 if quick else 2000),
        "twins": _on_lab(lambda lab: twins.measure(folder, lab, 2 if quick else 20)),
        "pace": _on_lab(lambda lab: pace.measure(folder, lab.config.name, fabrics)),
        "killed": _on_lab(lambda lab: killed.measure(folder, lab.config.name, 2 if quick else 20)),
    }


if __name__ == "__main__":
    sys.exit(target.run("metrology", __doc__, PARTS, parts))
