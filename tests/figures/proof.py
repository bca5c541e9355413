"""``make proof``: how long fabrics take to be found, made, tried and proved, and whether every planted fault is told.

About a quarter of an hour, as root: all but the first part is on labs of its own.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.figures import proof_faults, proof_start, proof_times, target
from tests.figures.target import Parts

PARTS = ("discovery", "lab", "start", "probe", "routes", "faults")


def parts(folder: Path, quick: bool) -> Parts:
    """What can be measured, by name; ``quick`` does a few of each, to see that it runs."""
    return {
        "discovery": lambda: proof_times.discovery(folder, 3 if quick else 20),
        "lab": lambda: proof_times.lab(2 if quick else 10),
        "start": lambda: proof_start.measure(3 if quick else 15),
        "probe": lambda: proof_times.probe(1 if quick else 5),
        "routes": lambda: proof_times.routes(1 if quick else 5),
        "faults": lambda: proof_faults.measure(folder, 1 if quick else 10),
    }


if __name__ == "__main__":
    sys.exit(target.run("proof", __doc__, PARTS, parts))
