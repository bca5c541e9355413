"""Data-parallel training on the hosts of a job: how long a step takes by each exchange, and what of it is exposed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import numpy as np
import torch
import torch.distributed as dist

from collectives.backends.proving import use_threads
from collectives.backends.rendezvous import CONNECT_TIMEOUT_S, process_group
from fabrics.errors import CannotRun
from microbench.case import Case, Outcome, Unsupported
from microbench.device import CPU
from microbench.job import Job, local_rank
from training import checks, data, loading
from training.cast import Cast, Meeting
from training.clock import Clock, Diverged
from training.data import Loader, Source
from training.exchange.modes import NOOP
from training.exchange.opened import Ways, lacking, opened
from training.exchange.ways import Average, average_over_ranks
from training.first import first_steps
from training.memory import needed_bytes, shortage
from training.models import Model
from training.proofs import proof_of
from training.replica import Replica
from training.run import Run
from training.setup import Setup

THREADS = 1
LARGEST_CHECK = 8 << 20  # elements: about the largest bucket of ResNet-50


def measure(cast: Cast, case: Case, model: Model, average: Average = average_over_ranks) -> Outcome:
    """Time training steps by every exchange and by none, once their results are checked; on every host.

    ``average`` is the exchange over gloo. Raises, on every host alike, CannotRun where they cannot meet over the
    fabric, UserError for images that are missing or damaged, and Unsupported for what MPI lacks.
    """
    here = cast.here
    if here is None:
        raise ValueError("DPUs do not train")
    use_threads(THREADS)
    if cast.setup.device != CPU:
        torch.cuda.set_device(local_rank(here.hosts, here.rank) % torch.cuda.device_count())
    lacks = lacking(cast)
    source = None if lacks else _images(cast, here, model)
    short = "" if lacks else shortage(here, model, cast.setup, needed_bytes(model, cast.setup, cast.stands_in))
    if cast.crew is not None:
        cast.crew.quiet.decide(float(not (lacks or short)))
    if source is None:
        raise Unsupported(lacks)
    if short:
        return Outcome("skipped", short)
    with _open(cast, here, case, average) as ways:
        found = _measured(cast, case, here, model, ways, source)
    return replace(found, method={**found.method, **_counted(cast, ways)})


def _images(cast: Cast, here: Job, model: Model) -> Source:
    """What this case trains on, the same on all hosts."""
    setup = cast.setup
    choice, images = data.parse(setup.data), setup.batch_of(here.size) * here.size
    side, classes = setup.workload.image_px, model.classes
    return data.opened_by_all(here.comm, lambda: data.opened(choice, "training", side, classes, here.seed, images))


@contextmanager
def _open(cast: Cast, here: Job, case: Case, average: Average) -> Iterator[Ways]:
    deadline_s = max(CONNECT_TIMEOUT_S, case.deadline_s / 2)
    group = process_group(here, deadline_s, cast.setup.backend, case.recipe or "pure")
    with group, opened(cast, average, deadline_s) as ways:
        yield ways


def _counted(cast: Cast, ways: Ways) -> dict[str, int | list[int]]:
    """What the DPUs say they have done; collective over all ranks. CannotRun where that is not what was asked for."""
    if cast.crew is None:
        return {}
    rows = cast.crew.quiet.gather(np.array([float(ways.asked)]))
    done = [int(rows[rank, 0]) for workers in cast.crew.layout.dpus for rank in workers]
    if any(count != ways.asked for count in done):
        raise CannotRun(f"{ways.asked} exchanges were asked of the DPUs, which did {', '.join(map(str, done))}")
    return {"dpus_asked": ways.asked, "dpus_done": done}


def _measured(cast: Cast, case: Case, here: Job, model: Model, ways: Ways, source: Source) -> Outcome:
    largest = min(model.parameters, LARGEST_CHECK)
    if fault := checks.allreduce_fault(here.comm, (1, 1000, largest), cast.setup.device):
        return Outcome("invalid", fault)
    setup, proof, meeting = cast.setup, proof_of(here, cast.setup.modes), Meeting(cast)
    caps = {mode.name: mode.cap_bytes for mode in setup.modes}
    caps[NOOP] = setup.modes[0].cap_bytes
    with ExitStack() as stack:
        alone = None
        if here.rank == 0:
            alone = stack.enter_context(Loader(source, setup.workload.batch, 0, 1, here.seed, setup.augment))
        replica = _replica(cast, here, model, source, tuple(dict.fromkeys(caps.values())), stack)
        if short := _too_slow(here, setup, replica):
            return Outcome("skipped", short)
        try:
            trainee, first = first_steps(cast, here, meeting, replica, ways, caps)
        except Diverged as error:
            return Outcome("failed", str(error))
        clock = Clock(meeting, trainee, ways, caps, first.taken)
        run = Run(cast, case, here, clock, meeting, replica, first, alone)
        return replace(run.outcome(), proof=proof)


def _replica(
    cast: Cast, here: Job, model: Model, source: Source, caps: tuple[int, ...], stack: ExitStack
) -> Replica | None:
    """This host's copy of the model, None where it does not train; collective over the hosts."""
    setup = cast.setup
    group = dist.new_group([0]) if setup.replayed else None
    if cast.stands_in:
        return None
    batch = setup.batch_of(here.size)
    loader = stack.enter_context(Loader(source, batch, here.rank, here.size, here.seed, setup.augment))
    network = model.build(here.seed, setup.workload.dropout)
    return Replica(network, loader, here.seed, here.rank, caps, group, setup.dtype, setup.device)


def _too_slow(here: Job, setup: Setup, replica: Replica | None) -> str:
    """Why waiting for images leaves no time to train, the same on all hosts, or nothing. Collective over the hosts.

    A first batch may have found everything cold: where it took too long, the second one tells.
    """
    left_s = here.decide(loading.left_s(here.engine.page.deadline_ns))
    said = ""
    for _ in range(0 if left_s is None else 2):
        waits_s = here.max(0.0 if replica is None else replica.waited_s)
        said = loading.too_slow(setup, waits_s, left_s)
        if not said:
            break
        if replica is not None:
            replica.load()
    return said
