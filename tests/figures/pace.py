"""How long sampling takes until the median is known to the target, against fixed counts: 10,000 small, 1,000 large."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from microbench.record import Record
from reports.load import load
from tests.figures.runs import run
from tests.figures.table import Row, figure

LIMIT = 1 / 3
_SMALL, _LARGE = "8:8K", "16K:4M"
_BENCHMARKS = ("latency", "allreduce")
_ADAPTIVE = "precision = {precision}\nmin_iterations = 30\nmax_iterations = {count}\nbudget_s = 60\n"
_FIXED = "precision = 0\nmin_iterations = {count}\nmax_iterations = {count}\nbudget_s = 60\n"


def plan(template: str) -> str:
    """Both benchmarks over the standard sizes, small ones with 10,000 iterations at most, large ones with 1,000."""
    parts = ["launches = 1"]
    for name, precision in zip(_BENCHMARKS, (0.01, 0.025), strict=True):
        for sizes, count in ((_SMALL, 10_000), (_LARGE, 1_000)):
            parts.append(f'[[{name}]]\nsizes = "{sizes}"\n' + template.format(precision=precision, count=count))
    return "\n".join(parts)


def measure(folder: Path, lab: str, fabrics: Iterable[str]) -> tuple[list[Row], list[Row]]:
    """Both plans, fabric after fabric in turns; rows per fabric, and the figure over all."""
    rows: list[Row] = []
    for fabric in fabrics:
        spent: dict[str, list[Record]] = {}
        for name, template in (("adaptive", _ADAPTIVE), ("fixed", _FIXED)):
            where = run(folder / f"pace-{fabric}-{name}", plan(template), lab, fabric)
            spent[name] = [record for record in load(where).records if record.status == "ok"]
        rows.append({"fabric": fabric, **{name: total_s(records) for name, records in spent.items()},
                     "converged": sum(bool(r.method["converged"]) for r in spent["adaptive"]),
                     "of": len(spent["adaptive"]), "fixed of": len(spent["fixed"])})  # fmt: skip
    adaptive, fixed = (sum(float(row[name]) for row in rows) for name in ("adaptive", "fixed"))
    share, n = adaptive / fixed, sum(int(row["of"]) for row in rows)
    met = sum(int(row["converged"]) for row in rows)
    name = f"time to the target half-width over that of fixed counts ({met} of {n} sizes reached it)"
    return rows, [figure(name, f"<= {LIMIT:.3f}", share, n, share <= LIMIT)]


def total_s(records: Iterable[Record]) -> float:
    """The time of measuring, warm-up included."""
    return sum(float(record.method["measuring_s"]) for record in records)
