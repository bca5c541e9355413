"""Chapter 8: verdicts, warnings, and everything that has no number, with its reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from microbench.record import Record
from reports import tables
from reports.chapters.proof import proof_detail
from reports.load import mapping, mappings
from reports.summary import NOT_OK, Summary, basis
from reports.units import US, count, rate, runs, size, volume
from reports.view import MEMORY_BYTES_PER_S, Chapter, Finding, View, above_declared, grouped, impossible, number

TITLE = "Verdicts, warnings, and what has no number"
NOT_JUDGED = "No limits given: nothing judged."
FLUCTUATION, UNSTABLE = 0.10, 0.25  # of the value: torch.utils.benchmark warns at the same two
LATE = 0.10  # entry skew, of the time
SLOW = 0.5  # of the declared rate, in one stream
_EXAMPLES = 5
_MEANS = {
    "invalid": "the data came back wrong", "failed": "it could not be measured",
    "timeout": "its deadline passed", "unsupported": "the library or fabric lacks it",
    "skipped": "it was left out",
}  # fmt: skip


def chapter(v: View) -> Chapter:
    """The chapter on verdicts, warnings and absences."""
    without = [block for block in (_disproved(v), *_absent(v)) if block]
    lead = "Every case on disk has a number." if v.records else "No case is on disk."
    others = [block for block in (_never(v), _unusable(v), _jobs(v)) if block]
    blocks = [*(without or [lead]), *others]
    findings = [Finding(8, NOT_JUDGED, {"verdict": "not judged"}), *warnings(v)]
    return Chapter(8, TITLE, tuple(blocks), tuple(findings))


def warnings(v: View) -> Iterator[Finding]:
    """All that a reader must know before trusting a number."""
    for notice in v.data.notices:
        yield Finding(8, f"WARNING: {notice}.", {"kind": "notice"})
    elsewhere = [s for s in v.summaries if s.status == "ok" and not s.published]
    unproved = [s for s in v.published if s.proof == "unknown"]
    crowded = [s for s in v.published if s.oversubscribed]
    yield from _flagged("disproved", elsewhere, "whose bytes left the fabric: not published under its name")
    yield from _flagged("unproved", unproved, "unproved: no counters vouch for the way that the bytes took")
    yield from _flagged("oversubscribed", crowded,
                        "with more busy ranks than CPUs: expect inflated times and tails")  # fmt: skip
    for told in v.data.run.get("warnings") or ():
        yield Finding(8, f"WARNING: {told}.", {"kind": "of the run"})
    yield from _impossible(v)
    yield from _above(v)
    yield from _slow(v)
    yield from _said(v)
    yield from _wide(v)
    yield from _late(v)


def _flagged(kind: str, found: list[Summary], what: str) -> Iterator[Finding]:
    if found:
        where = "; ".join(f"{fabric}: {', '.join(dict.fromkeys(_kind(s) for s in same))}"
                          for fabric, same in grouped(found, lambda s: s.fabric).items())  # fmt: skip
        text = f"WARNING: {count(len(found), 'case')} {what} ({where})."
        yield Finding(8, text, {"kind": kind, "cases": [s.id for s in found]})


def _kind(s: Summary | Record) -> str:
    return s.workload or f"{s.benchmark} {count(s.ranks, 'rank')}"


def _impossible(v: View) -> Iterator[Finding]:
    """Rates that no memory could carry."""
    found = [(name, s) for s in v.published for name in impossible(s.metrics, s.hosts)]
    for (fabric, benchmark, name), same in grouped(found, lambda f: (f[1].fabric, f[1].benchmark, f[0])).items():
        sizes = ", ".join(dict.fromkeys(size(s.nbytes) for _, s in same))
        most = f"{volume(MEMORY_BYTES_PER_S)}/s a host"
        what = benchmark if name == benchmark else f"{name} of {benchmark}"
        text = (f"WARNING: {what} on {fabric} is above {most} at {sizes}: "
                "no memory carries that, so the time or the unit is wrong.")  # fmt: skip
        yield Finding(8, text, {"kind": "impossible rate", "cases": [s.id for _, s in same]})


def _above(v: View) -> Iterator[Finding]:
    found = [s for s in v.published if above_declared(v, s)]
    for (fabric, benchmark), same in grouped(found, lambda s: (s.fabric, s.benchmark)).items():
        sizes = ", ".join(dict.fromkeys(size(s.nbytes) for s in same))
        text = (f"WARNING: {benchmark} on {fabric} is above the declared {rate(v.rate(fabric))} at {sizes}: "
                "within a shaper's burst, or bytes took another way.")  # fmt: skip
        yield Finding(8, text, {"kind": "above declared rate", "cases": [s.id for s in same]})


def _slow(v: View) -> Iterator[Finding]:
    """Networks whose streams stay far below what they declare, at the largest size that was measured."""
    for fabric in v.networks:
        streams = [s for s in v.published if s.fabric == fabric and s.benchmark == "bandwidth"]
        declared = v.rate(fabric)
        if not streams or not declared:
            continue
        largest = max(streams, key=lambda s: s.nbytes or 0)
        part = (largest.value("bandwidth") or declared) * 8 / declared
        if part < SLOW:
            where = f"its declared {rate(declared)} at {size(largest.nbytes)}"
            text = f"WARNING: {fabric} reaches {100 * part:.1f} % of {where}."
            yield Finding(8, text, {"kind": "far below declared rate", "cases": [largest.id], "part": part})


def _late(v: View) -> Iterator[Finding]:
    """Ranks that begin last again and again, where that costs a part of the time."""
    for s in v.published:
        skew, value = s.value("entry_skew"), s.value("time")
        ranks, counts = _integers(s.method.get("late_ranks")), _integers(s.method.get("last_arrivals"))
        bound = number(s.method.get("clock_bound_s")) or 0.0
        if not ranks or skew is None or not value or skew < max(LATE * value, bound):
            continue
        if max(ranks) >= min(len(counts), len(s.hosts)):
            continue  # a damaged record
        who = ", ".join(f"rank {r} on {s.hosts[r]} in {counts[r]} of {sum(counts)}" for r in ranks)
        text = (
            f"WARNING: {_case(s)}: {who} iterations begins last; entry skew {US.text(skew)} us of {US.text(value)} us."
        )
        yield Finding(8, text, {"kind": "late rank", "cases": [s.id], "ranks": list(ranks), "entry_skew": skew})


def _integers(data: object) -> list[int]:
    return [x for x in data if isinstance(x, int) and x >= 0] if isinstance(data, list | tuple) else []


def _said(v: View) -> Iterator[Finding]:
    """What the benchmarks themselves warned of."""
    told = [(text, r) for r in v.records for text in r.method.get("warnings") or () if isinstance(text, str)]
    for (text, fabric), same in grouped(told, lambda t: (t[0], t[1].fabric)).items():
        cases = ", ".join(dict.fromkeys(f"{r.workload or r.benchmark}{_sized(r)}" for _, r in same))
        values = {"kind": "of the benchmark", "cases": [r.id for _, r in same]}
        yield Finding(8, f"WARNING: {cases} on {fabric}: {text.rstrip('.')}.", values)


def _sized(s: Summary | Record) -> str:
    return "" if s.nbytes is None else f" {size(s.nbytes)}"


def _headlines(s: Summary) -> list[str]:
    return [n for n in s.metrics if n in ("time", "bandwidth", "step") or n.endswith(".overall")][:1]


def wideness(s: Summary, name: str) -> float | None:
    """Half the interval, or the whole range over launches, relative to the value."""
    ends, value = s.ends(name), s.value(name)
    if ends is None or not value:
        return None
    whole = "range" in basis(s.spread[name].launches)
    return (ends[1] - ends[0]) / abs(value) / (1 if whole else 2)


def _wide(v: View) -> Iterator[Finding]:
    """Wide intervals and launches that differ: a sentence for each basis, the worst cases named."""
    found = [(w, s, basis(s.spread[name].launches)) for s in v.published for name in _headlines(s)
             if (w := wideness(s, name)) is not None and w > FLUCTUATION]  # fmt: skip
    for what, same in grouped(sorted(found, key=lambda f: -f[0]), lambda f: f[2]).items():
        text = f"WARNING: {_fluctuating(what, [(w, s) for w, s, _ in same], len(v.published))}."
        yield Finding(8, text, {"kind": "fluctuation", "basis": what, "cases": [s.id for _, s, _ in same]})


def _fluctuating(what: str, found: Sequence[tuple[float, Summary]], of: int) -> str:
    ranged, one = "range" in what, len(found) == 1
    sign = "" if ranged else "+-"
    its, verb = ("its", "fluctuates") if one else ("their", "fluctuate")
    trait = f"{its} launches differ by more than" if ranged else f"{its} interval is wider than"
    told = ", ".join(f"{_case(s)} {sign}{100 * w:.0f} %" for w, s in found[:_EXAMPLES])
    beyond = f"{sum(w > UNSTABLE for w, _ in found)} beyond {sign}{100 * UNSTABLE:.0f} %"
    return (
        f"{count(len(found), 'case')} of {of} {verb}: {trait} {sign}{100 * FLUCTUATION:.0f} % ({what}; {beyond}): "
        f"{told}{f', and {len(found) - _EXAMPLES} more' if len(found) > _EXAMPLES else ''}"
    )


def _case(s: Summary) -> str:
    return f"{_kind(s)}{_sized(s)} on {s.fabric}"


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
        extra = [p for p in (r.backend, r.algorithm, r.mode, r.dtype) if p]
        groups.setdefault((f"{_kind(r)} on {r.fabric} ({', '.join(extra)})", reason), []).append(r)
    for (what, reason), same in groups.items():
        ordered = sorted({r.nbytes for r in same if r.nbytes is not None})
        sizes = f", {', '.join(map(size, ordered))}" if ordered else ""
        launches = runs(r.launch for r in same)
        yield tables.bullet(f"{what}{sizes}, launch {launches}: {reason}")


def _unusable(v: View) -> str:
    told = [f"{name}: {f['unusable']}" for name, f in v.fabrics.items() if f.get("unusable")]
    return "Fabrics that cannot be used here\n" + "\n".join(map(tables.bullet, told)) if told else ""


def _jobs(v: View) -> str:
    told = [f"job {job.get('job', '?')} (launch {job.get('launch', '?')}, {job.get('fabric', '?')}): "
            f"{job.get('status')}: {job.get('reason') or 'no reason recorded'}"
            for job in v.data.jobs if job.get("status") not in (None, "ok") or job.get("reason")]  # fmt: skip
    return "Jobs that did not end well\n" + "\n".join(map(tables.bullet, told)) if told else ""


def _never(v: View) -> str:
    """Cases that the plan has and the disk has not: the run ended before them."""
    seen = {(r.id, r.launch) for r in v.records}
    left: dict[str, int] = {}
    for job in mappings(v.data.plan.get("jobs")):
        for case in job.get("cases") or ():
            if isinstance(case, str) and (case, job.get("launch")) not in seen:
                where = f"{case.partition('/')[0]} on {job.get('fabric')}, launch {job.get('launch')}"
                left[where] = left.get(where, 0) + 1
    lines = [tables.bullet(f"{where}: {count(n, 'case')}") for where, n in left.items()]
    total = count(sum(left.values()), "case")
    heading = f"Planned but never measured, since the run ended before: {total}"
    return heading + "\n" + "\n".join(lines) if lines else ""
