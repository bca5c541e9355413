"""Results of ``fabricbench bench`` that have no one time: modes beside each other, or a metric a line."""

from __future__ import annotations

from tabulate import tabulate

from microbench.record import Metric, Record
from reports.claims import NOT_JUDGED, Trial, not_dpus
from reports.exchanges import NOOP
from reports.load import mapping, mappings
from reports.modes import BLOCKING, modes, offloaded
from reports.units import GBIT_PER_S, MS, NS_PER_BYTE, PER_S, PERCENT, PLAIN, Unit, count, size, unit_for
from suite import benchcfd, flows

_COLUMNS: tuple[tuple[str, str, Unit], ...] = (
    ("pure", "pure ms", MS), ("overall", "overall ms", MS), ("overlap", "overlap", PLAIN),
    ("exposed", "exposed ms", MS), ("dilation", "dilation %", PERCENT), ("net_gain", "net gain %", PERCENT),
)  # fmt: skip
_RANGED = ("overlap", "net_gain")  # the columns that have their intervals beside them
_REASONED = ("overlap", "dilation")  # of the others' reasons these, or the verdict, tell all
_LONG = 30  # what a column has no room for stands below the table
_PAYLOADS = ("bandwidth",)
_MADE_UP = "synthetic"
_COSTS: tuple[tuple[str, str, Unit], ...] = (
    ("step", "step ms", MS), ("exposed", "exposed ms", MS), ("exposed_fraction", "exposed %", PERCENT),
    ("images_per_s", "images/s", PER_S), ("efficiency", "efficiency %", PERCENT),
)  # fmt: skip
_RANGED_COSTS = ("step", "exposed", "efficiency")
_PARTS: tuple[tuple[str, str, Unit], ...] = (
    ("data", "data ms", MS), ("forward", "forward ms", MS), ("backward", "backward ms", MS),
    ("optimizer", "optimizer ms", MS), ("dilation", "dilation %", PERCENT),
    ("cpu_per_byte", "CPU ns/byte", NS_PER_BYTE), ("imbalance", "imbalance %", PERCENT),
)  # fmt: skip


def lines(record: Record, byte_rate: Unit) -> list[str]:
    """What is printed of a record that has no time of its own."""
    if record.benchmark == flows.KIND:
        return benchcfd.lines(record)
    if record.status != "ok":
        of = "" if record.nbytes is None else f"{size(record.nbytes)} "
        return [f"{of}{record.status}: {record.reason}"]
    if "step_noop" in record.metrics:
        return _trained(record)
    return _compared(record) if modes(record.metrics) and "compute" in record.metrics else _listed(record, byte_rate)


def _compared(record: Record) -> list[str]:
    """A mode a line, overlap and net gain with their intervals; then what is claimed of them."""
    found = record.metrics
    there = [column for column in _COLUMNS if any(f"{mode}.{column[0]}" in found for mode in modes(found))]
    heads, align = ["mode"], ["left"]
    for name, head, _ in there:
        heads += [head, *(["95 %"] if name in _RANGED else [])]
        align += ["right", *(["left"] if name in _RANGED else [])]
    rows = [[mode, *(cell for name, _, unit in there for cell in _cells(record, mode, name, unit))]
            for mode in modes(found)]  # fmt: skip
    drawn = tabulate(rows, heads, tablefmt="plain", disable_numparse=True, colalign=align)
    what = f", {record.workload}" if record.workload else ""
    compute = found["compute"]
    first = f"# {size(record.nbytes)}{what}: compute {_text(compute, MS)} ms, n {compute.n}"
    return [first, *(line.rstrip() for line in drawn.splitlines()), *_explained(record)]


def _cells(record: Record, mode: str, name: str, unit: Unit) -> list[str]:
    metric = record.metrics.get(f"{mode}.{name}")
    if name not in _RANGED:
        return [_text(metric, unit)]
    if name == "net_gain" and offloaded(mode) and (claim := Trial.of_record(record).claim(mode)).side == NOT_JUDGED:
        return ["n/a", claim.mark]
    inside = _interval(metric, unit)
    return [_text(metric, unit), inside if len(inside) <= _LONG else ""]


def _explained(record: Record) -> list[str]:
    """Why there is no value, what a net gain is against, and on which side an offload is."""
    found, trial = record.metrics, Trial.of_record(record)
    offloads = [mode for mode in modes(found) if offloaded(mode)]
    known = ((mode, name, found.get(f"{mode}.{name}")) for mode in modes(found) for name in _REASONED)
    told = [f"{mode}: {name} {metric.note}" for mode, name, metric in known if metric and metric.value is None]
    told += [f"left out: {mode}: {why}" for mode, why in mapping(record.method.get("left_out")).items()]
    told += _warnings(record)
    claims = {mode: trial.claim(mode) for mode in offloads}
    if any(claim.side != NOT_JUDGED for claim in claims.values()):
        most = "" if trial.ceiling is None else f"; at most {PERCENT.text(trial.ceiling)} %"
        told.append(f"net gain: {trial.baseline}{most}; {BLOCKING} computes after the collective")
    told += [f"{mode}: {claim.side}{f': {claim.why}' if claim.why else ''}" for mode, claim in claims.items()]
    return [f"# {text}" for text in told]


def _trained(record: Record) -> list[str]:
    """An exchange a line, twice: what a step costs by it, with intervals, and what it is made of."""
    found = record.metrics
    exchanges = [mode for mode in dict.fromkeys(name.rpartition(".")[0] for name in found) if mode not in ("", NOOP)]
    heads, align, costs = ["exchange"], ["left"], [[mode] for mode in exchanges]
    for name, head, unit in _COSTS:
        ranged = name in _RANGED_COSTS
        heads += [head, *(["95 %"] if ranged else [])]
        align += ["right", *(["left"] if ranged else [])]
        for row in costs:
            metric = found.get(f"{row[0]}.{name}")
            row.extend([_text(metric, unit), *([_interval(metric, unit)] if ranged else [])])
    parts = [[mode, *(_text(found.get(f"{mode}.{name}"), unit) for name, _, unit in _PARTS)]
             for mode in (*exchanges, NOOP)]  # fmt: skip
    own = ["exchange", *(head for _, head, _ in _PARTS)]
    tables = [
        tabulate(rows, names, tablefmt="plain", disable_numparse=True, colalign=sides)
        for rows, names, sides in ((costs, heads, align), (parts, own, ["left", *["right"] * len(_PARTS)]))
    ]
    drawn = [line.rstrip() for table in tables for line in table.splitlines()]
    return [*_conditions(record), *drawn, *_warned(record)]


def _conditions(record: Record) -> list[str]:
    """The base of what is compared, how many steps there are of it, and by how many threads a rank computes."""
    found, threads = record.metrics, record.method.get("threads")
    step, alone = (_text(found.get(name), MS) for name in ("step_noop", "step_alone"))
    counted = f" (n {found['step_alone'].n})" if "step_alone" in found else ""
    first = f"{record.workload}: a step without an exchange {step} ms, one rank alone {alone} ms{counted}"
    loads = record.method.get("augment") or record.method.get("data") not in (None, _MADE_UP)
    told = [f"{found['step_noop'].n} rounds of steps", *([count(threads, "thread") + " a rank"] if threads else [])]
    return [
        f"# {first}",
        f"# {', '.join(told)}; exposed: over the step without an exchange of the same round",
        *(["# a step begins once images are there: data is beside it, and counts in images/s"] if loads else []),
    ]


def _warned(record: Record) -> list[str]:
    return [f"# {text}" for text in _warnings(record)]


def _warnings(record: Record) -> list[str]:
    return [str(text) for text in record.method.get("warnings") or ()]


def _listed(record: Record, byte_rate: Unit) -> list[str]:
    rows = []
    for name, metric in record.metrics.items():
        unit = unit_for(metric.unit, byte_rate)
        unit = GBIT_PER_S if metric.unit == "bytes/s" and name.rpartition(".")[2] in _PAYLOADS else unit
        rows.append([name, _text(metric, unit), "" if metric.value is None else unit.name, _interval(metric, unit)])
    drawn = tabulate(rows, ["metric", "value", "unit", "95 %"], tablefmt="plain", disable_numparse=True,
                     colalign=["left", "right", "left", "left"])  # fmt: skip
    emulation = record.method.get("emulation")
    hides = [] if not_dpus([record]) else mappings(record.method.get("findings"))
    found = [str(each["words"]) for each in hides if each.get("words")]
    return [*([f"# {emulation}"] if emulation else []), *drawn.splitlines(), *(f"# {text}" for text in found),
            *_warned(record)]  # fmt: skip


def _text(metric: Metric | None, unit: Unit) -> str:
    if metric is None:
        return "-"
    return "n/a" if metric.value is None else unit.text(metric.value)


def _interval(metric: Metric | None, unit: Unit) -> str:
    if metric is None:
        return ""
    if metric.value is None or metric.low is None or metric.high is None:
        return metric.note
    return unit.inside(metric.low, metric.high, like=metric.value)
