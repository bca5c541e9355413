"""Runs of the suite as a user would start them, into folders that the figures read."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

LIMIT_S = 1800


def command(folder: Path, plan: str, lab: str, fabrics: str | Sequence[str], *more: str) -> list[str]:
    """The command line of a run of ``plan`` on one fabric, or on some, into ``folder``."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    path = folder.with_suffix(".toml")
    path.write_text(plan)
    cli = [sys.executable, "-m", "suite.cli", "run", "--plan", str(path)]
    names = [fabrics] if isinstance(fabrics, str) else fabrics
    cli += [word for name in names for word in ("--fabric", name)]
    return [*cli, "--lab", lab, "-o", str(folder), *more]


def run(folder: Path, plan: str, lab: str, fabrics: str | Sequence[str]) -> Path:
    """Run a plan to its end; the folder. RuntimeError with the last line where it does not end well."""
    done = subprocess.run(
        command(folder, plan, lab, fabrics), capture_output=True, text=True, check=False, timeout=LIMIT_S
    )
    if done.returncode:
        raise RuntimeError(f"{folder.name}: exit {done.returncode}: {(done.stderr.splitlines() or [''])[-1]}")
    return folder
