"""The ``train`` benchmark. torch is imported when it runs, never when it is listed."""

from __future__ import annotations

from dataclasses import replace

from collectives.backends import table
from microbench.case import Case, Outcome, Unsupported
from microbench.registry import Benchmark
from training.models import MODELS, Model
from training.workload import Job, Workload, parse

BACKEND = "gloo"
DTYPE = "float32"


def run(job: Job, case: Case) -> Outcome:
    """Data-parallel training of ``case.options`` (model, batch, image_px, dropout) over gloo, on every rank.

    Raises Unsupported for what gloo or this benchmark lacks, UserError for options that cannot be meant.
    """
    if job.fabric.kind == "shm":
        raise Unsupported("gloo has no shared-memory transport")
    if case.backend != BACKEND:
        raise Unsupported(f"training runs over {BACKEND}, not over {case.backend}")
    if case.dtype not in ("", DTYPE):
        raise Unsupported(f"training runs in {DTYPE}, not in {case.dtype}")
    method = table.load()
    from training import ddp  # noqa: PLC0415 - it imports torch, which takes seconds

    workload = parse(case.options)
    model = MODELS[workload.model]
    if reason := too_small(model, workload):
        raise Unsupported(reason)
    outcome = ddp.measure(job, case, model, workload)
    return replace(outcome, method={**outcome.method, **method, "workload": workload.label})


def too_small(model: Model, workload: Workload) -> str:
    """Why batch normalisation cannot train on so little: it needs two values per channel at the end."""
    if workload.batch > 1 or workload.image_px >= model.alone_px:
        return ""
    return f"{workload.label}: batch normalisation needs a batch of 2 or images of at least {model.alone_px} px"


BENCHMARKS: tuple[Benchmark, ...] = (
    Benchmark(
        "train", "data-parallel training steps: time, and exposed communication", run, sized=False, precision=0.05
    ),
)
