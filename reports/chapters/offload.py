"""Chapter 5: what the DPUs are, and how much of a collective hides behind compute, on hosts and offloaded to DPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reports import cells, tables
from reports.chapters import dpu, offload_findings, offload_modes
from reports.chapters.system import layout
from reports.claims import DPUS, NOT_JUDGED, NOTHING, Trial
from reports.load import mapping
from reports.marks import marks
from reports.modes import BLOCKING, NOT_USED, OVERLAP_LEGEND, best_host, fastest, modes, offloaded
from reports.summary import Summary
from reports.units import MS, PERCENT, PLAIN, runs, size
from reports.view import OFFLOAD, OVERLAP, Chapter, View, grouped, jobs_of, setup, setup_text

TITLE = "Overlap and DPU offload"
USUAL = "compute as long as the collective"
HELP = (
    "pure: the collective alone. compute: the work alone, from a process that nothing helps. overall: both together; "
    "post and wait are what of it the host spends in starting and in finishing the collective. overlap: "
    f"{OVERLAP_LEGEND}. exposed: overall - compute. "
    "availability: 1 - exposed / pure. dilation: how much longer the compute took meanwhile. cpu: the host's processor "
    "time for one collective. net gain: time saved against the best host mode, which is what decides: an offload with "
    "a slow pure time can overlap well and still lose. At most so much can be gained: 1 - compute / best host mode. "
    "disturbed: the compute alone was slowed by something else, so that nothing is decided; weak baseline: host "
    "without or with probes was not measured, so that no gain is claimed.",
    "Modes: host makes no MPI call while it computes, probesN makes N calls of MPI_Test, thread has MPI's progress "
    "thread, gloo has its own, blocking computes after the collective. The others leave the collective to the DPUs: "
    "staged sends the data to them and back, rma lets them read and write the host's memory by MPI, window by memory "
    "that both share, which is a model of cross-memory access, since emulated DPUs and hosts are one machine.",
)


def chapter(v: View) -> Chapter:
    """The chapter on DPUs, overlap and offload."""
    names = [b for b in dict.fromkeys(s.benchmark for s in v.summaries) if b.startswith((OFFLOAD, OVERLAP))]
    shown = sorted(v.of(*names), key=lambda s: (_rank(s.benchmark), s.ranks, s.nbytes or 0, v.order(s.fabric)))
    known = dpu.blocks(v)
    if not shown:
        return Chapter(5, TITLE, (*known, v.absent(*(names or [OFFLOAD + "allreduce"]))), tuple(dpu.findings(v)))
    blocks = [*known, *map(tables.prose, HELP), _placements(v, shown)]
    for group in grouped(shown, _operation).values():
        blocks += [_overview(v, group), *(offload_modes.block(v, s) for s in group)]
    return Chapter(5, TITLE, tuple(blocks), (*dpu.findings(v), *offload_findings.findings(v, shown)))


def _rank(benchmark: str) -> tuple[bool, bool, str]:
    """What is offloaded first, and allreduce before other operations."""
    return benchmark.startswith(OVERLAP), not benchmark.endswith("_allreduce"), benchmark


def _operation(s: Summary) -> tuple[str | int, ...]:
    """All that lines of one table share: what was computed beside the collective may differ."""
    return setup(replace(s, workload=""))


def _placements(v: View, shown: Sequence[Summary]) -> str:
    lines = []
    for s in {(s.fabric, s.placement): s for s in shown}.values():
        mark = "EMULATED, " if s.emulated or s.fabric in v.emulated else ""
        ranks = _who(v, s)
        words = [word for word in s.placement.split() if ":" not in word]  # h0:0 is told by the job, too
        place = f"placement {' '.join(words)}" if words else "placement not named"
        told = " ".join([f"{s.fabric} ({mark}{place}): {ranks}.", *_parts(s)])
        lines.append(tables.bullet(told))
    return "What was where\n" + "\n".join(lines)


def _parts(s: Summary) -> list[str]:
    """Which ranks compute and which are reported, where the record says."""
    computing = s.method.get("computing_ranks")
    known = [rank for rank in computing if isinstance(rank, int)] if isinstance(computing, list | tuple) else []
    told = [f"Computing: {_ranks(known) if known else 'none'}."] if isinstance(computing, list | tuple) else []
    told += [f"Reported: {_ranks(s.reported_ranks)}."] if s.reported_ranks else []
    waiting = mapping(s.method.get("waiting"))
    why = f" ({waiting['why']})" if waiting.get("why") else ""
    return told + ([f"Waiting: {waiting['strategy']}{why}."] if waiting.get("strategy") else [])


def _ranks(ranks: Sequence[int]) -> str:
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {runs(ranks)}"


def _who(v: View, s: Summary) -> str:
    """Ranks, hosts and CPUs from the job that ran the case; from the record where no job says so."""
    mine = [
        job
        for job in jobs_of(v, s.fabric)
        if s.hosts and tuple(job.get("hosts") or ()) == s.hosts and tuple(job.get("roles") or ()) == s.roles
    ]
    for job in [job for job in mine if _bound(job.get("hosts"), job.get("cpus")) in s.placement] or mine:
        return layout(job)
    return layout({"hosts": s.hosts, "roles": s.roles}) or "ranks and hosts not recorded"


def _bound(hosts: object, cpus: object) -> str:
    """Hosts and processors as a record's placement has them: ``h0:0 h1:1``."""
    if not isinstance(hosts, list | tuple) or not isinstance(cpus, list | tuple):
        return "?"
    return " ".join(f"{host}:{','.join(map(str, own))}" for host, own in zip(hosts, cpus, strict=False))


def _overview(v: View, group: Sequence[Summary]) -> str:
    """The best host mode and the best offload of every case, by what is computed beside the collective."""
    chosen = [(s, _best_offload(v, s)) for s in group]
    counts = cells.launch_counts((s, f"{mode}.net_gain") for s, mode in chosen)
    title = f"{group[0].benchmark}, at a glance (all intervals and n below): {setup_text(group[0])}"
    by_workload = grouped(chosen, lambda pair: pair[0].workload)
    rows = [row for same in by_workload.values() for row in _rows(v, same, len(counts) > 1)]
    heads = ["size", "fabric", "best host ms", "best offload ms", "overlap", "exposed\nms", "net gain %", "notes"]
    lines = tables.table(heads, rows, ["right", "left", *["right"] * 5, "left"]).splitlines()
    head, body = lines[: -len(rows)], lines[-len(rows) :]
    for workload, same in by_workload.items():
        head += [f"{workload or USUAL}:"] if len(by_workload) > 1 or workload else []
        head, body = head + body[: len(same)], body[len(same) :]
    return tables.prose(title + (f". Intervals: {cells.based(counts)}" if counts else "")) + "\n\n" + "\n".join(head)


def _rows(v: View, chosen: Sequence[tuple[Summary, str]], mixed: bool) -> list[list[str]]:
    """A case a line; each size is named once."""
    rows: list[list[str]] = []
    for s, mode in chosen:
        host, sized = best_host(s.metrics), size(s.nbytes)
        best = f"{host} {cells.value(f'{host}.overall', MS)(s)}" if host else "-"
        first = "" if any(sized in row for row in rows) else sized
        doubt = Trial.of(v, s).claim(mode).mark if mode else ""
        noted = ", ".join(filter(None, (marks(v, s), doubt)))
        rows.append([first, s.fabric, best, *_offload_cells(v, s, mode, mixed), noted])
    return rows


def _best_offload(v: View, s: Summary) -> str:
    """The fastest mode that the DPUs carried in every launch; empty where there is none."""
    trial = Trial.of(v, s)
    return fastest(s.metrics, [m for m in modes(s.metrics) if offloaded(m) and trial.carrier(m) == DPUS])


def _offload_cells(v: View, s: Summary, mode: str, mixed: bool) -> list[str]:
    """The best offload with its overlap, exposed time and net gain; of hosts alone the best of these modes' own."""
    trial = Trial.of(v, s)
    if mode and trial.claim(mode).side == NOT_JUDGED:
        return [f"{mode} {cells.value(f'{mode}.overall', MS)(s)}", *_hidden(s, mode), NOT_JUDGED]
    if mode:
        return [f"{mode} {cells.value(f'{mode}.overall', MS)(s)}", *_hidden(s, mode),
                cells.together(f"{mode}.net_gain", PERCENT, mixed)(s)]  # fmt: skip
    if offloads := [m for m in modes(s.metrics) if offloaded(m)]:
        return [NOTHING if any(map(trial.empty, offloads)) else NOT_USED, "-", "-", "-"]
    none = "-" if s.benchmark.startswith(OFFLOAD) else ""
    host = best_host(s.metrics)
    return [none, *_hidden(s, host if host != BLOCKING else ""), none]


def _hidden(s: Summary, mode: str) -> list[str]:
    return [cells.value(f"{mode}.overlap", PLAIN)(s), cells.value(f"{mode}.exposed", MS)(s)]
