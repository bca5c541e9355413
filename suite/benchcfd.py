"""What ``fabricbench bench cfd`` takes, and how its modes are printed beside each other."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from tabulate import tabulate

from fabrics.errors import UserError
from microbench.record import Metric, Record
from microbench.registry import Benchmark
from reports.load import mapping
from reports.modes import modes
from reports.units import MCELLS_PER_S, MS, PERCENT, PLAIN, Unit
from suite import flows
from suite.arguments import count
from training.cfd.options import Options

_NAMES = ("grid", "steps", "cfl", "split")
_COLUMNS: tuple[tuple[str, str, Unit], ...] = (
    ("cells_per_s", "Mcells/s", MCELLS_PER_S), ("cells_per_s_core", "per core", MCELLS_PER_S),
    ("exposed", "exposed ms", MS), ("exposed_fraction", "exposed %", PERCENT), ("speedup", "speedup", PLAIN),
    ("weak_efficiency", "weak efficiency", PLAIN),
)  # fmt: skip
_SAID = (
    "# silent: all ranks, the same steps without messages; alone: rank 0 with its share, others asleep; one: rank 0"
    " with the whole grid"
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the command line, beside ``--compare`` and ``--scaling``, which others have too."""
    group = parser.add_argument_group(
        "flow", "for cfd, whose modes (--compare) are blocking, overlapped, probes; see --scaling too"
    )
    group.add_argument("--grid", metavar="G", help="cells in x, y and z (default 64x64x64)")
    group.add_argument("--steps", type=count, metavar="N", help="time so many steps together (default 4)")
    group.add_argument(
        "--cfl", type=float, metavar="X", help="time step, of the longest that waves allow (default 0.6)"
    )
    group.add_argument("--split", metavar="AxB", help="ranks in x and in y (default: the fewest cells to exchange)")


def case_options(args: argparse.Namespace, benchmark: Benchmark) -> dict[str, Any]:
    """The options and workload of a case of the solver; none of another benchmark, to which they must not be given.

    Raises UserError for a value that cannot be, and for an option that is another benchmark's.
    """
    given = {name: value for name in _NAMES if (value := getattr(args, name)) is not None}
    if benchmark.kind != flows.KIND:
        if given:
            raise UserError(f"{benchmark.name} solves no flow: leave out --{next(iter(given))}")
        return {}
    given |= {"scaling": args.scaling} if args.scaling is not None else {}
    if args.compare is not None:
        given["compare"] = [word.strip() for word in args.compare.split(",")]
    options = Options.of(given)
    return {"options": options.as_dict(), "workload": options.label}


def lines(record: Record) -> list[str]:
    """What is printed of a record: a part a line."""
    if record.status != "ok":
        return [f"{record.workload} {record.status}: {record.reason}"]
    found, method = record.metrics, record.method
    there = [column for column in _COLUMNS if any(f"{part}.{column[0]}" in found for part in modes(found))]
    rows = []
    for part in modes(found):
        step = found[f"{part}.step"]
        told = [_text(found, f"{part}.{name}", unit) for name, _, unit in there]
        rows.append([part, _text(found, f"{part}.step", MS), _interval(step, MS), *told])
    heads = ["part", "step ms", "95 %", *(head for _, head, _ in there)]
    align = ["left", "right", "left", *["right"] * len(there)]
    drawn = tabulate(rows, heads, tablefmt="plain", disable_numparse=True, colalign=align)
    n = next(iter(found.values())).n
    first = f"# {record.workload}, split {method['split']}, {method['steps']} steps a block, n {n}"
    left_out = [f"# left out: {name}: {why}" for name, why in mapping(method.get("left_out")).items()]
    said = [_SAID] if "silent" in modes(found) else []
    like = f"# checked: every byte after {record.validation['checked_steps']} steps, {record.validation['like']};"
    kept = f" mass, momentum and energy kept within {record.validation['conserved_within']:.1g}"
    return [first, *drawn.splitlines(), *said, *left_out, like + kept]


def _text(found: Mapping[str, Metric], name: str, unit: Unit) -> str:
    metric = found.get(name)
    return "-" if metric is None or metric.value is None else unit.text(metric.value)


def _interval(metric: Metric, unit: Unit) -> str:
    if metric.value is None or metric.low is None or metric.high is None:
        return metric.note
    return unit.inside(metric.low, metric.high, like=metric.value)
