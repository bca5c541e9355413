"""A baseline: what several runs measured, in one file, so that no single lucky run becomes the bar."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from microbench.record import Better
from reports.comparison.alike import differences
from reports.comparison.sides import Launch, Series, Side, SideCase, of_run
from reports.load import load, mapping, mappings
from reports.view import View, number, view

SCHEMA = 1
KIND = "fabricbench baseline"


class NotABaseline(Exception):
    """A file that is no baseline, or runs that make none; one line says why. The command exits with 2."""


@dataclass(frozen=True)
class Made:
    """A baseline of several runs, and the cases that it leaves out, each with the reason."""

    side: Side
    left_out: Mapping[str, str]


def read_side(path: Path, samples: bool = True) -> Side:
    """The run in a folder, or the baseline in a file; ``samples`` reads those of a run, too.

    Raises NotARun or NotABaseline.
    """
    if not path.exists():
        raise NotABaseline(f"{path}: there is no such run or baseline")
    if path.is_file():
        return read(path)
    return side_of(view(load(path)), path, samples)


def side_of(v: View, path: Path, samples: bool = False) -> Side:
    """The run in the folder ``path``, which ``v`` is a view of, as a side."""
    return of_run(v, str(path), path if samples else None)


def make(sides: Sequence[Side]) -> Made:
    """The baseline of some runs: of each case the launches of every run, where the runs measured it alike.

    A case that differs between runs in what must agree is left out, and so is one that went wrong in a run. Raises
    NotABaseline where the same run is given twice, or nothing is left.
    """
    runs = [run for side in sides for run in side.runs]
    ids = [run.get("id") for run in runs if run.get("id")]
    twice = next((run for place, run in enumerate(ids) if run in ids[:place]), None)
    if twice is not None:
        raise NotABaseline(f"the run {twice} is given twice: a baseline is made of different runs")
    cases: dict[str, SideCase] = {}
    left_out: dict[str, str] = {}
    for case in dict.fromkeys(case for side in sides for case in (*side.cases, *side.wrong)):
        there = [(side.name, side.cases[case]) for side in sides if case in side.cases]
        why = next((f"in {s.name}: {s.wrong[case]}" for s in sides if case in s.wrong), "") or _unlike(there)
        if why:
            left_out[case] = why
        else:
            cases[case] = _joined([found for _, found in there])
    if not cases:
        raise NotABaseline("the runs have no number in common that could be a baseline")
    return Made(Side("baseline", tuple(runs), cases), left_out)


def _unlike(there: Sequence[tuple[str, SideCase]]) -> str:
    first_name, first = there[0]
    found = ((name, differences(first, case)) for name, case in there[1:])
    return next((f"{first_name} and {name} differ in {why[0]}" for name, why in found if why), "")


def _joined(cases: Sequence[SideCase]) -> SideCase:
    metrics: dict[str, Series] = {}
    for name in dict.fromkeys(name for case in cases for name in case.metrics):
        there = [case.metrics[name] for case in cases if name in case.metrics]
        runs = tuple(tuple(Launch(launch.value) for launch in run) for series in there for run in series.runs)
        metrics[name] = Series(there[0].unit, there[0].better, runs)
    return SideCase(cases[0].id, cases[0].fields, metrics)


def to_json(made: Made, version: str, when: str) -> str:
    """The baseline as strict JSON, with one value a launch."""
    cases = [{"id": case.id, "fields": dict(case.fields), "metrics": {
        name: {"unit": s.unit, "better": s.better, "runs": [[launch.value for launch in run] for run in s.runs]}
        for name, s in case.metrics.items()}} for case in made.side.cases.values()]  # fmt: skip
    data = {"kind": KIND, "schema": SCHEMA, "fabricbench": version, "made": when,
            "runs": [dict(run) for run in made.side.runs], "cases": cases, "left_out": dict(made.left_out)}  # fmt: skip
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


def read(path: Path) -> Side:
    """The baseline in a file. Raises NotABaseline where it is none, is damaged, or is newer than this version."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise NotABaseline(f"cannot read baseline {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise NotABaseline(f"{path}: not JSON ({error}): make a baseline with fabricbench baseline") from None
    if not isinstance(data, Mapping) or data.get("kind") != KIND or not isinstance(data.get("schema"), int):
        raise NotABaseline(f"{path}: not a baseline: make one with fabricbench baseline RUN ... -o FILE")
    if data["schema"] > SCHEMA:
        raise NotABaseline(f"{path}: baseline schema {data['schema']} is newer than {SCHEMA}: update fabricbench")
    try:
        cases = {case.id: case for case in map(_case, _list(data, "cases"))}
    except (KeyError, TypeError, ValueError) as error:
        raise NotABaseline(f"{path}: damaged ({error}): make the baseline again") from None
    return Side(str(path), mappings(data.get("runs")), cases)


def _list(data: Mapping[str, Any], name: str) -> Iterable[Mapping[str, Any]]:
    found = data.get(name)
    if not isinstance(found, list):
        raise TypeError(f"no list of {name}")
    return found


def _case(data: Mapping[str, Any]) -> SideCase:
    metrics = {str(name): _series(mapping(found)) for name, found in mapping(data["metrics"]).items()}
    return SideCase(str(data["id"]), mapping(data["fields"]), metrics)


def _series(data: Mapping[str, Any]) -> Series:
    better = data["better"]
    if better not in get_args(Better):
        raise ValueError(f"better is {better!r}")
    runs = tuple(tuple(Launch(_value(value)) for value in run) for run in data["runs"])
    if not runs or not all(runs):
        raise ValueError("a metric without launches")
    return Series(str(data["unit"]), better, runs)


def _value(data: Any) -> float:
    found = number(data)
    if found is None:
        raise ValueError(f"{data!r} is no number")
    return found
