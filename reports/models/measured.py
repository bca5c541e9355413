"""A run's allreduces as models take them: by fabric, call, rank count and size."""

from __future__ import annotations

from collections.abc import Sequence

from reports.models.allreduce import Cells
from reports.models.points import Points, of_summaries
from reports.summary import Summary
from reports.variants import label
from reports.view import View, alone, grouped

ALLREDUCE, DTYPE = "allreduce", "float32"


def calls(v: View, fabric: str) -> dict[str, list[Summary]]:
    """The allreduces of float32 on a fabric, by the call's label: ``library``, ``ring``, ``gloo``, ..."""
    found = [s for s in v.of(ALLREDUCE) if s.fabric == fabric and s.dtype == DTYPE and not alone(s) and s.nbytes]
    return grouped((s for s in found if s.value("time") is not None and s.device == "cpu"), label)


def cells(v: View, summaries: Sequence[Summary]) -> Cells:
    """The times of one call, a ``Points`` for each layout."""
    layouts = grouped(summaries, lambda s: (s.ranks, max(1, s.ranks_per_host)))
    return Cells(tuple(layouts), tuple(of_summaries(v, rows, "time") for rows in layouts.values()))


def at(found: Cells, ranks: int) -> Points | None:
    """The times at a rank count; None where it was not measured."""
    return next((p for (n, _), p in zip(found.layouts, found.points, strict=True) if n == ranks), None)


def both(one: Cells, other: Cells) -> tuple[list[Points], list[Points]]:
    """The times of two calls at the layouts that both have."""
    shared = [layout for layout in one.layouts if layout in other.layouts]
    left, right = (dict(zip(c.layouts, c.points, strict=True)) for c in (one, other))
    return [left[layout] for layout in shared], [right[layout] for layout in shared]
