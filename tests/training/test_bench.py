from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fabrics.model import Fabric
from microbench.case import Case, Unsupported
from microbench.registry import load
from training import bench

ROOT = Path(__file__).parents[2]


def run(kind: str = "tcp", **case: Any) -> None:
    threads = SimpleNamespace(Query_thread=lambda: 0, THREAD_MULTIPLE=3)
    engine = SimpleNamespace(MPI=threads)
    job: Any = SimpleNamespace(fabric=Fabric("f", kind, ("here",), {"here": ("lo",)}), engine=engine)  # type: ignore[arg-type]
    bench.run(job, Case("train", "f", **case))


def test_listing_benchmarks_imports_neither_torch_nor_mpi() -> None:
    code = "import sys, training.bench; sys.exit('torch' in sys.modules or 'mpi4py.MPI' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60, check=False).returncode == 0


def test_train_is_registered_for_two_ranks_and_no_sizes() -> None:
    train = load(["training.bench"]).get("train")
    assert (train.min_ranks, train.sized) == (2, False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "shm", "backend": "gloo"}, "gloo has no shared-memory transport"),
        ({"backend": "mpi"}, "forms its group over gloo on cpu, not over mpi on cpu"),
        ({"backend": "gloo", "options": {"exchanges": ["nccl"]}}, "over nccl on cuda, not over gloo on cpu"),
        ({"backend": "gloo", "dtype": "float64"}, "runs in float32 or bfloat16, not in float64"),
        (
            {"backend": "gloo", "options": {"exchanges": ["gloo", "mpi"]}},
            "gloo/mpi takes MPI at thread level multiple: --thread-level multiple asks for it",
        ),
        (
            {"backend": "gloo", "options": {"model": "resnet50", "batch": 1, "image_px": 32}},
            "resnet50 32px batch 1: batch normalisation needs",
        ),
    ],
)
def test_what_it_lacks_is_unsupported(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(Unsupported, match=message):
        run(**arguments)
