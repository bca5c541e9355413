"""From what models predict and what was measured to the rows that are printed and the figures that are judged. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from statistics import median

from reports.chapters.simulated import Simulated
from reports.models import loggp
from reports.models.hockney import around
from reports.models.loggp import LogGP
from reports.models.predicted import Predicted
from tests.figures.table import Row, figure
from tests.reports.models.planted import SIZES, Fabric

PARAMETERS = ("latency_s", "send_s", "receive_s", "gap_s", "s_per_byte", "edge")


def recovered(planted: Fabric, seed: int) -> LogGP:
    """LogGP from probes of a planted fabric: at the usual sizes, and then at more around the edge that these show."""
    first = loggp.fit(planted.probes(SIZES, seed), resamples=0)
    extra = around(first.edge, 12) if first.edge is not None else ()
    return loggp.fit(planted.probes(tuple(sorted({*SIZES, *extra})), seed + 1000))


def parameters(planted: Fabric, found: LogGP) -> Row:
    """The relative error of each parameter; one that was not found is wholly wrong."""
    got = {name: getattr(found, name) for name in PARAMETERS}
    return {name: 1.0 if x is None else x.value / getattr(planted, name) - 1 for name, x in got.items()}


def planted_figures(rows: Sequence[Row], limit: float) -> list[Row]:
    """The worst error of each parameter over all draws."""
    worst = {name: max(abs(float(row[name])) for row in rows) for name in PARAMETERS}
    return [figure(f"planted {name}: worst relative error", f"<= {limit:g}", got, len(rows), got <= limit)
            for name, got in worst.items()]  # fmt: skip


def steps(found: Iterable[Predicted]) -> list[Row]:
    """A row for every exchange of every case, in s; error and dilation are always told."""
    return [{
        "case": p.summary.workload.partition(",")[0], "fabric": p.summary.fabric, "by": p.mode,
        "step": p.measured("step"), "predicted": p.prediction.step_s, "error": p.error,
        "exposed": p.measured("exposed"), "predicted exposed": p.prediction.exposed_s,
        "dilation": p.measured("dilation"), "predicted dilation": p.prediction.dilation,
        "n": p.summary.launches, "notes": "; ".join(p.notes),
    } for p in found]  # fmt: skip


def step_figures(rows: Sequence[Row], wanted: int, middle: float, worst: float, aim: float) -> list[Row]:
    """The median and the worst error of a step; both are missed where fewer than ``wanted`` could be predicted."""
    errors = sorted(abs(float(row["error"])) for row in rows if row["error"] is not None)
    why = "" if len(errors) >= wanted else f"{len(errors)} of {wanted} could be predicted"
    names = (("median", f"<= {middle:g} (aim {aim:g})", median(errors) if errors else None, middle),
             ("worst", f"<= {worst:g}", max(errors, default=None), worst))  # fmt: skip
    step, n = "step predicted: {} relative error", len(errors)
    return [_judged(step.format(name), target, got, limit, n, why, why or _off(rows, got))
            for name, target, got, limit in names]  # fmt: skip


def _judged(name: str, target: str, got: float | None, limit: float, n: int, missing: str, why: str) -> Row:
    return figure(name, target, got, n, not missing and got is not None and got <= limit, why)


def _off(rows: Sequence[Row], got: float | None) -> str:
    """Which row has the error, where it is one row's."""
    same = [row for row in rows if row["error"] is not None and abs(float(row["error"])) == got]
    return f"{same[0]['case']} on {same[0]['fabric']} by {same[0]['by']}" if same else ""


def simulated(found: Iterable[Simulated]) -> list[Row]:
    """A row for every allreduce that was measured and simulated."""
    return [{"fabric": r.summary.fabric, "algorithm": r.summary.algorithm, "hosts": len(set(r.summary.hosts)),
             "bytes": r.summary.nbytes, "measured": r.summary.value("time"), "simulated": r.time_s, "error": r.error,
             "n": r.summary.launches} for r in found]  # fmt: skip


def simulator_figures(rows: Sequence[Row], algorithms: Sequence[str], hosts: Sequence[int], limit: float) -> list[Row]:
    """The worst error of each algorithm on each number of hosts; missed where nothing could be simulated."""
    why = "no line through latency fits the sizes of its messages"
    found = []
    for algorithm, number in product(algorithms, hosts):
        errors = [abs(float(r["error"])) for r in rows if (r["algorithm"], r["hosts"]) == (algorithm, number)]
        name = f"simulated {algorithm}, {number} hosts, 1-32 MiB: worst relative error"
        missing = "" if errors else why
        worst = max(errors, default=None)
        found.append(_judged(name, f"<= {limit:g}", worst, limit, len(errors), missing, missing))
    return found
