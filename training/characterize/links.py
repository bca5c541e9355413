"""Point to point between two hosts, a host and its DPU, and two DPUs: the suite's own latency and bandwidth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from collectives.offload.waiting import Quiet
from microbench import pt2pt
from microbench.case import Case, Invalid, Outcome
from microbench.record import Metric
from microbench.registry import Run
from microbench.stats import samples_needed
from training.characterize.cores import on
from training.characterize.crew import Crew

if TYPE_CHECKING:
    from microbench.job import Job

SIZES: Mapping[str, int] = MappingProxyType({"latency": 8, "bandwidth": 1 << 20})
_VALUE: Mapping[str, tuple[str, str]] = MappingProxyType(
    {"latency": ("time", "s"), "bandwidth": ("bandwidth", "bytes/s")}
)
_BUDGET_S = 0.4
_PRECISION = 0.02
_MOST = 2000
_TAG = 51


@dataclass
class Links:
    """Metrics by ``LINK.latency`` and ``LINK.bandwidth``, and what a record keeps of how; complete on rank 0."""

    metrics: dict[str, Metric] = field(default_factory=dict)
    method: dict[str, Any] = field(default_factory=dict)


def measure(job: Job, case: Case, crew: Crew, quiet: Quiet) -> Links:
    """All links, one after the other, while the ranks without a part in one sleep. Collective."""
    runs = {benchmark.name: benchmark.run for benchmark in pt2pt.BENCHMARKS}
    found = Links()
    for link, pair in crew.pairs.items():
        if pair is None:
            found.metrics |= {f"{link}.{name}": _none(name, f"n/a: {_ALONE[link]}") for name in SIZES}
            continue
        two = _pair_job(job, pair)
        for name, nbytes in SIZES.items():
            outcome = None
            if two is not None:
                with _apart(job, crew, pair):
                    outcome = _outcome(two, runs[name], _case(case, name, nbytes))
            quiet.barrier()
            outcome = _at_rank_0(job, outcome, pair[0])
            if outcome is not None:
                _note(found, link, name, pair, outcome)
        if two is not None:
            two.comm.Free()
    return found


_ALONE = {"host_host": "there is one host", "dpu_dpu": "there is one DPU"}


def _case(case: Case, name: str, nbytes: int) -> Case:
    return replace(
        case, benchmark=name, nbytes=nbytes, dtype="int8", ranks=2, options={}, budget_s=_BUDGET_S,
        precision=_PRECISION, min_iterations=samples_needed(), max_iterations=_MOST,
    )  # fmt: skip


def _pair_job(job: Job, pair: Sequence[int]) -> Job | None:
    """A job of the two ranks, None on the others. Collective."""
    MPI = job.engine.MPI  # noqa: N806 - the module's own name
    mine = job.rank in pair
    comm: Any = job.comm.Split(0 if mine else MPI.UNDEFINED, pair.index(job.rank) if mine else 0)
    if not mine:
        return None
    comm.Set_errhandler(MPI.ERRORS_RETURN)
    first, second = pair
    hosts, roles, cpus = job.hosts, job.roles, job.cpus
    return replace(
        job, comm=comm, hosts=(hosts[first], hosts[second]), roles=(roles[first], roles[second]),
        cpus=(cpus[first], cpus[second]),
    )  # fmt: skip


def cores_apart(cpus: Sequence[Sequence[int]], machines: Sequence[str], pair: Sequence[int]) -> tuple[int, int] | None:
    """A core for each of two ranks that share theirs, from those of their machine; None where they share none.

    Both wait busily, so on one core they would measure the scheduler.
    """
    first, second = pair
    if machines[first] != machines[second] or not set(cpus[first]) & set(cpus[second]):
        return None
    neighbours = (own for own, machine in zip(cpus, machines, strict=True) if machine == machines[first])
    here = sorted({cpu for own in neighbours for cpu in own})
    return (here[0], here[1]) if len(here) > 1 else None


def _apart(job: Job, crew: Crew, pair: Sequence[int]) -> AbstractContextManager[None]:
    """This rank of a pair on a core that the other has no part in, where the machine has one."""
    cores = cores_apart(job.cpus, crew.machines, pair)
    return nullcontext() if cores is None else on({cores[pair.index(job.rank)]})


def _outcome(two: Job, run: Run, case: Case) -> Outcome:
    try:
        return run(two, case)
    except Invalid as error:  # on both ranks alike
        return Outcome("invalid", str(error))


def _at_rank_0(job: Job, outcome: Outcome | None, first: int) -> Outcome | None:
    """What the first of a pair found, on rank 0; None elsewhere."""
    if job.rank == first != 0:
        job.comm.send(outcome, 0, _TAG)
    if job.rank:
        return None
    return outcome if first == 0 else job.comm.recv(source=first, tag=_TAG)


def _note(found: Links, link: str, name: str, pair: Sequence[int], outcome: Outcome) -> None:
    key, what = f"{link}.{name}", _VALUE[name][0]
    if outcome.status != "ok":
        found.metrics[key] = _none(name, f"n/a: {outcome.reason}")
        return
    found.metrics[key] = outcome.metrics[what]
    times = outcome.samples["time"][0]
    each = 2 if name == "latency" else 1
    found.method[key] = {
        "ranks": list(pair),
        "bytes": SIZES[name],
        "mean_s": float(np.mean(times)) * 1e-9 / each / int(outcome.method["batched"]),
        **{kept: outcome.method[kept] for kept in ("iterations", "stop_reason") if kept in outcome.method},
    }


def _none(name: str, why: str) -> Metric:
    return Metric(None, _VALUE[name][1], 0, better="lower" if name == "latency" else "higher", note=why)
