"""What records say of the processors that computed: whether an import took some away, and with how many threads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from microbench.record import Record
from reports.view import TRAINING, Finding, View, grouped, kind


def threads(records: Iterable[Record]) -> list[int]:
    """The different numbers of threads that each rank of these records computed with, ascending."""
    return sorted({n for r in records if isinstance(n := r.method.get("threads"), int) and not isinstance(n, bool)})


def warnings(v: View) -> Iterator[Finding]:
    """That ranks lost processors to an import, or that what stands side by side had unequal numbers of threads."""
    moved = [r for r in v.records if r.method.get("affinity_kept") is False]
    for fabric, same in grouped(moved, lambda r: r.fabric).items():
        named = ", ".join(dict.fromkeys(map(kind, same)))
        text = (f"WARNING: importing torch changed the processors that ranks may run on ({named} on {fabric}): "
                "times are not those of the processors that were asked for.")  # fmt: skip
        yield Finding(8, text, {"kind": "processors changed", "cases": sorted({r.id for r in same})})
    trained = [r for r in v.records if r.benchmark == TRAINING and r.status == "ok"]
    for workload, same in grouped(trained, lambda r: r.workload).items():
        found = threads(same)
        if len(found) > 1:
            counts = " and ".join(map(str, found))
            text = f"WARNING: {workload or 'training'} computed with {counts} threads a rank: its times do not compare."
            yield Finding(8, text, {"kind": "threads differ", "cases": sorted({r.id for r in same}), "threads": found})
