"""Chapter 8: verdicts, warnings, and everything that has no number, with its reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from microbench.record import Record
from reports import checked, processors, starts, tables
from reports.chapters.missing import blocks
from reports.limits.told import blocks as judged_blocks
from reports.limits.told import sentence
from reports.load import mapping
from reports.marks import above_declared, unproved
from reports.summary import Summary, basis, ranged
from reports.units import US, count, rate, size, volume
from reports.variants import label, own
from reports.view import (
    MEMORY_BYTES_PER_S,
    TRAINING,
    Chapter,
    Finding,
    View,
    grouped,
    impossible,
    kind,
    number,
    own_warnings,
)

TITLE = "Verdicts, warnings, and what has no number"
NOT_JUDGED = "No limits given: nothing judged."
FLUCTUATION, UNSTABLE = 0.10, 0.25  # of the value, as wideness has it
IMPORTED = "imported from other suites' output: no proof of the way, no samples, and of one launch no interval"
BUSY = 1.0  # load of the last minute, of the cores; an installation just before is below it
SLOW = 0.5  # of the declared rate, in one stream
_EXAMPLES = 5


def chapter(v: View) -> Chapter:
    """The chapter on verdicts, warnings and absences."""
    findings = [_judged(v), *warnings(v)]
    verdicts = judged_blocks(v.judgement)[1:] if v.judgement is not None else []
    return Chapter(8, TITLE, (*verdicts, *_checked(v), *blocks(v)), tuple(findings))


def _judged(v: View) -> Finding:
    """How many criteria have which verdict, or that there are none."""
    if v.judgement is None:
        return Finding(8, NOT_JUDGED, {"verdict": "not judged"})
    return Finding(8, sentence(v.judgement), {"verdict": "judged", "exit_code": v.judgement.code})


def _checked(v: View) -> Iterator[str]:
    """Of how many cases the data was checked, and what came of it."""
    cases = {r.id for r in v.records if r.status == "ok"}
    right, wrong = {r.id for r in checked.checked(v.records)}, {r.id for r in v.records if r.status == "invalid"}
    if right or wrong:
        without = dict.fromkeys(r.benchmark for r in v.records if r.id in cases - right)
        others = f" (no data, or no check: {', '.join(without)})" if without else ""
        found = f"it came back wrong in {count(len(wrong), 'other case')}" if wrong else "none came back wrong"
        of = f"{len(right)} of {count(len(cases), 'case')} with numbers"
        yield tables.prose(f"Data was checked in {of}{others}; {found}.")


def warnings(v: View) -> Iterator[Finding]:
    """All that a reader must know before trusting a number."""
    for notice in v.data.notices:
        yield Finding(8, f"WARNING: {notice}.", {"kind": "notice"})
    elsewhere = [s for s in v.summaries if s.status == "ok" and not s.published]
    unknown = [s for s in v.published if unproved(s)]
    crowded = [s for s in v.published if s.oversubscribed]
    yield from _flagged("disproved", elsewhere, "whose bytes left the fabric: not published under its name")
    yield from _flagged("unproved", unknown, "unproved: no counters vouch for the way that the bytes took")
    yield from _flagged("imported", [s for s in v.published if s.imported], IMPORTED)
    yield from _flagged("oversubscribed", crowded,
                        "with more busy ranks than CPUs: expect inflated times and tails")  # fmt: skip
    for told in v.data.run.get("warnings") or ():
        yield Finding(8, f"WARNING: {told}.", {"kind": "of the run"})
    yield from _busy(v)
    yield from processors.warnings(v)
    yield from _impossible(v)
    yield from _above(v)
    yield from _slow(v)
    yield from _said(v)
    yield from _wide(v)
    yield from _without_interval(v)
    yield from _few_in_time(v)
    yield from _mostly_skew(v)
    yield from _late(v)


def _busy(v: View) -> Iterator[Finding]:
    """That others were at work on the machine when the run began."""
    system = mapping(v.data.run.get("environment"))
    load, cores = system.get("load_average"), number(system.get("cores"))
    first = number(load[0]) if isinstance(load, list | tuple) and load else None
    if first is not None and cores and first > BUSY * cores:
        what = f"the machine was busy when the run began (load average {first:.1f} on {cores:.0f} cores)"
        yield Finding(8, f"WARNING: {what}: numbers may be disturbed.", {"kind": "busy", "load_average": first})


def _flagged(label: str, found: list[Summary], what: str) -> Iterator[Finding]:
    if found:
        where = "; ".join(f"{fabric}: {', '.join(dict.fromkeys(kind(s) for s in same))}"
                          for fabric, same in grouped(found, lambda s: s.fabric).items())  # fmt: skip
        text = f"WARNING: {count(len(found), 'case')} {what} ({where})."
        yield Finding(8, text, {"kind": label, "cases": [s.id for s in found]})


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


def _few_in_time(v: View) -> Iterator[Finding]:
    """Cases that are known from a part of their iterations only, since in the others a rank began late.

    Where even fewer began in time, all iterations count, and the benchmark says so.
    """
    worst = [(s, r) for s in v.published if (r := starts.least_in_time(v, s)) is not None]
    found = [(starts.in_time(r) or 0.0, s, r) for s, r in worst if (starts.in_time(r) or 0.0) < starts.FEW
             and not starts.told_by_benchmark(r)]  # fmt: skip
    if found:
        found.sort(key=lambda f: f[0])
        told = [f"{_case(s)} {100 * part:.0f} %{_launch(s, r)}" for part, s, r in found]
        text = (
            f"WARNING: {count(len(found), 'case')} of {len(v.published)}: every rank began in time in fewer than "
            f"{100 * starts.FEW:.0f} % of the iterations, and the others do not count: {_some(told)}."
        )
        yield Finding(8, text, {"kind": "few in time", "cases": [s.id for _, s, _ in found]})


def _launch(s: Summary, r: Record) -> str:
    return f" in launch {r.launch}" if s.attempted > 1 else ""


def _mostly_skew(v: View) -> Iterator[Finding]:
    """Cases whose time is mostly the wait for the rank that began last."""
    shares = [(share, s) for s in v.published if (share := starts.usual_skew_share(v, s)) is not None]
    found = sorted((f for f in shares if f[0] >= starts.MOSTLY), key=lambda f: -f[0])
    if found:
        of, verb = f"{count(len(found), 'case')} of {len(v.published)}", "is" if len(found) == 1 else "are"
        text = (
            f"WARNING: {of} {verb} mostly entry skew, the wait until the last rank began ({100 * starts.MOSTLY:.0f} % "
            "of the time or more), which tells of the ranks' start, not of the fabric (last_exit, in JSON and CSV, is "
            f"without it): {_some([f'{_case(s)} {100 * share:.0f} %' for share, s in found])}."
        )
        yield Finding(8, text, {"kind": "mostly entry skew", "cases": [s.id for _, s in found]})


def _late(v: View) -> Iterator[Finding]:
    """Ranks that begin last again and again, where that costs a part of the time: a sentence for each fabric."""
    found = [(s, ranks) for s in v.published if (ranks := starts.late(v, s))]
    for fabric, same in grouped(found, lambda f: f[0].fabric).items():
        told = [f"{kind(s)}{_sized(s)}{_by(s)}: {_who(ranks)} ({_delay(v, s)})" for s, ranks in same]
        text = (
            f"WARNING: on {fabric} a rank begins last far more often than by chance, and later than its way to start "
            f"explains, by {100 * starts.LATE:.0f} % of the time or more: {_some(told, '; ')}."
        )
        late = {s.id: [x.rank for x in ranks] for s, ranks in same}
        yield Finding(8, text, {"kind": "late rank", "cases": list(late), "ranks": late})


def _who(ranks: Sequence[starts.Late]) -> str:
    return ", ".join(f"rank {x.rank} on {x.host} in {x.times} of {x.iterations} iterations" for x in ranks)


def _delay(v: View, s: Summary) -> str:
    skew, share = s.value("entry_skew"), starts.usual_skew_share(v, s)
    return f"skew {US.text(skew or 0.0)} us, {100 * (share or 0.0):.0f} % of the time"


def _some(told: Sequence[str], between: str = ", ") -> str:
    more = [f"and {len(told) - _EXAMPLES} more"] if len(told) > _EXAMPLES else []
    return between.join([*told[:_EXAMPLES], *more])


def _said(v: View) -> Iterator[Finding]:
    """What the benchmarks themselves warned of."""
    told = [(text, r) for r in v.records for text in own_warnings(r)]
    for (text, fabric), same in grouped(told, lambda t: (t[0], t[1].fabric)).items():
        cases = ", ".join(dict.fromkeys(f"{_what(r)}{_sized(r)}" for _, r in same))
        values = {"kind": "of the benchmark", "cases": [r.id for _, r in same]}
        yield Finding(8, f"WARNING: {cases} on {fabric}: {text.rstrip('.')}.", values)


def _what(r: Record) -> str:
    """The model that is trained, or the benchmark and what is beside it."""
    return r.workload if r.benchmark == TRAINING and r.workload else " ".join(filter(None, (r.benchmark, r.workload)))


def _sized(s: Summary | Record) -> str:
    return "" if s.nbytes is None else f" {size(s.nbytes)}"


def _headlines(s: Summary) -> list[str]:
    return [n for n in s.metrics if n in ("time", "bandwidth", "message_rate", "step") or n.endswith(".overall")][:1]


def wideness(s: Summary, name: str) -> float | None:
    """Relative to the value: half the interval, or where launches have a range only, how far they lie apart.

    The latter is what the column of that name shows.
    """
    ends, value = s.ends(name), s.value(name)
    if ends is None or not value:
        return None
    spread = s.spread[name]
    return spread.relative if ranged(spread.launches) else (ends[1] - ends[0]) / abs(value) / 2


def _wide(v: View) -> Iterator[Finding]:
    """Wide intervals and launches that differ: a sentence for each basis, the worst cases named."""
    found = [(w, s, basis(s.spread[name].launches)) for s in v.published for name in _headlines(s)
             if (w := wideness(s, name)) is not None and w > FLUCTUATION]  # fmt: skip
    for what, same in grouped(sorted(found, key=lambda f: -f[0]), lambda f: f[2]).items():
        text = f"WARNING: {_fluctuating(what, [(w, s) for w, s, _ in same], len(v.published))}."
        yield Finding(8, text, {"kind": "fluctuation", "basis": what, "cases": [s.id for _, s, _ in same]})


def _without_interval(v: View) -> Iterator[Finding]:
    """Cases of which nothing says how sure their number is: of one launch, with too few samples."""
    ours = [s for s in v.published if not s.imported]
    found = [s for s in ours for name in _headlines(s) if s.value(name) is not None and s.ends(name) is None]
    if found:
        of, lack = f"{count(len(found), 'case')} of {len(v.published)}", "has" if len(found) == 1 else "have"
        text = (
            f"WARNING: {of} {lack} no interval, as n is too small: nothing tells how sure the value is: "
            f"{_some([_case(s) for s in found])}."
        )
        yield Finding(8, text, {"kind": "no interval", "cases": [s.id for s in found]})


def _fluctuating(what: str, found: Sequence[tuple[float, Summary]], of: int) -> str:
    whole, one = "range" in what, len(found) == 1
    sign = "" if whole else "+-"
    its, verb = ("its", "fluctuates") if one else ("their", "fluctuate")
    trait = f"{its} launches differ by more than" if whole else f"{its} interval is wider than"
    told = _some([f"{_case(s)} {sign}{100 * w:.0f} %" for w, s in found])
    beyond = f"{sum(w > UNSTABLE for w, _ in found)} beyond {sign}{100 * UNSTABLE:.0f} %"
    trait += f" {sign}{100 * FLUCTUATION:.0f} %"
    return f"{count(len(found), 'case')} of {of} {verb}: {trait} ({what}; {beyond}): {told}"


def _case(s: Summary) -> str:
    return f"{kind(s)}{_sized(s)} on {s.fabric}{_by(s)}"


def _by(s: Summary) -> str:
    """Which algorithm or form of a collective it is, where it is not the library's own in the usual way."""
    return "" if own(s) or s.workload else f" ({label(s)})"
