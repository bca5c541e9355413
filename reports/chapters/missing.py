"""The second half of chapter 8: everything that has no number, with its reason."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from microbench.record import Record
from reports import tables
from reports.chapters.proof import proof_detail
from reports.load import mapping, mappings
from reports.summary import NOT_OK
from reports.units import count, runs, size
from reports.view import View, grouped, kind

_MEANS = {
    "invalid": "the data came back wrong", "failed": "it could not be measured",
    "timeout": "its deadline passed", "unsupported": "the library or fabric lacks it",
    "skipped": "it was left out",
}  # fmt: skip
_SIZES = 4  # that are listed; of more, the first and the last
_SIZE = re.compile(r"\d+B")


@dataclass(frozen=True)
class Planned:
    """A case of the plan in one launch."""

    case: str
    launch: object
    fabric: str

    @property
    def benchmark(self) -> str:
        """Its first part names it."""
        return self.case.partition("/")[0]

    @property
    def nbytes(self) -> int | None:
        """Its size, if it has one."""
        found = [part for part in self.case.split("/") if _SIZE.fullmatch(part)]
        return int(found[-1][:-1]) if found else None


def blocks(v: View) -> list[str]:
    """What was disproved, what failed or was left out, what never ran, and what else did not go well."""
    without = [block for block in (_disproved(v), *_absent(v)) if block]
    lead = "Every case on disk has a number." if v.records else "No case is on disk."
    return [*(without or [lead]), *(block for block in (_never(v), _unusable(v), _jobs(v)) if block)]


def planned(v: View) -> list[Planned]:
    """Every case and launch of the plan, as far as the run says."""
    return [Planned(case, job.get("launch"), str(job.get("fabric"))) for job in mappings(v.data.plan.get("jobs"))
            for case in job.get("cases") or () if isinstance(case, str)]  # fmt: skip


def unrecorded(v: View) -> list[Planned]:
    """Cases and launches that the plan has and the disk has not."""
    seen = {(r.id, r.launch) for r in v.records}
    return [p for p in planned(v) if (p.case, p.launch) not in seen]


def _disproved(v: View) -> str:
    """Numbers that are not shown under their fabric's name, and why."""
    told = [(r, str(mapping(r.counters).get("detail") or proof_detail(v, r.fabric, r.launch, "disproved")
                    or "no detail recorded")) for r in v.records
            if r.status == "ok" and r.proof == "disproved"]  # fmt: skip
    heading = f"Disproved, so not published: {count(len(told), 'record')}"
    return heading + "\n" + "\n".join(_merged(told)) if told else ""


def _absent(v: View) -> Iterator[str]:
    for status in NOT_OK:
        told = [(r, r.reason) for r in v.records if r.status == status]
        if told:
            heading = f"{status.capitalize()} ({_MEANS[status]}): {count(len(told), 'record')}"
            yield heading + "\n" + "\n".join(_merged(told))


def _merged(told: Iterable[tuple[Record, str]]) -> Iterator[str]:
    """One line for the cases that share a setup and a reason: their sizes and launches joined."""
    groups: dict[tuple[str, ...], list[Record]] = {}
    for r, reason in told:
        extra = [p for p in (r.backend, r.algorithm, r.mode, r.dtype, "" if r.device == "cpu" else r.device) if p]
        groups.setdefault((f"{kind(r)} on {r.fabric} ({', '.join(extra)})", reason), []).append(r)
    for (what, reason), same in groups.items():
        ordered = sorted({r.nbytes for r in same if r.nbytes is not None})
        sizes = f", {', '.join(map(size, ordered))}" if ordered else ""
        launches = runs(r.launch for r in same)
        yield tables.bullet(f"{what}{sizes}, launch {launches}: {reason}")


def _never(v: View) -> str:
    """A line per fabric: its benchmarks with how many records each lacks, and of which launches."""
    left = unrecorded(v)
    lines = [_left(fabric, same) for fabric, same in grouped(left, lambda p: p.fabric).items()]
    return "\n".join([f"{_heading(v)}: {len(left)} of {count(len(planned(v)), 'record')}", *lines]) if lines else ""


def _heading(v: View) -> str:
    if v.data.dropped:
        ended = "the run ended before, or " if v.data.unfinished else ""
        return f"Planned but without a record, since {ended}its line was dropped"
    return "Planned but never measured" + (", since the run ended before" if v.data.unfinished else "")


def _left(fabric: str, same: Sequence[Planned]) -> str:
    told = []
    for benchmark, cases in grouped(same, lambda p: p.benchmark).items():
        sizes = _sizes({p.nbytes for p in cases if p.nbytes is not None})
        told.append(f"{benchmark} {len(cases)}{f' ({sizes})' if sizes else ''}")
    launches = runs(p.launch for p in same if isinstance(p.launch, int))
    where = f", launch {launches}" if launches else ""
    return tables.bullet(f"{fabric}{where}: {', '.join(told)}")


def _sizes(found: set[int]) -> str:
    """``8 B, 64 KiB``, or ``12 sizes, 0 B to 4 MiB``."""
    if len(found) <= _SIZES:
        return ", ".join(map(size, sorted(found)))
    return f"{len(found)} sizes, {size(min(found))} to {size(max(found))}"


def _unusable(v: View) -> str:
    told = [f"{name}: {f['unusable']}" for name, f in v.fabrics.items() if f.get("unusable")]
    return "Fabrics that cannot be used here\n" + "\n".join(map(tables.bullet, told)) if told else ""


def _jobs(v: View) -> str:
    """Jobs that failed, tried again since or not: those of a fabric that share a reason in one line."""
    bad = [job for job in v.data.jobs if job.get("status") not in (None, "ok") or job.get("reason")]
    lines = [tables.bullet(f"{_numbered(same)}, {fabric}{since}): {status}: {reason or 'no reason recorded'}")
             for (fabric, since, status, reason), same in grouped(bad, _end).items()]  # fmt: skip
    return "\n".join(["Jobs that did not end well", *lines]) if lines else ""


def _end(job: Mapping[str, Any]) -> tuple[str, str, str, str]:
    since = "; tried again since" if job.get("retried") else ""
    return str(job.get("fabric", "?")), since, str(job.get("status")), str(job.get("reason") or "")


def _numbered(jobs: Sequence[Mapping[str, Any]]) -> str:
    """``jobs 4, 6 (launch 2-3``; a number that is damaged reads ``?``."""
    jobs_told, launches = (runs(n for job in jobs if isinstance(n := job.get(name), int)) for name in ("job", "launch"))
    return f"{'job' if len(jobs) == 1 else 'jobs'} {jobs_told or '?'} (launch {launches or '?'}"
