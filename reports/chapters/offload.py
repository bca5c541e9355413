"""Chapter 5: how much of a collective hides behind compute, on the host and offloaded to DPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reports import cells, tables
from reports.chapters.system import layout
from reports.marks import marks
from reports.summary import Summary, basis
from reports.units import MS, PERCENT, PLAIN, Unit, count, runs, size, unit_for
from reports.view import OFFLOAD, Chapter, Finding, View, grouped, jobs_of, setup, setup_text

TITLE = "Overlap and DPU offload"
HOST_MODES = ("host", "probes", "blocking")
QUANTITIES: tuple[tuple[str, str, Unit], ...] = (
    ("pure", "pure ms", MS), ("overall", "overall ms", MS), ("overlap", "overlap", PLAIN),
    ("exposed", "exposed ms", MS), ("dilation", "dilation %", PERCENT), ("net_gain", "net gain %", PERCENT),
)  # fmt: skip
HELP = (
    "pure: the collective alone. compute: the work alone. overall: both together. overlap: the part of pure "
    "that hid behind compute, signed and unclipped (above 1: pure was inflated). exposed: overall - compute. "
    "dilation: how much longer the compute took meanwhile. net gain: time saved against the best host mode, "
    "which is what decides: an offload with a slow pure time can overlap well and still lose. Modes: host makes "
    "no MPI call while it computes, probesN makes N calls of MPI_Test, blocking computes after the collective, "
    "the others leave the collective to the DPUs."
)


def chapter(v: View) -> Chapter:
    """The chapter on overlap and offload."""
    names = [b for b in dict.fromkeys(s.benchmark for s in v.summaries) if b.startswith(OFFLOAD)]
    shown = sorted(v.of(*names), key=lambda s: (s.benchmark, s.ranks, s.nbytes or 0, v.order(s.fabric)))
    if not shown:
        return Chapter(5, TITLE, (v.absent(*(names or [OFFLOAD + "allreduce"])),))
    blocks = [tables.prose(HELP), _placements(v, shown)]
    for group in grouped(shown, setup).values():
        blocks += [_overview(v, group), *(block for s in group for block in _case(v, s))]
    return Chapter(5, TITLE, tuple(blocks), tuple(_findings(v, shown)))


def modes(s: Summary) -> list[str]:
    """The modes that a record compares: the prefixes of its metrics' names."""
    return list(dict.fromkeys(name.partition(".")[0] for name in s.metrics if "." in name))


def judged(s: Summary) -> list[str]:
    """The modes that offload, and have a net gain over the host's."""
    return [m for m in modes(s) if not m.startswith(HOST_MODES) and s.value(f"{m}.net_gain") is not None]


def best_host(s: Summary) -> str:
    """The mode without offload that took the least time overall; empty where none was measured."""
    overall = {m: s.value(f"{m}.overall") for m in modes(s) if m.startswith(HOST_MODES)}
    return min((m for m, time in overall.items() if time is not None), key=lambda m: overall[m] or 0.0, default="")


def _placements(v: View, shown: Sequence[Summary]) -> str:
    lines = []
    for s in {(s.fabric, s.placement): s for s in shown}.values():
        mark = "EMULATED, " if s.emulated or s.fabric in v.emulated else ""
        ranks = _who(v, s)
        said = f"Reported: rank {runs(s.reported_ranks)}." if s.reported_ranks else ""
        words = [word for word in s.placement.split() if ":" not in word]  # h0:0 is told by the job, too
        place = f"placement {' '.join(words)}" if words else "placement not named"
        lines.append(tables.bullet(f"{s.fabric} ({mark}{place}): {ranks}. {said}".rstrip()))
    return "What was where\n" + "\n".join(lines)


def _who(v: View, s: Summary) -> str:
    """Ranks, hosts and CPUs from the job that ran the case; from the record where no job says so."""
    for job in jobs_of(v, s.fabric):
        if s.hosts and tuple(job.get("hosts") or ()) == s.hosts and tuple(job.get("roles") or ()) == s.roles:
            return layout(job)
    return layout({"hosts": s.hosts, "roles": s.roles}) or "ranks and hosts not recorded"


def _overview(v: View, group: Sequence[Summary]) -> str:
    rows: list[list[str]] = []
    counts = cells.launch_counts((s, f"{mode}.net_gain") for s in group for mode in judged(s))
    mixed = len(counts) > 1
    for s in group:
        host = best_host(s)
        for mode in judged(s) or [""]:
            sized = size(s.nbytes)
            rows.append(["" if any(sized in row for row in rows) else sized, s.fabric, cells.value("compute", MS)(s),
                         f"{host} {cells.value(f'{host}.overall', MS)(s)}" if host else "-",
                         f"{mode} {cells.value(f'{mode}.overall', MS)(s)}" if mode else "-",
                         cells.value(f"{mode}.overlap", PLAIN)(s),
                         cells.together(f"{mode}.net_gain", PERCENT, mixed)(s), marks(v, s)])  # fmt: skip
    heads = ["size", "fabric", "compute ms", "best host ms", "offload ms", "overlap", "net gain %", "notes"]
    drawn = tables.table(heads, rows, ["right", "left", *["right"] * 5, "left"])
    title = f"{group[0].benchmark}, at a glance (all intervals and n below): {setup_text(group[0])}"
    return tables.prose(title + (f". Intervals: {cells.based(counts)}" if counts else "")) + "\n\n" + drawn


def _case(v: View, s: Summary) -> list[str]:
    """Mode by mode, with intervals."""
    columns = []
    launches = cells.launch_counts((s, name) for name in s.metrics)
    mixed = len(launches) > 1
    for mode in modes(s):
        told = {label: cells.together(f"{mode}.{name}", unit, mixed)(s) for name, label, unit in _quantities(v, s)}
        counts = dict.fromkeys(cells.samples(name)(s) for name in s.metrics if name.startswith(f"{mode}."))
        differ = cells.apart(f"{mode}.overall")(s)
        columns.append((mode, told | ({cells.APART: differ} if differ else {}) | {"n": ", ".join(counts)}))
    compute = f", compute {cells.told(s, 'compute', MS)}" if "compute" in s.metrics else ""
    what = cells.based(launches or [s.launches])
    noted = marks(v, s)
    heading = f"{size(s.nbytes)} on {s.fabric}{f' ({noted})' if noted else ''}{compute}; intervals: {what}"
    return [tables.prose(heading) + "\n\n" + "\n\n".join(tables.side_by_side(columns, at_once=4))]


def _quantities(v: View, s: Summary) -> list[tuple[str, str, Unit]]:
    """What the modes of a case are compared in: the quantities known here, then any other."""
    there = {name.partition(".")[2]: metric.unit for name, metric in s.metrics.items() if "." in name}
    known = [q for q in QUANTITIES if q[0] in there]
    unknown = {name: base for name, base in there.items() if name not in {q[0] for q in QUANTITIES}}
    others = [(name, unit_for(base, v.byte_rate)) for name, base in unknown.items()]
    return [*known, *((name, f"{name} {unit.name}", unit) for name, unit in others)]


def _findings(v: View, shown: Sequence[Summary]) -> Iterator[Finding]:
    """One sentence: where offload gains, where it loses, and where nothing can be told."""
    sides: dict[str, list[tuple[Summary, str]]] = {"gains": [], "loses": [], "undecided": []}
    for s in shown:
        for mode in judged(s):
            sides[_side(s, f"{mode}.net_gain")].append((s, mode))
    total = sum(map(len, sides.values()))
    if not total:
        return
    told = [f"{name} in {len(found)}" for name, found in sides.items() if found]
    best = max((pair for found in sides.values() for pair in found),
               key=lambda p: p[0].value(f"{p[1]}.net_gain") or 0.0)  # fmt: skip
    s, mode = best
    gain, mark = f"{mode}.net_gain", "EMULATED DPUs: " if s.emulated or s.fabric in v.emulated else ""
    spread = s.spread[gain].launches
    text = (
        f"{mark}of {count(total, 'case')} offload {', '.join(told)}; best {mode} at {size(s.nbytes)} on "
        f"{s.fabric}, net gain {cells.with_unit(s, gain, PERCENT)} against the best host mode ("
        f"{basis(spread)}, n {cells.samples(gain)(s)})."
    )
    values = {name: len(found) for name, found in sides.items()}
    yield Finding(5, text, values | {"best": s.id, "mode": mode, "net_gain": s.value(gain)})


def _side(s: Summary, name: str) -> str:
    ends = s.ends(name)
    if ends is None:
        return "undecided"
    return "gains" if ends[0] > 0 else "loses" if ends[1] < 0 else "undecided"
