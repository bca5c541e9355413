"""Options of the overlap bench: what is usual, what is refused, and how a case is labelled."""

from __future__ import annotations

import subprocess
import sys

import pytest

from collectives.overlap.options import Options, operation, usual
from fabrics.errors import UserError


def test_the_usual_has_no_label_and_compares_what_there_is() -> None:
    offload, overlap = usual("offload_alltoall"), usual("overlap_alltoall")
    assert (offload.label, overlap.label) == ("", "")
    assert offload.compare == ("host", "probes16", "probes64", "staged", "window")
    assert overlap.compare == ("host", "probes16", "probes64")
    assert offload.offloads == ("staged", "window") and overlap.offloads == ()
    assert operation("offload_alltoall") == "alltoall"


def test_a_label_tells_what_differs() -> None:
    data = {"fraction": 2, "skew": 0.5, "outstanding": 2, "compute": "memory", "placement": "node"}
    assert Options.of(data, offload=True).label == "compute 2x, skew 0.5, 2 outstanding, memory, node"
    dpu = {"workers": 2, "chunk": 65536, "dpu_memory": 1 << 20, "waiting": "spin"}
    assert Options.of(dpu, offload=True).label == "2 workers, chunk 65536 B, DPU memory 1048576 B, waiting spin"


def test_which_modes_are_compared_is_no_part_of_the_label() -> None:
    assert Options.of({"compare": ["host", "rma"]}, offload=True).label == ""


def test_a_fraction_may_be_written_as_one() -> None:
    assert Options.of({"fraction": "1/4"}, offload=False).fraction == 0.25
    assert Options.of({"fraction": "1/4"}, offload=False).label == "compute 0.25x"


def test_modes_come_once_in_the_usual_order_and_blocking_is_derived() -> None:
    found = Options.of({"compare": ["staged", "blocking", "thread", "host", "host"]}, offload=True)
    assert found.compare == ("host", "thread", "staged")


def test_only_the_progress_thread_asks_for_threads() -> None:
    assert Options.of({"compare": ["host", "thread"]}, offload=False).thread_level == "multiple"
    assert Options.of({"compare": ["host", "gloo"]}, offload=False).thread_level == "single"


@pytest.mark.parametrize(("emulated", "given", "placed"), [
    (True, "auto", "split"), (False, "auto", "node"), (True, "accel", "accel"), (False, "split", "split"),
])  # fmt: skip
def test_where_nothing_is_said_the_fabric_tells_the_placement(emulated: bool, given: str, placed: str) -> None:
    assert Options.of({"placement": given}, offload=True).placed(emulated) == placed


@pytest.mark.parametrize(("data", "words"), [
    ({"speed": 1}, "unknown option 'speed'"),
    ({"fraction": -1}, "fraction -1: 0 to 100"),
    ({"fraction": True}, "fraction True"),
    ({"fraction": "x"}, "fraction 'x'"),
    ({"fraction": float("nan")}, "fraction nan"),
    ({"skew": 101}, "skew 101"),
    ({"outstanding": 5}, "outstanding 5: a whole number from 1 to 4"),
    ({"outstanding": 1.5}, "outstanding 1.5"),
    ({"compute": "gpu"}, "compute 'gpu': one of registers, memory"),
    ({"placement": "anywhere"}, "placement 'anywhere': one of split, node, accel, auto"),
    ({"workers": 0}, "workers 0"),
    ({"chunk": 100}, "chunk 100: bytes, a multiple of 64"),
    ({"dpu_memory": "1M"}, "dpu_memory '1M'"),
    ({"waiting": "yield"}, "waiting 'yield'"),
    ({"compare": "host"}, "compare 'host': a list of modes"),
    ({"compare": []}, "compare: no mode to measure"),
    ({"compare": ["blocking"]}, "compare: no mode to measure"),
    ({"compare": ["hots"]}, "unknown mode 'hots'"),
])  # fmt: skip
def test_what_cannot_be_is_refused_by_name(data: dict[str, object], words: str) -> None:
    with pytest.raises(UserError, match=words.replace("(", r"\(")):
        Options.of(data, offload=True)


def test_without_dpus_nothing_is_offloaded() -> None:
    with pytest.raises(UserError, match=r"compare staged: only offload_\* has DPUs"):
        Options.of({"compare": ["host", "staged"]}, offload=False)
    with pytest.raises(UserError, match=r"workers: only offload_\* has DPUs"):
        Options.of({"workers": 2}, offload=False)


def test_planning_imports_neither_mpi_nor_torch() -> None:
    code = "import sys, collectives.overlap.options; sys.exit(any(m in sys.modules for m in ('mpi4py.MPI', 'torch')))"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=30).returncode == 0
