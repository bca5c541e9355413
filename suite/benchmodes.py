"""Results of ``fabricbench bench`` that have no one time: modes beside each other, or a metric a line."""

from __future__ import annotations

from tabulate import tabulate

from microbench.record import Metric, Record
from reports.load import mapping, mappings
from reports.modes import BLOCKING, NOT_USED, modes, unused
from reports.units import GBIT_PER_S, MS, PERCENT, PLAIN, Unit, size, unit_for
from suite import benchcfd, flows

_COLUMNS: tuple[tuple[str, str, Unit], ...] = (
    ("pure", "pure ms", MS), ("overall", "overall ms", MS), ("overlap", "overlap", PLAIN),
    ("exposed", "exposed ms", MS), ("dilation", "dilation %", PERCENT), ("net_gain", "net gain %", PERCENT),
)  # fmt: skip
_PAYLOADS = ("bandwidth",)


def lines(record: Record, byte_rate: Unit) -> list[str]:
    """What is printed of a record that has no time of its own."""
    if record.benchmark == flows.KIND:
        return benchcfd.lines(record)
    if record.status != "ok":
        return [f"{size(record.nbytes)} {record.status}: {record.reason}"]
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
