"""Processors and threads: an import that takes processors away, and thread counts that depend on the launcher."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from reports.render import render
from suite import launch
from tests import jobs
from tests.reports import steps
from tests.reports.folder import Folder

LOADED = "import json; from collectives.backends import table; print(json.dumps(table.load()))"
THREADS = """
import torch
from collectives.backends.proving import use_threads
print(torch.get_num_threads())
use_threads(1)
print(torch.get_num_threads(), torch.get_num_interop_threads())
"""
SHRINKS = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"


def loaded(folder: Path, torch: str) -> str:
    """What is recorded of the import of a torch of that text."""
    (folder / "torch.py").write_text(torch)
    done = jobs.python("-c", LOADED, env={"PYTHONPATH": str(folder)})
    assert done.code == 0, done.err
    return done.out


def flat(f: Folder, folder: Path) -> str:
    return " ".join(render(f.write(folder)).split())


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="takes two processors")
@pytest.mark.parametrize(("torch", "kept"), [(SHRINKS, "false"), ("", "true")], ids=["shrinks", "keeps"])
def test_a_library_that_takes_processors_away_when_it_is_imported_is_noticed(
    tmp_path: Path, torch: str, kept: str
) -> None:
    """torch's OpenMP may bind the process where OMP_PROC_BIND is set: the mask is read before and after."""
    assert f'"affinity_kept": {kept}' in loaded(tmp_path, torch)


@pytest.mark.parametrize("kept", [True, False])
def test_a_report_warns_of_processors_that_were_lost(tmp_path: Path, kept: bool) -> None:
    f = Folder()
    steps.add(f, "eth2g5", {"gloo": 1.0}, method=steps.method({"gloo": 1.0}, affinity_kept=kept))
    warned = "importing torch changed the processors that ranks may run on (resnet50 64px batch 16 on eth2g5)"
    assert (warned in flat(f, tmp_path)) is not kept


@pytest.mark.parametrize("given", [None, "2", "8"])
def test_every_launcher_gives_a_rank_the_same_number_of_threads(given: str | None) -> None:
    """torchrun sets OMP_NUM_THREADS to 1 and mpirun does not, which made the same model differ many times over."""
    environment = {"PATH": "/bin"} | ({"OMP_NUM_THREADS": given} if given else {})
    assert launch.clean_environment(environment)["OMP_NUM_THREADS"] == "1"


def test_torch_computes_with_one_thread_whatever_its_variable_says() -> None:
    """In a user's own job nobody has set the variable right: the benchmark sets the number itself."""
    done = jobs.python("-c", THREADS, env={"OMP_NUM_THREADS": "2"})
    assert (done.code, done.out.split()) == (0, ["2", "1", "1"]), done.err


@pytest.mark.parametrize(("other", "told"), [(1, "; 1 thread a rank"), (2, "; 1 or 2 THREADS a rank")])
def test_the_number_of_threads_stands_in_the_report_and_a_difference_is_a_warning(
    tmp_path: Path, other: int, told: str
) -> None:
    f = Folder()
    for fabric, threads in (("eth2g5", 1), ("eth10g", other)):
        method: dict[str, Any] = steps.method({"gloo": 1.0}, threads=threads)
        steps.add(f, fabric, {"gloo": 1.0}, method=method)
    text = flat(f, tmp_path)
    assert told in text
    warned = "WARNING: resnet50 64px batch 16 computed with 1 and 2 threads a rank: its times do not compare."
    assert (warned in text) is (other != 1)
