"""How a call stands among those beside it: which is the fastest, how near the stream, how it compares to the library.

Computed here alone: the tables, the findings, JSON and CSV show the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from reports.ratios import Ratio
from reports.starts import KEPT, MOSTLY, in_time, least_in_time, usual_skew_share
from reports.summary import Summary, too_few
from reports.variants import Contest, against_library, best, contests, library_at
from reports.view import View

UNRANKED = "-"


@dataclass(frozen=True)
class Standing:
    """Of one summary: ``mark`` is ``*``, ``=`` or ``-`` (not ranked, for the reason ``unranked``), else empty.

    ``of_stream`` is busbw over the one-way rate measured on the fabric; ``vs_library`` how many times faster than the
    library's own at that size, 1 of the library's own itself, None where that was not measured.
    """

    mark: str
    unranked: str
    of_stream: float | None
    vs_library: Ratio | None

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON data."""
        return asdict(self)


def why_unranked(v: View, s: Summary) -> str:
    """Why a time says too little of the call itself to be ranked, or nothing."""
    if s.value("time") is None:
        return ""
    if s.ends("time") is None:
        return "no interval"
    if few := too_few(s.spread["time"].launches):
        return few
    share, worst = usual_skew_share(v, s), least_in_time(v, s)
    if share is not None and share >= MOSTLY:
        return "mostly entry skew"
    if worst is not None and (in_time(worst) or 0.0) < KEPT:
        return "most iterations began late"
    return ""


def ranked(v: View, rows: Iterable[Summary]) -> list[Summary]:
    """The rows that may be called fastest, or slower than another."""
    return [s for s in rows if not why_unranked(v, s)]


def ranking(v: View, rows: Iterable[Summary]) -> list[Contest]:
    """Who is fastest among the ranked ones, of each form and size."""
    return contests(ranked(v, rows))


def standings(v: View, rows: Sequence[Summary]) -> dict[str, Standing]:
    """How each of the rows of one comparison stands, by the summary's id."""
    marked, library, peak = best(ranked(v, rows)), library_at(rows), v.peak(rows[0].fabric)
    found = {}
    for s in rows:
        why, busbw = why_unranked(v, s), s.value("busbw")
        share = busbw / peak if busbw is not None and peak else None
        found[s.id] = Standing(UNRANKED if why else marked.get(s.id, ""), why, share, _against(s, library))
    return found


def _against(s: Summary, library: Mapping[int | None, Summary]) -> Ratio | None:
    if library.get(s.nbytes) is s:
        return None if s.value("time") is None else Ratio(1.0, None, None, "itself")
    return against_library(s, library)


def of_comparisons(v: View, groups: Iterable[Sequence[Summary]]) -> dict[str, Standing]:
    """The same of several comparisons; a call beside several libraries stands as it does in the first."""
    found: dict[str, Standing] = {}
    for rows in groups:
        found = standings(v, rows) | found
    return found
