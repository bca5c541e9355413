"""Cases that overlap a collective with compute: one for each combination of what a section sweeps. Pure.

Such a case has ``fraction`` among its options, which no other case has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import product
from typing import TYPE_CHECKING, Any

from collectives.offload.pieces import MOST_PIECES
from collectives.overlap.options import Options
from microbench import pacing
from microbench.case import Case
from suite import trained

if TYPE_CHECKING:
    from suite.planfile import Section

ALWAYS = ("compare", "fraction", "skew", "outstanding", "compute", "placement")
OFFLOADED = ("workers", "chunk", "dpu_memory")  # what only a case with DPUs can set
_SWEPT = {"fraction": "fractions", "skew": "skews", "outstanding": "outstanding", "compute": "compute"}
_LEAD_IN = 1.5  # iterations that run for one that counts
_PREPARING = 4  # iterations of every mode that check and warm up
_TUNING = 20  # collectives of an offload mode that look for its chunk
_PIECE_S = 0.002  # of a small piece, where it is one of very many
_BUSY_THREAD = 2  # a progress thread on the core of the compute


def combinations(section: Section) -> Iterator[Options]:
    """The options of every case of a section at one size, checked; UserError for what cannot be."""
    offload = section.with_dpus
    sweep = {name: getattr(section, key) for name, key in _SWEPT.items()}
    sweep |= {"workers": section.workers} if offload else {}
    fixed: dict[str, Any] = {"placement": section.placement}
    fixed |= {"compare": section.compare} if section.compare else {}
    fixed |= {key: value for key in ("chunk", "dpu_memory") if (value := getattr(section, key)) is not None}
    for values in product(*sweep.values()):
        yield Options.of(fixed | dict(zip(sweep, values, strict=True)), offload)


def as_case(options: Options, offload: bool) -> dict[str, Any]:
    """What a case keeps of its options, as plain JSON data."""
    names = ALWAYS + (OFFLOADED if offload else ())
    kept = {name: value for name, value in asdict(options).items() if name in names and value is not None}
    return kept | {"compare": list(options.compare)}


def options_of(case: Case) -> Options | None:
    """The options of a case that overlaps, else None."""
    if "fraction" not in case.options:
        return None
    return Options.of(case.options, offload=any(name in case.options for name in OFFLOADED))


def thread_level(case: Case) -> str:
    """The thread level that MPI has to be started at for a case."""
    if trained.is_training(case):
        return trained.thread_level(case)
    options = options_of(case)
    return options.thread_level if options else "single"


def libraries(case: Case) -> tuple[str, ...]:
    """The libraries beside MPI that a case calls."""
    compared = ("gloo",) if "gloo" in case.options.get("compare", ()) else ()
    return compared if case.backend == "mpi" else (case.backend,)


def at_most_s(case: Case, options: Options, collective_s: float) -> float:
    """About how long a case takes at most whose collective takes ``collective_s`` by itself.

    All modes are measured in turns, each without and with compute, so a few slow iterations outlast the budget.
    """
    both = 1 + max(1.0, options.fraction) + options.skew / 2
    modes = sum(both * (_BUSY_THREAD if mode == "thread" else 1) for mode in options.compare)
    set_s = (modes * options.outstanding + options.fraction) * collective_s
    set_s += len(options.offloads) * both * options.outstanding * _pieces(case.nbytes or 0, options) * _PIECE_S
    each_s = _LEAD_IN * set_s
    tuned_s = 0.0 if options.chunk else _TUNING * len(options.offloads) * collective_s
    sampled_s = max(case.budget_s, pacing.iterations(case, 1e9 * each_s) * each_s)
    return sampled_s + _PREPARING * set_s + tuned_s


def _pieces(nbytes: int, options: Options) -> int:
    """About how many pieces an offload is cut into, beyond one: by its chunk, or by a memory that two have to fit."""
    memory = None if options.dpu_memory is None else options.dpu_memory // 4  # of two hosts each
    bounds = [bound for bound in (options.chunk, memory) if bound]
    return min(MOST_PIECES, nbytes // min(bounds)) if bounds else 0
