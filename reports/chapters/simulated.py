"""The simulator's allreduces on fitted fabrics beside the measured ones: how far its predictions may be trusted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from reports import tables
from reports.models import measured
from reports.models.cost import ALGORITHMS
from reports.models.fabric import fitted
from reports.models.network import Messages, allreduce_s, model
from reports.summary import Summary
from reports.units import PERCENT, count, size
from reports.view import View, grouped

LEAST_BYTES = 1 << 20
HELP = (
    "Simulated: the schedule's messages on the fitted fabric (LogGP, else the line through latency; ranks of a host "
    "share its NIC), from 1 MiB on. Errors are of the simulated time, relative to the measured one."
)


@dataclass(frozen=True)
class Simulated:
    """One measured allreduce of ours, and its simulated time in s."""

    summary: Summary
    time_s: float

    @property
    def error(self) -> float:
        """Of the simulated time, relative to the measured one."""
        return self.time_s / (self.summary.value("time") or 1.0) - 1


def of_fabric(v: View, name: str) -> list[Simulated]:
    """Every allreduce by one of our schedules that was measured on a fabric, simulated; none where no model fits."""
    found, models, rows = fitted(v, name), dict[tuple[str, ...], Messages | None](), []
    for algorithm, summaries in measured.calls(v, name).items():
        for s in summaries if algorithm in ALGORITHMS else ():
            where = _places(s.hosts)
            on = models.setdefault(s.hosts, model(found, where))
            if (
                on is not None
                and s.nbytes
                and s.nbytes >= LEAST_BYTES
                and on.lines.trusted(s.nbytes / s.ranks, s.nbytes)
            ):
                rows.append(Simulated(s, allreduce_s(algorithm, s.nbytes, where, on)))
    return rows


def _places(hosts: Sequence[str]) -> list[int]:
    """Each rank's host as a number."""
    seen: dict[str, int] = {}
    return [seen.setdefault(host, len(seen)) for host in hosts]


def blocks(v: View) -> list[str]:
    """The table; nothing where nothing can be simulated."""
    rows = [row for name in v.fabrics for row in _rows(v, name)]
    if not rows:
        return []
    heads = ["fabric", "algorithm", "ranks", "sizes", "error, %\nmedian", "\nworst", "at", "notes"]
    drawn = tables.table(heads, rows, ["left", "left", *["right"] * 5, "left"])
    return [f"Simulated allreduce beside the measured\n\n{tables.prose(HELP)}\n\n{drawn}"]


def _rows(v: View, name: str) -> Iterator[list[str]]:
    for (algorithm, ranks), group in grouped(
        of_fabric(v, name), lambda r: (r.summary.algorithm, r.summary.ranks)
    ).items():
        worst = max(group, key=lambda r: abs(r.error))
        notes = [mark for mark, given in (("EMULATED", name in v.emulated),
                                          ("OVERSUBSCRIBED", worst.summary.oversubscribed)) if given]  # fmt: skip
        yield [name, algorithm, str(ranks), count(len(group), "size"), PERCENT.text(median(r.error for r in group)),
               PERCENT.text(worst.error), size(worst.summary.nbytes), ", ".join(notes)]  # fmt: skip
