"""Results of ``fabricbench bench`` that have no one time: modes beside each other, or a metric a line."""

from __future__ import annotations

from tabulate import tabulate

from microbench.record import Metric, Record
from reports.exchanges import NOOP
from reports.load import mapping, mappings
from reports.modes import BLOCKING, NOT_USED, modes, unused
from reports.units import GBIT_PER_S, MS, NS_PER_BYTE, PER_S, PERCENT, PLAIN, Unit, size, unit_for

_COLUMNS: tuple[tuple[str, str, Unit], ...] = (
    ("pure", "pure ms", MS), ("overall", "overall ms", MS), ("overlap", "overlap", PLAIN),
    ("exposed", "exposed ms", MS), ("dilation", "dilation %", PERCENT), ("net_gain", "net gain %", PERCENT),
)  # fmt: skip
_PAYLOADS = ("bandwidth",)
_COSTS: tuple[tuple[str, str, Unit], ...] = (
    ("step", "step ms", MS), ("exposed", "exposed ms", MS), ("exposed_fraction", "exposed %", PERCENT),
    ("images_per_s", "images/s", PER_S), ("efficiency", "efficiency %", PERCENT),
)  # fmt: skip
_PARTS: tuple[tuple[str, str, Unit], ...] = (
    ("data", "data ms", MS), ("forward", "forward ms", MS), ("backward", "backward ms", MS),
    ("optimizer", "optimizer ms", MS), ("dilation", "dilation %", PERCENT),
    ("cpu_per_byte", "CPU ns/byte", NS_PER_BYTE), ("imbalance", "imbalance %", PERCENT),
)  # fmt: skip


def lines(record: Record, byte_rate: Unit) -> list[str]:
    """What is printed of a record that has no time of its own."""
    if record.status != "ok":
        return [f"{size(record.nbytes)} {record.status}: {record.reason}"]
    if "step_noop" in record.metrics:
        return _trained(record)
    return _compared(record) if modes(record.metrics) and "compute" in record.metrics else _listed(record, byte_rate)


def _compared(record: Record) -> list[str]:
    """A mode a line; the net gain, by which an offload is judged, with its interval."""
    found, idle = record.metrics, unused(record.method)
    there = [column for column in _COLUMNS if any(f"{mode}.{column[0]}" in found for mode in modes(found))]
    judged = any(name == "net_gain" for name, _, _ in there)
    rows = []
    for mode in modes(found):
        cells = [_text(found.get(f"{mode}.{name}"), unit) for name, _, unit in there]
        gain = NOT_USED if mode in idle else _interval(found.get(f"{mode}.net_gain"), PERCENT)
        rows.append([mode, *cells, *([gain] if judged else [])])
    heads = ["mode", *(head for _, head, _ in there), *(["95 %"] if judged else [])]
    align = ["left", *["right"] * len(there), *(["left"] if judged else [])]
    drawn = tabulate(rows, heads, tablefmt="plain", disable_numparse=True, colalign=align)
    what = f", {record.workload}" if record.workload else ""
    compute = found["compute"]
    first = f"# {size(record.nbytes)}{what}: compute {_text(compute, MS)} ms, n {compute.n}"
    left_out = [f"# left out: {mode}: {why}" for mode, why in mapping(record.method.get("left_out")).items()]
    said = [f"# net gain: against the best of the hosts' modes, of which {BLOCKING} computes after the collective"]
    return [first, *drawn.splitlines(), *left_out, *_warned(record), *(said if judged else [])]


def _trained(record: Record) -> list[str]:
    """An exchange a line, twice: what a step costs by it, with intervals, and what it is made of."""
    found = record.metrics
    exchanges = [mode for mode in dict.fromkeys(name.rpartition(".")[0] for name in found) if mode not in ("", NOOP)]
    costs, parts = [], []
    for mode in exchanges:
        own = {name: found.get(f"{mode}.{name}") for name, *_ in (*_COSTS, *_PARTS)}
        cells = [[_text(own[name], unit), _interval(own[name], unit)] for name, _, unit in _COSTS[:2]]
        costs.append([mode, *cells[0], *cells[1], *(_text(own[name], unit) for name, _, unit in _COSTS[2:])])
        parts.append([mode, *(_text(own[name], unit) for name, _, unit in _PARTS)])
    parts.append([NOOP, *(_text(found.get(f"{NOOP}.{name}"), unit) for name, _, unit in _PARTS)])
    heads = [part for _, head, _ in _COSTS[:2] for part in (head, "95 %")] + [head for _, head, _ in _COSTS[2:]]
    left, right = "left", "right"
    tables = [
        tabulate(rows, ["exchange", *names], tablefmt="plain", disable_numparse=True, colalign=align)
        for rows, names, align in (
            (costs, heads, [left, right, left, right, left, *[right] * len(_COSTS[2:])]),
            (parts, [head for _, head, _ in _PARTS], [left, *[right] * len(_PARTS)]),
        )
    ]
    step, alone = (_text(found.get(name), MS) for name in ("step_noop", "step_alone"))
    first = f"# {record.workload}: a step without an exchange {step} ms, one rank alone {alone} ms"
    rounds = f"# {found['step_noop'].n} rounds of steps; exposed: over the step without an exchange of the same round"
    return [first, rounds, *(line for table in tables for line in table.splitlines()), *_warned(record)]


def _warned(record: Record) -> list[str]:
    return [f"# {text}" for text in record.method.get("warnings") or ()]


def _listed(record: Record, byte_rate: Unit) -> list[str]:
    rows = []
    for name, metric in record.metrics.items():
        unit = unit_for(metric.unit, byte_rate)
        unit = GBIT_PER_S if metric.unit == "bytes/s" and name.rpartition(".")[2] in _PAYLOADS else unit
        rows.append([name, _text(metric, unit), "" if metric.value is None else unit.name, _interval(metric, unit)])
    drawn = tabulate(rows, ["metric", "value", "unit", "95 %"], tablefmt="plain", disable_numparse=True,
                     colalign=["left", "right", "left", "left"])  # fmt: skip
    emulation = record.method.get("emulation")
    found = [str(each["words"]) for each in mappings(record.method.get("findings")) if each.get("words")]
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
    return f"[{unit.text(metric.low, like=metric.value)}, {unit.text(metric.high, like=metric.value)}]"
