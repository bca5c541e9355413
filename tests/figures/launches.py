"""The cases of a run, each with its value in every launch. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from microbench.record import Record
from reports.summary import Summary, by_launch, newest, summarise

Values = tuple[float, ...]


@dataclass(frozen=True)
class Measured:
    """One case: its summary over launches, and the value of each metric by launch."""

    summary: Summary
    values: Mapping[str, Values]
    records: tuple[Record, ...]

    def middle(self, name: str) -> float:
        """The median over launches."""
        return median(self.values[name])


def measured(records: Iterable[Record]) -> list[Measured]:
    """Every case of a run, in the order of its plan."""
    known = newest(records)
    values: dict[str, dict[str, Values]] = {}
    for (case, name), launches in by_launch(known).items():
        values.setdefault(case, {})[name] = launches.values
    return [
        Measured(s, values.get(s.id, {}), tuple(record for record in known if record.id == s.id))
        for s in summarise(known)
    ]
