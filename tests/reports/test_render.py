from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reports.load import NotARun
from reports.render import FORMATS, render
from tests.reports.folder import Folder, lab_run

ROOT = Path(__file__).parents[2]
ALLOWED = {"reports", "microbench"}
PROGRAM = """
import sys
from pathlib import Path
from reports.render import FORMATS, render
for name in FORMATS:
    render(Path(sys.argv[1]), name)
print(*sorted({name.partition(".")[0] for name in sys.modules}))
print(*sorted(name for name in sys.modules if name.startswith(("microbench.", "collectives."))))
"""


def test_formats(tmp_path: Path) -> None:
    lab_run().write(tmp_path)
    assert list(FORMATS) == ["text", "json", "csv"]
    assert all(render(tmp_path, name).endswith("\n") for name in FORMATS)
    assert render(tmp_path) == render(tmp_path, "text")


def test_an_unknown_format_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unknown format 'html': one of text, json, csv"):
        render(lab_run().write(tmp_path), "html")


def test_a_folder_without_a_run(tmp_path: Path) -> None:
    with pytest.raises(NotARun):
        render(tmp_path)


def test_reports_need_neither_mpi_nor_torch(tmp_path: Path) -> None:
    lab_run().write(tmp_path)
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], cwd=ROOT, text=True, timeout=60,
                          capture_output=True, check=True)  # fmt: skip
    packages, below = done.stdout.splitlines()
    loaded = set(packages.split())
    assert not loaded & {"mpi4py", "torch", "suite", "fabrics", "training", "psutil"}
    assert {".".join(name.split(".")[:2]) for name in below.split()} == {
        "microbench.record", "microbench.stats",
        "collectives.schedule", "collectives.schedules", "collectives.simulate",
    }  # fmt: skip


@pytest.mark.parametrize("format_", ["text", "json", "csv"])
@pytest.mark.parametrize(
    "damage",
    [
        {"warnings": 5}, {"warnings": [5, {}]}, {"command": 5}, {"fabrics": "x"}, {"jobs": None},
        {"fabrics": [{"name": "a", "hosts": 5}]}, {"fabrics": [{"name": "a", "devices": {"h": 5}}]},
        {"jobs": [{"hosts": 5, "roles": 5, "cpus": 5}]},
        {"plan": []}, {"plan": {"jobs": [{"cases": 5}]}}, {"plan": {"jobs": 5}}, {"environment": 5},
    ],
    ids=str,
)  # fmt: skip
def test_odd_values_in_run_json_are_no_traceback(tmp_path: Path, damage: dict[str, object], format_: str) -> None:
    assert render(Folder(run=damage).write(tmp_path), format_)
