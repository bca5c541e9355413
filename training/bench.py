"""The ``train`` benchmark. torch is imported when it runs, never when it is listed."""

from __future__ import annotations

from dataclasses import replace

from collectives.backends import table
from microbench.case import Case, Outcome, Unsupported
from microbench.job import Job
from microbench.registry import TRAIN, Benchmark
from training.cast import Cast
from training.models import MODELS, Model
from training.offloaded import served
from training.setup import DTYPES, FLOAT32, Setup
from training.workload import Workload


def run(job: Job, case: Case) -> Outcome:
    """Data-parallel training of ``case.options`` (:class:`training.setup.Setup`), on every rank.

    Raises Unsupported for what the fabric, the libraries or this benchmark lack, UserError for options that cannot be
    meant, CannotRun for roles that do not fit.
    """
    if job.fabric.kind == "shm":
        raise Unsupported("gloo has no shared-memory transport")
    setup = setup_of(case)
    if (case.backend, case.device) != (setup.backend, setup.device):
        where = f"{case.backend} on {case.device}"
        raise Unsupported(f"training by this forms its group over {setup.backend} on {setup.device}, not over {where}")
    model = MODELS[setup.workload.model]
    if reason := too_small(model, setup.workload):
        raise Unsupported(reason)
    if reason := threadless(job, setup):
        raise Unsupported(reason)
    cast = Cast.of(job, setup)
    setup.batch_of(len(cast.hosts))
    try:
        outcome = served(cast) if cast.is_dpu else _on_host(cast, case, model)
    except Unsupported:  # raised by all hosts alike, so all ranks can give the communicators back
        cast.close()
        raise
    cast.close()
    return outcome


def _on_host(cast: Cast, case: Case, model: Model) -> Outcome:
    method = table.load()
    from training import ddp  # noqa: PLC0415 - it imports torch, which takes seconds

    outcome = ddp.measure(cast, case, model)
    return replace(outcome, method={**outcome.method, **method, "workload": cast.setup.label})


def setup_of(case: Case) -> Setup:
    """What a case trains; its type may stand in the case itself."""
    if case.dtype not in ("", *DTYPES):
        raise Unsupported(f"training runs in {' or '.join(DTYPES)}, not in {case.dtype}")
    options = dict(case.options)
    if case.dtype not in ("", FLOAT32):
        options.setdefault("dtype", case.dtype)
    return Setup.of(options)


def too_small(model: Model, workload: Workload) -> str:
    """Why batch normalisation cannot train on so little: it needs two values per channel at the end."""
    if workload.batch > 1 or workload.image_px >= model.alone_px:
        return ""
    return f"{workload.label}: batch normalisation needs a batch of 2 or images of at least {model.alone_px} px"


def threadless(job: Job, setup: Setup) -> str:
    """Why a thread of ours cannot wait for what the hook has started, or nothing."""
    if setup.thread_level == "single":
        return ""
    MPI = job.engine.MPI  # noqa: N806 - the module's own name
    if MPI.Query_thread() >= MPI.THREAD_MULTIPLE:
        return ""
    return f"{'/'.join(setup.exchanges)} takes MPI at thread level multiple: --thread-level multiple asks for it"


BENCHMARKS: tuple[Benchmark, ...] = (
    Benchmark(
        "train",
        "data-parallel training steps: time, and exposed communication",
        run,
        sized=False,
        precision=0.05,
        kind=TRAIN,
    ),
)
