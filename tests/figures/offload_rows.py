"""From a run of offloads to the rows that are printed and the figures that are judged. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import median

from microbench.record import Record
from reports.load import mapping
from reports.modes import BLOCKING, NOT_USED, best_host, fastest, left_out, modes, offloaded, unused
from reports.units import size
from tests.figures.launches import Measured, Values, measured
from tests.figures.table import Row, figure, shown

PROTOTYPES = ("host", "probes16", BLOCKING)  # what a gain is also told against
_DISTURBED = "its calibrated time"  # in the warning of a launch whose compute was


class Case(Measured):
    """One case of an overlap, with all that its modes are judged by."""

    @property
    def name(self) -> str:
        """Operation, size and what is computed, as figures name it."""
        s = self.summary
        operation = s.benchmark.partition("_")[2]
        return ", ".join(filter(None, (f"{operation} {size(s.nbytes)} on {s.fabric}", s.workload)))

    @property
    def best(self) -> str:
        """The fastest mode that DPUs carried in every launch; empty where there is none."""
        there = [mode for mode in modes(self.summary.metrics) if offloaded(mode) and not self.missing(mode)]
        return fastest(self.summary.metrics, there)

    def missing(self, mode: str) -> str:
        """Why there is nothing to judge of a mode, or nothing."""
        if self.summary.status != "ok":
            return f"{self.summary.status}: {self.summary.reason}"
        if why := left_out(self.records).get(mode):
            return f"left out: {why}"
        if any(mode in unused(record.method) for record in self.records):
            return NOT_USED
        return "" if self.values.get(f"{mode}.overall") else "not measured"

    def shares(self, mode: str) -> Values:
        """The exposed time of each launch as a share of the hosts' own pure time."""
        exposed, pure = self.values[f"{mode}.exposed"], self.values["host.pure"]
        return tuple(e / p for e, p in zip(exposed, pure, strict=True))

    def gains(self, mode: str, over: Sequence[str]) -> Values:
        """The net gain of each launch over the fastest of these modes."""
        best = [min(found) for found in zip(*(self.values[f"{host}.overall"] for host in over), strict=True)]
        return tuple(1 - t / b for t, b in zip(self.values[f"{mode}.overall"], best, strict=True))

    @property
    def disturbed(self) -> int:
        """In how many launches other work shared a computing host's core."""
        return sum(any(_DISTURBED in str(w) for w in _warnings(record)) for record in self.records)


def _warnings(record: Record) -> Sequence[object]:
    found = record.method.get("warnings")
    return found if isinstance(found, list | tuple) else ()


def cases(records: Iterable[Record]) -> list[Case]:
    """Every case of a run, in the order of its plan."""
    return [Case(case.summary, case.values, case.records) for case in measured(records)]


def find(known: Sequence[Case], benchmark: str, nbytes: int, workload: str = "") -> Case:
    """The case of a benchmark at a size; ValueError where the run has not just one."""
    wanted = (benchmark, nbytes, workload)
    (found,) = [c for c in known if (c.summary.benchmark, c.summary.nbytes, c.summary.workload) == wanted]
    return found


def rows(known: Iterable[Case]) -> list[Row]:
    """A row for every mode of every case, in base units, medians over launches."""
    return [_row(case, mode) for case in known for mode in modes(case.summary.metrics) if mode != BLOCKING]


def _row(case: Case, mode: str) -> Row:
    names = ("pure", "overall", "post", "wait", "overlap", "exposed", "dilation", "cpu", "net_gain")
    found = {name: case.summary.value(f"{mode}.{name}") for name in names}
    low, high = case.summary.ends(f"{mode}.net_gain") or (None, None)
    return {
        "case": case.name, "mode": mode, "compute": case.summary.value("compute"), **found, "low": low, "high": high,
        "best host": best_host(case.summary.metrics), "n": case.summary.launches, "disturbed": case.disturbed,
    }  # fmt: skip


def at_least(case: Case, mode: str, metric: str, limit: float) -> Row:
    """A median over launches that shall reach ``limit``."""
    return _judged(case, mode, metric, f">= {limit:g}", lambda values: (median(values), median(values) >= limit))


def at_most(case: Case, mode: str, metric: str, limit: float) -> Row:
    """A median over launches that shall not pass ``limit``."""
    return _judged(case, mode, metric, f"<= {limit:g}", lambda values: (median(values), median(values) <= limit))


def _judged(
    case: Case, mode: str, metric: str, target: str, judge: Callable[[Values], tuple[float, bool]], least: int = 1
) -> Row:
    """A metric of a mode; it is missed where the mode is not there."""
    name = f"{case.name}: {mode} {metric.replace('_', ' ')}"
    if why := case.missing(mode):
        return figure(name, target, None, 0, False, why)
    values = case.shares(mode) if metric == "exposed" else case.values.get(f"{mode}.{metric}", ())
    if len(values) < least:
        return figure(name, target, None, 0, False, "no launch has a value")
    got, met = judge(values)
    return figure(name, target, got, len(values), met, "" if met else held_back(case, mode, metric))


def exposed(case: Case, mode: str, aim: float, worst: float) -> list[Row]:
    """Exposed time as a share of the hosts' own pure time: the median of launches, and the worst."""
    of_pure = " of the hosts' pure time"
    middle = at_most(case, mode, "exposed", aim)
    most = _judged(case, mode, "exposed", f"<= {worst:g}", lambda values: (max(values), max(values) <= worst))
    name = str(middle["figure"]) + of_pure
    return [middle | {"figure": name}, most | {"figure": f"{name}, worst launch"}]


def held_back(case: Case, mode: str, metric: str) -> str:
    """What a figure that is missed is made of."""
    if metric == "net_gain":
        told = _ceiling(case)
    else:
        pure = case.middle(f"{mode}.pure")
        parts = [f"{name} {case.middle(f'{mode}.{name}') / pure:.1%} of pure" for name in ("post", "wait")]
        if f"{mode}.dilation" in case.values:
            parts.insert(0, f"dilation {case.middle(f'{mode}.dilation'):.1%}")
        told = ", ".join([*parts, f"pure {pure / case.middle('host.pure'):.2f} of the hosts' own"])
    noise = f"; compute was disturbed in {case.disturbed} of {len(case.records)} launches" if case.disturbed else ""
    return told + noise


def _ceiling(case: Case) -> str:
    """What the best host mode leaves to gain: all but the compute, or the collective where that is longer."""
    best = best_host(case.summary.metrics)
    overall = case.middle(f"{best}.overall")
    floor = max(case.middle("compute"), case.middle("host.pure"))
    hidden = f" hides {case.middle(f'{best}.overlap'):.0%} itself," if f"{best}.overlap" in case.values else ""
    return f"the best host mode, {best},{hidden} so that {1 - floor / overall:.1%} is all there is to gain"


def gain_over(case: Case, mode: str, over: Sequence[str] = PROTOTYPES) -> Row:
    """The net gain over some host modes only, which is shown and not judged."""
    name = f"{case.name}: {mode} net gain over {', '.join(over)} alone"
    if why := case.missing(mode):
        return shown(name, None, 0, why)
    values = case.gains(mode, over)
    return shown(name, median(values), len(values), f"[{min(values):.3f}, {max(values):.3f}]")


def gain_shown(case: Case, mode: str) -> Row:
    """The net gain with its interval, whatever it is."""
    name = f"{case.name}: {mode} net gain"
    if why := case.missing(mode) or _without_gain(case, mode):
        return shown(name, None, 0, why)
    return shown(name, case.middle(f"{mode}.net_gain"), case.summary.launches, _interval(case, mode))


def signed(case: Case, sign: int) -> Row:
    """The net gain of the best offload, whose whole interval shall be above 0 (``sign`` 1) or below it (-1)."""
    mode = case.best
    target = "> 0, and its interval" if sign > 0 else "< 0: a loss, shown as one"
    name = f"{case.name}: {mode or 'offload'} net gain"
    why = f"none was carried by the DPUs: {_reasons(case)}" if not mode else _without_gain(case, mode)
    if why:
        return figure(name, target, None, 0, False, why)
    low, high = case.summary.ends(f"{mode}.net_gain") or (0.0, 0.0)
    met = low > 0 if sign > 0 else high < 0
    told = _interval(case, mode) + ("" if met else f"; {_ceiling(case)}")
    return figure(name, target, case.middle(f"{mode}.net_gain"), case.summary.launches, met, told)


def _reasons(case: Case) -> str:
    """Why each offload is not there."""
    names = [mode for mode in dict.fromkeys([*modes(case.summary.metrics), *left_out(case.records)]) if offloaded(mode)]
    return "; ".join(f"{mode}: {case.missing(mode)}" for mode in names) or case.missing("offload")


def _without_gain(case: Case, mode: str) -> str:
    return "" if f"{mode}.net_gain" in case.values else "no launch has a net gain"


def _interval(case: Case, mode: str) -> str:
    ends = case.summary.ends(f"{mode}.net_gain")
    if ends is None:
        return "no interval"
    side = "gain" if ends[0] > 0 else "LOSS" if ends[1] < 0 else "undecided"
    return f"{side} [{ends[0]:.3f}, {ends[1]:.3f}]"


def idle(case: Case, limit: float) -> Row:
    """The share of a core that the busiest DPU takes while hosts do their collectives themselves."""
    found = [_shares(record) for record in case.records if record.status == "ok"]
    values = [max(shares) for shares in found if shares]
    name = f"{case.name}: idle DPU rank, share of a core (the busiest)"
    if not values:
        return figure(name, f"<= {limit:g}", None, 0, False, "no launch tells it")
    strategies = {str(mapping(record.method.get("waiting")).get("strategy")) for record in case.records}
    return figure(
        name, f"<= {limit:g}", median(values), len(values), median(values) <= limit, f"waiting: {', '.join(strategies)}"
    )


def _shares(record: Record) -> list[float]:
    found = record.method.get("idle_dpu_cpu_share")
    return [float(share) for share in found] if isinstance(found, list | tuple) else []


def losses(known: Iterable[Case], told: int) -> Row:
    """How many modes lose by their interval, of which a report has ``told`` so many."""
    lost = sum(
        (case.summary.ends(f"{mode}.net_gain") or (0.0, 0.0))[1] < 0
        for case in known
        for mode in modes(case.summary.metrics)
        if offloaded(mode) and not case.missing(mode)
    )
    return figure("modes that lose by their interval, and that the report says lose", f"{lost}", told, 1, told == lost)
