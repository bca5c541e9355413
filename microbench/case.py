"""One thing to measure, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from numpy.typing import NDArray

from fabrics.model import Proof
from microbench.record import Metric, Status

_IDENTITY = (
    "benchmark", "fabric", "recipe", "backend", "algorithm", "mode", "workload", "device", "nbytes", "dtype",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """What is measured, and how long it may take.

    ``nbytes`` is bytes per rank in the send buffer. ``options`` belong to the benchmark (a model's name, a
    number of steps). Measuring stops when the median's interval is within ``precision`` of it (half width; 0 never
    stops early); ``budget_s`` bounds it, ``deadline_s`` is when the supervisor gives up. ``sync`` names how the
    ranks of a collective start together.
    """

    benchmark: str
    fabric: str
    recipe: str = "pure"
    backend: str = "mpi"
    algorithm: str = "library"
    mode: str = ""
    workload: str = ""
    device: str = "cpu"
    nbytes: int | None = None
    dtype: str = ""
    ranks: int = 2
    min_iterations: int = 30
    max_iterations: int = 1000
    precision: float = 0.0
    sync: str = "auto"
    budget_s: float = 1.0
    deadline_s: float = 60.0
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The same in every launch and run: what was measured, not how often."""
        size = "" if self.nbytes is None else f"{self.nbytes}B"
        device = "" if self.device == "cpu" else self.device
        parts = (self.benchmark, self.fabric, self.recipe, self.backend, self.algorithm, self.mode,
                 self.workload, device, self.dtype, size, f"{self.ranks}r")  # fmt: skip
        return "/".join(part for part in parts if part)

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON data; ``Case(**data)`` reads it back."""
        return asdict(self)

    def identity(self) -> dict[str, Any]:
        """What a record of this case says of it, whatever came of it."""
        return {"id": self.id} | {name: getattr(self, name) for name in _IDENTITY}


@dataclass(frozen=True)
class Outcome:
    """What a benchmark hands to the worker, complete on rank 0.

    ``samples`` maps a name to times: int64 in ns, or float64 in s, of shape (ranks, iterations). ``proof`` is
    given where the job's own proof does not speak for this traffic.
    """

    status: Status = "ok"
    reason: str = ""
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    method: Mapping[str, Any] = field(default_factory=dict)
    validation: Mapping[str, Any] = field(default_factory=dict)
    samples: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    reported_ranks: tuple[int, ...] = ()
    direction: str = ""
    placement: str = ""
    proof: Proof | None = None


class Unsupported(Exception):
    """The library or fabric lacks what a case needs; raised by every rank alike."""


class Invalid(Exception):
    """The data came back wrong; raised by every rank alike, and no time is published."""
