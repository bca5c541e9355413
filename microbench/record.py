"""The record: one case in one launch, as a line of JSON.

Schema history
1: first version.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

SCHEMA = 1

Status = Literal["ok", "failed", "timeout", "skipped", "invalid", "unsupported"]
Better = Literal["lower", "higher", "none"]
MetricKind = Literal["measured", "derived", "imported"]


@dataclass(frozen=True)
class Metric:
    """One number with its interval, in base units (s, bytes/s, images/s, 1).

    ``low`` and ``high`` are the ends of a 95 % interval, or ``None``; ``note`` then says why there is none.
    ``n`` counts the samples behind ``value``.
    """

    value: float | None
    unit: str
    n: int
    low: float | None = None
    high: float | None = None
    better: Better = "lower"
    kind: MetricKind = "measured"
    note: str = ""


@dataclass(frozen=True)
class Record:
    """All that is known of one case in one launch; see ARCHITECTURE.md for each field."""

    id: str
    benchmark: str
    fabric: str
    status: Status
    reason: str = ""
    recipe: str = ""
    backend: str = "mpi"
    mpi: str = ""
    thread_level: str = ""
    algorithm: str = ""
    mode: str = ""
    workload: str = ""
    device: str = "cpu"
    direction: str = ""
    nbytes: int | None = None
    dtype: str = ""
    ranks: int = 0
    ranks_per_host: int = 0
    hosts: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    reported_ranks: tuple[int, ...] = ()
    placement: str = ""
    launch: int = 1
    proof: str = "unknown"
    emulated: bool = False
    oversubscribed: bool = False
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    method: Mapping[str, Any] = field(default_factory=dict)
    validation: Mapping[str, Any] = field(default_factory=dict)
    counters: Mapping[str, Any] = field(default_factory=dict)
    samples: Mapping[str, Any] = field(default_factory=dict)
    schema: int = SCHEMA

    def __post_init__(self) -> None:
        if self.status != "ok" and not self.reason:
            raise ValueError(f"record {self.id}: status {self.status} without a reason")

    def to_json(self) -> str:
        """One line of strict JSON: no NaN and no infinity, which become ``null``."""
        return json.dumps(finite(asdict(self)), separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Record:
        """The record of a parsed line; unknown fields of newer minor versions are dropped.

        Raises ValueError for a schema that this version does not know, or a line that is no record.
        """
        if not isinstance(data, Mapping) or not isinstance(data.get("schema"), int):
            raise ValueError("not a record")  # noqa: TRY004 - one kind of error for one kind of fault
        if data["schema"] > SCHEMA:
            raise ValueError(f"record schema {data['schema']} is newer than {SCHEMA}: update fabricbench")
        known = {f.name for f in fields(cls)}
        kept: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items() if k in known}
        try:
            kept["metrics"] = {k: Metric(**m) for k, m in data.get("metrics", {}).items()}
            return cls(**kept)
        except TypeError as error:
            raise ValueError(f"not a record: {error}") from None


def shared_machines(hosts: Sequence[str], roles: Sequence[str]) -> tuple[str, ...]:
    """The machines, by the name of each rank's, on which ranks of DPUs run beside ranks of hosts: no DPU is there."""
    of = {role: [host for host, given in zip(hosts, roles, strict=False) if given == role] for role in ("host", "dpu")}
    return tuple(dict.fromkeys(machine for machine in of["dpu"] if machine in of["host"]))


def shared_words(machines: Sequence[str]) -> str:
    """What is said of such machines; nothing of none."""
    several = f"machine{'s' if len(machines) > 1 else ''}"
    return f"DPU ranks share {several} {', '.join(machines)} with hosts: not a DPU" if machines else ""


def finite(data: Any) -> Any:
    """``data`` with every NaN and infinity as None, all the way down."""
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, Mapping):
        return {str(k): finite(v) for k, v in data.items()}
    if isinstance(data, list | tuple):
        return [finite(v) for v in data]
    return data
