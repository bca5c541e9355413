"""What this torch has, and what is said of what it lacks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from collectives.backends import table
from tests import jobs


def built(*names: str, available: bool = True) -> Any:
    """A torch.distributed that is built with these backends."""
    has = {f"is_{name}_available": (lambda there=name in names: there) for name in ("gloo", "nccl", "ucc", "mpi")}
    return SimpleNamespace(is_available=lambda: available, **has)


def test_mpi_itself_comes_first_and_measures_all() -> None:
    assert table.backends("allreduce") == ("mpi", "gloo", "nccl", "ucc", "torch-mpi")
    assert table.backends("gather") == ("mpi",)


def test_what_is_built_is_there() -> None:
    assert table.why_not("gloo", distributed=built("gloo")) == ""
    assert table.why_not("torch-mpi", distributed=built("mpi")) == ""


@pytest.mark.parametrize(("name", "torch"), [("gloo", "gloo"), ("ucc", "ucc"), ("torch-mpi", "mpi")])
def test_what_is_not_built_is_named(name: str, torch: str) -> None:
    assert table.why_not(name, distributed=built()).endswith(f"is built without {torch}")


def test_a_torch_without_distributed_has_none() -> None:
    said = table.why_not("gloo", distributed=built("gloo", available=False))
    assert said.endswith("is built without torch.distributed")


def test_an_older_torch_that_does_not_know_a_backend_has_it_not() -> None:
    old = SimpleNamespace(is_available=lambda: True)
    assert table.why_not("ucc", distributed=old).endswith("is built without ucc")


def test_nccl_takes_no_host_memory() -> None:
    assert table.why_not("nccl", "cpu", built("nccl")) == "nccl takes cuda memory alone: --device cuda measures it"
    assert table.why_not("nccl", "cuda", built("nccl")) == ""


def test_capabilities_are_this_torchs_own() -> None:
    import torch.distributed as dist

    found = table.capabilities()
    assert (found["torch-mpi"] == "") is dist.is_mpi_available()
    assert (found["gloo"] == "") is dist.is_gloo_available()
    assert (found["ucc"] == "") is dist.is_ucc_available()


@pytest.mark.parametrize("module", ["collectives.backends.bench", "collectives.backends.table", "training.workload"])
def test_importing_it_brings_neither_mpi_nor_torch(module: str) -> None:
    code = f"import sys, {module}; print([m for m in ('mpi4py.MPI', 'torch') if m in sys.modules])"
    done = jobs.python("-c", code)
    assert (done.code, done.out.strip()) == (0, "[]"), done.err
