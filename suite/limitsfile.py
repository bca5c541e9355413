"""Limits files: what numbers must hold, as TOML. The profiles are such files themselves, in ``suite/limits``.

Every ``[[criterion]]`` is one limit on one metric of what it selects. Whatever cannot be meant is an error that names
the file, the line and what is allowed: a gate that quietly judges something else is worse than none.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn

from fabrics import textfile
from fabrics.errors import UserError
from reports.limits import quantities
from reports.limits.model import LINE_RATE, REFERENCES, Criterion, Limits, Range, Selector
from suite.limitsvalues import READERS, SELECTED
from suite.tomllines import Lines

PROFILES = ("lan-10g", "hpc-100g", "lab")
SMALLEST_RATED = 4096
"""Bytes. The rate of smaller messages is their latency in disguise: a limit on a rate would fail them all."""

_RATES = ("bandwidth", "busbw")
_TOP = ("judge", "baseline", "criterion")


@dataclass(frozen=True)
class _Entry:
    """A criterion as it is written, and where."""

    file: str
    lines: Lines
    number: int
    values: Mapping[str, Any]

    def refuse(self, key: str | None, why: str) -> NoReturn:
        """Raise UserError that names the line of ``key``, or that of the criterion."""
        told = f"{key} = {self.values[key]!r}: " if key is not None and key in self.values else ""
        raise UserError(f"limits {self.file} line {self.lines.of(self.number, key)}: {told}{why}")


def read_limits(name: str, benchmarks: Collection[str]) -> Limits:
    """A profile by its name, or the limits in a file; ``benchmarks`` are those there are."""
    if name in PROFILES:
        text = resources.files("suite").joinpath("limits", f"{name}.toml").read_text("utf-8")
        return parse(text, name, benchmarks)
    path = Path(name)
    if not path.suffix and not path.exists():
        raise UserError(f"--limits {name}: neither a file nor one of the profiles {', '.join(PROFILES)}")
    limits = parse(textfile.read(path, "limits"), name, benchmarks)
    beside = str(path.parent / limits.baseline) if limits.baseline else ""
    return Limits(limits.name, limits.criteria, beside)


def parse(text: str, file: str, benchmarks: Collection[str]) -> Limits:
    """Parse limits strictly; UserError names file, line and what is allowed."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"limits {file}: {error}") from None
    tables = data.get("criterion", [])
    lines = Lines.read(text, "criterion")
    for key in data:
        if key not in _TOP:
            raise UserError(f"limits {file} line {lines.top(key)}: there is no {key!r}: allowed are {', '.join(_TOP)}")
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        raise UserError(f"limits {file} judge nothing: add a [[criterion]]")
    common = {key: data[key] for key in ("judge", "baseline") if key in data}
    for key, value in common.items():
        _read(key, value, f"limits {file} line {lines.top(key)}: ")
    shared = frozenset(_read("judge", common.get("judge", []), ""))
    entries = [_Entry(file, lines, number, table) for number, table in enumerate(tables)]
    criteria = tuple(_criterion(entry, shared, benchmarks) for entry in entries)
    _names_differ(entries, criteria)
    return Limits(file, criteria, str(common.get("baseline", "")))


def _read(key: str, value: Any, where: str) -> Any:
    reader, takes = READERS[key]
    try:
        return reader(value)
    except (ValueError, TypeError):
        raise UserError(f"{where}{key} = {value!r}: {key} takes {takes}") from None
    except UserError as error:
        raise UserError(f"{where}{key} = {value!r}: {error}") from None


def _criterion(entry: _Entry, shared: frozenset[str], benchmarks: Collection[str]) -> Criterion:
    for key in entry.values:
        if key not in READERS or key == "baseline":
            entry.refuse(key, f"there is no such key: allowed are {', '.join(k for k in READERS if k != 'baseline')}")
    at = {key: f"limits {entry.file} line {entry.lines.of(entry.number, key)}: " for key in entry.values}
    values = {key: _read(key, value, at[key]) for key, value in entry.values.items()}
    for key in ("metric", "benchmark"):
        if key not in values:
            entry.refuse(None, f"a criterion says its {key}")
    for name in values["benchmark"]:
        if name not in benchmarks:
            entry.refuse("benchmark", f"unknown benchmark {name!r}: one of {', '.join(sorted(benchmarks))}")
    metric = _metric(entry, values)
    base = _base(entry, values, metric)
    lower, upper = _bounds(entry, values, base)
    selector = Selector({key: values[key] for key in SELECTED if key in values}, values.get("sizes", ()),
                        values.get("ranks", ()))  # fmt: skip
    _no_rate_of_small_messages(entry, values, metric)
    reference = values.get("reference")
    return Criterion(
        values.get("name") or _name(values, metric), metric, selector, lower, upper,
        _scaled(reference, values) if isinstance(reference, float) else reference, values.get("unit", ""),
        values.get("warn", 0.0), frozenset(values["judge"]) if "judge" in values else shared,
        entry.lines.of(entry.number, None),
    )  # fmt: skip


def _metric(entry: _Entry, values: Mapping[str, Any]) -> str:
    """The metric's name, with its percentile."""
    metric: str = values["metric"]
    if quantities.base_unit(metric) is None:
        entry.refuse("metric", f"unknown metric: one of {', '.join(quantities.names())}, or MODE.NAME")
    if "percentile" not in values:
        return metric
    found = quantities.percentile_name(metric, values["percentile"])
    if found is None:
        entry.refuse("percentile", f"there are percentiles of time and step, not of {metric}")
    return found


def _base(entry: _Entry, values: Mapping[str, Any], metric: str) -> str:
    """The metric's base unit, once unit and reference agree with it."""
    base, reference = quantities.base_unit(metric) or "", values.get("reference")
    if isinstance(reference, str):
        if "unit" in values:
            entry.refuse("unit", f"lower and upper are parts of the {reference}, which have no unit: leave it out")
        if reference == LINE_RATE and base not in (quantities.RATE, quantities.ANY):
            entry.refuse("reference", f"unit mismatch: {metric} is in {base}, and a line rate in bytes/s")
        return base
    if "unit" not in values:
        words = ", ".join(f'"{word}"' for word in REFERENCES)
        entry.refuse(None, f"a unit is missing: say in which unit the limit on {metric} is, or a reference of {words}")
    means = quantities.UNITS[values["unit"]][0]
    if base not in (means, quantities.ANY):
        entry.refuse("unit", f"unit mismatch: {metric} is in {base}, not in {means}")
    return means


def _bounds(entry: _Entry, values: Mapping[str, Any], base: str) -> tuple[float | None, float | None]:
    """Lower and upper, in base units or parts of the reference."""
    lower, upper = values.get("lower"), values.get("upper")
    if lower is None and upper is None:
        entry.refuse(None, "it limits nothing: give lower, upper or both")
    if lower is not None and upper is not None and lower > upper:
        entry.refuse("lower", f"it is above upper = {upper:g}: nothing could pass")
    if "reference" not in values:
        return _scaled(lower, values), _scaled(upper, values)
    for key, part in (("lower", lower), ("upper", upper)):
        if part is not None and part < 0:
            entry.refuse(key, "with a reference it is a part of that: 30 % less is 0.7")
    return lower, upper


def _scaled(value: float | None, values: Mapping[str, Any]) -> float | None:
    return None if value is None else value * quantities.UNITS[values["unit"]][1]


def _no_rate_of_small_messages(entry: _Entry, values: Mapping[str, Any], metric: str) -> None:
    """A rate is limited at stated sizes only; a baseline or a population has a number of its own at each size."""
    absolute = values.get("reference") in (None, LINE_RATE) or isinstance(values.get("reference"), float)
    if metric not in _RATES or values.get("lower") is None or not absolute:
        return
    why = f'a lower limit on {metric} would judge {{}} messages too: say sizes from {SMALLEST_RATED} B on, as in "1M:"'
    sizes: tuple[Range, ...] = values.get("sizes", ())
    if not sizes:
        entry.refuse("metric", why.format("8 B"))
    if (least := min(r.low for r in sizes)) < SMALLEST_RATED:
        entry.refuse("sizes", why.format(f"{least} B") + "; limit the time of smaller ones")


def _name(values: Mapping[str, Any], metric: str) -> str:
    where = f" on {', '.join(values['fabric'])}" if "fabric" in values else ""
    return f"{metric} of {', '.join(values['benchmark'])}{where}"


def _names_differ(entries: list[_Entry], criteria: tuple[Criterion, ...]) -> None:
    seen: dict[str, Criterion] = {}
    for entry, criterion in zip(entries, criteria, strict=True):
        first = seen.setdefault(criterion.name, criterion)
        if first is not criterion:
            entry.refuse(None, f"another criterion, on line {first.line}, is named {criterion.name!r} too: name each")
