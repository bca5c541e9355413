"""Chapter 1: the machine, its software, the jobs, and how every number was made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from reports import checked
from reports.cells import APART
from reports.chapters.verdicts import FLUCTUATION
from reports.load import mapping
from reports.ratios import HOW
from reports.summary import IMPORTED, LAUNCHES_FOR_INTERVAL, ranged
from reports.tables import bullet, pairs
from reports.units import count, duration, runs
from reports.view import Chapter, View, number

SIZES = "A size is bytes per rank in the send buffer; 1 KiB = 1024 B. 1 us = 1e-6 s, 1 Gbit/s = 1e9 bit/s, "
RATES = {"MB/s": "1 MB/s = 1e6 B/s.", "MiB/s": "1 MiB/s = 2^20 B/s = 1.048576 MB/s."}
DEFINITIONS = (
    "latency: half the round trip of a ping-pong. bandwidth: one way (uni), a window of messages in flight. bibw: "
    "the same both ways at once, both ways counted (bi).",
    "Time of a collective: per iteration the longest of all ranks. busbw: what each link must carry each way under "
    "an ideal algorithm (allreduce over p ranks: 2 (p-1)/p x size / time); from each launch's median time.",
    "n counts samples; '3 x 1000' is three launches of 1000 samples each, '~' marks a mean count. 'p99 "
    "(upper)' is the 99th percentile and the upper end of its interval; too few samples for one: n = x < y.",
)
IMPORTED_NUMBERS = (
    "'imported': another suite printed it, with its own method: mostly means, of collectives over all ranks (OSU, "
    "nccl-tests) or of the slowest one (IMB), where our own are medians of each iteration's slowest rank. Sizes are "
    "converted to ours. n is the iterations behind a mean where the log tells them. busbw is derived where a suite "
    "prints none, overlap by our definition, signed, where theirs is clipped at 0."
)
RATIO = f"A ratio is one of medians, above 1 where faster; its interval: {HOW}."


def chapter(v: View) -> Chapter:
    """The chapter on system and method."""
    return Chapter(1, "System and method", (_run(v), _machine(v), _jobs(v), _method(v)))


def _run(v: View) -> str:
    run, plan = v.data.run, v.data.plan
    command = run.get("command")
    wrote = str(run.get("fabricbench", ""))
    launches = f"{plan['launches']} planned" if plan.get("launches") else ""
    seen = runs(r.launch for r in v.records)
    return pairs([
        ("run", _text(run.get("id"))),
        ("fabricbench", wrote),
        ("command", " ".join(map(str, command)) if isinstance(command, list) else _text(command)),
        ("started", _text(run.get("started"))),
        ("resumed", ", ".join(run.get("resumed") or ())),
        ("finished", _text(run.get("finished")) or "no: " + v.data.unfinished),
        ("duration", _duration(run)),
        ("tier", _text(plan.get("tier"))),
        ("launches", ", ".join(part for part in (launches, seen and f"number {seen} on disk") if part)),
        ("on disk", f"{count(len(v.summaries), 'case')}, {count(len(v.records), 'record')}"),
    ])  # fmt: skip


def _duration(run: Mapping[str, Any]) -> str:
    try:
        spent = datetime.fromisoformat(str(run.get("finished"))) - datetime.fromisoformat(str(run.get("started")))
    except (ValueError, TypeError):
        return ""
    paused = ", the time included that it stood still before it was resumed" if run.get("resumed") else ""
    return duration(spent.total_seconds()) + paused


def _machine(v: View) -> str:
    known = v.data.environment
    if not known:
        return "The run does not describe its machine: run.json has no environment."
    memory = number(known.get("memory_bytes"))
    packages = ", ".join(f"{name} {version}" for name, version in mapping(known.get("packages")).items())
    told = {
        "hostname",
        "kernel",
        "cpu",
        "cores",
        "memory_bytes",
        "python",
        "mpi",
        "mpiexec",
        "packages",
        "emulated",
    }
    others = [(str(k).replace("_", " "), _text(x)) for k, x in known.items() if k not in told]
    return pairs([
        ("host", _text(known.get("hostname"))),
        ("kernel", _text(known.get("kernel"))),
        ("CPU", _text(known.get("cpu"))),
        ("cores", _text(known.get("cores"))),
        ("memory", "" if memory is None else f"{memory / 2**30:.1f} GiB"),
        ("MPI", _text(known.get("mpi"))),
        ("mpiexec", _text(known.get("mpiexec"))),
        ("python", _text(known.get("python"))),
        ("packages", packages),
        ("EMULATED", _emulated(v)),
        *others,
    ])  # fmt: skip


def _emulated(v: View) -> str:
    if not v.emulated:
        return "everything: the run says so" if v.data.environment.get("emulated") else ""
    return f"{', '.join(v.emulated)}: network namespaces of this one machine, which all their hosts share"


def _text(data: Any) -> str:
    """Scalars as they are, lists joined, mappings as ``k=v``; nothing for nothing."""
    if data is None:
        return ""
    if isinstance(data, float):
        return f"{data:.4g}"
    if isinstance(data, Mapping):
        return " ".join(f"{k}={_text(x)}" for k, x in data.items())
    return ", ".join(map(_text, data)) if isinstance(data, list | tuple) else str(data)


def _jobs(v: View) -> str:
    levels = dict.fromkeys(str(x) for x in [*(j.get("thread_level") for j in v.data.jobs),
                                            *(r.thread_level for r in v.records)] if x)  # fmt: skip
    rows = [("jobs", count(len(v.data.jobs), "MPI job") + " launched"), ("thread level", ", ".join(levels))]
    layouts: dict[str, list[str]] = {}
    for job in v.data.jobs:
        where = layout(job)
        if where:
            layouts.setdefault(where, []).append(str(job.get("fabric", "?")))
    rows += [("ranks" if not i else "", f"{where} ({', '.join(dict.fromkeys(fabrics))})")
             for i, (where, fabrics) in enumerate(layouts.items())]  # fmt: skip
    return pairs(rows)


def layout(job: Mapping[str, Any]) -> str:
    """Which rank of a job ran where: ``rank 0: host h0, CPU 0; rank 1: dpu d0, CPU 1``."""
    hosts, roles, cpus = (list(job.get(name) or ()) for name in ("hosts", "roles", "cpus"))
    told = []
    for rank, host in enumerate(hosts):
        role = str(roles[rank]) if rank < len(roles) and roles[rank] else "host"
        mask = cpus[rank] if rank < len(cpus) else ()
        known = isinstance(mask, list | tuple) and bool(mask) and all(isinstance(c, int) for c in mask)
        told.append(f"rank {rank}: {role} {host}" + (f", CPU {runs(mask)}" if known else ""))
    return "; ".join(told)


def _method(v: View) -> str:
    units = SIZES + RATES[v.byte_rate.name]
    own = DEFINITIONS if any(not s.imported for s in v.published) or not v.published else ()
    lines = [units, *own, *_imported(v), *_against(v), RATIO, _intervals(v), *_differ(v), *_sampling(v), *_checked(v),
             *_timer(v), *_recorded(v)]  # fmt: skip
    return "\n".join(["How the numbers are made", *map(bullet, lines)])


def _intervals(v: View) -> str:
    counts = {s.launches for s in v.published if not s.imported or s.launches > 1}
    rules = [
        ("within one launch: 95 % order-statistic intervals over its samples, which show nothing of how "
         "launches differ ('95 %, 1 launch')", any(n == 1 for n in counts)),
        (f"over 2 to {LAUNCHES_FOR_INTERVAL - 1} launches: the median of their values and their range, which "
         "is not an interval ('range')", any(map(ranged, counts))),
        (f"over {LAUNCHES_FOR_INTERVAL} launches or more: the median of their values and its exact 95 % "
         "order-statistic interval ('95 %')", any(n >= LAUNCHES_FOR_INTERVAL for n in counts)),
    ]  # fmt: skip
    used = [text for text, here in rules if here]
    if not used:
        return "No interval is told." if v.published else "No number is published."
    return "Values are medians. Intervals " + "; ".join(used) + "."


def _imported(v: View) -> Iterable[str]:
    """What numbers are that other suites measured."""
    suites = dict.fromkeys(str(r.method["suite"]) for r in v.records if r.proof == IMPORTED and r.method.get("suite"))
    if suites:
        yield f"{IMPORTED_NUMBERS} Suites: {', '.join(suites)}."


def _against(v: View) -> Iterable[str]:
    """What other fabrics are set against, and why."""
    if len({s.fabric for s in v.published}) > 1:
        x = v.reference
        yield (f"'vs {x}': a fabric's speed over that of {x}, {v.why_reference}, at the same size and setup: 2.00x is "
               f"half the time or twice the rate, 1.00x {x} itself, '-' no such number.")  # fmt: skip


def _differ(v: View) -> Iterable[str]:
    """What the two percentages of fluctuation are, where launches have both or either."""
    told = ["an interval's +-% is half its width / value"] if any(not ranged(s.launches) for s in v.published) else []
    if any(s.launches > 1 for s in v.published):
        told.append(f"'{APART}' is (highest - lowest launch) / value")
    ranges = ", for a range the latter," if any(ranged(s.launches) for s in v.published) else ""
    if told:
        which = f"the former{ranges}" if len(told) > 1 else "it"
        yield f"Fluctuation: {'; '.join(told)}. Chapter 8 warns where {which} is above {100 * FLUCTUATION:.0f} %."


def _sampling(v: View) -> Iterable[str]:
    """Why sampling stopped, and that the looks at it are paid for."""
    reasons = Counter(str(r.method["stop_reason"]) for r in v.records if r.method.get("stop_reason"))
    if reasons:
        told = ", ".join(f"{reason} {n}" for reason, n in reasons.most_common())
        how = "at the target precision of the median, looked for at n = 30, 45, 68, ..., or at a cap"
        paid = "the looks share the error, so that the interval holds"
        yield f"Sampling stops {how}; {paid}. Why it stopped, in records: {told}."


def _checked(v: View) -> Iterable[str]:
    """That data came back right, and when it was looked at."""
    if said := checked.told(v.records):
        yield f"Checked: {said}. A check sees a flipped bit, or it does not count."


def _timer(v: View) -> Iterable[str]:
    """What the clock costs and how finely it counts, at worst."""
    worst = {name: max((x for r in v.records if (x := number(r.method.get(name))) is not None), default=None)
             for name in ("timer_overhead_s", "timer_tick_s")}  # fmt: skip
    overhead_s, tick_s = worst.values()
    if overhead_s is not None and tick_s is not None:
        costs, step = f"reading it costs {1e9 * overhead_s:.0f} ns", f"its least step seen is {1e9 * tick_s:.0f} ns"
        yield f"Timer, measured in each job, at worst: {costs}, {step}. What is too short for it is timed in batches."


def _recorded(v: View) -> Iterable[str]:
    """The method as the records state it: each setting with the benchmarks that it holds for."""
    found: dict[str, dict[str, list[str]]] = {}
    for r in v.records:
        for name, setting in r.method.items():
            if isinstance(setting, str) and setting and name not in ("workload", "stop_reason"):
                found.setdefault(name, {}).setdefault(setting, []).append(r.benchmark)
    for name, settings in found.items():
        if len(settings) <= 4:
            told = [f"{text} ({_used(v, used)})" for text, used in settings.items()]
            yield f"{name.replace('_', ' ')}: {'; '.join(told)}."


def _used(v: View, benchmarks: Iterable[str]) -> str:
    named = dict.fromkeys(benchmarks)
    return "all" if set(named) == {r.benchmark for r in v.records} else ", ".join(named)
