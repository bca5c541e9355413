"""A run as data: JSON with records, summaries and findings; CSV with a row per summary and metric."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from microbench.record import Record
from reports.chapters.collectives import beside_others
from reports.limits.told import as_dict
from reports.standing import Standing
from reports.summary import Summary, basis
from reports.text import chapters, findings
from reports.view import View

_CASE = ("id", "benchmark", "fabric", "recipe", "backend", "mpi", "thread_level", "algorithm", "mode",
         "workload", "device", "direction", "nbytes", "dtype", "ranks", "ranks_per_host", "placement",
         "proof", "emulated", "oversubscribed", "status", "reason", "launches", "attempted")  # fmt: skip
_METRIC = ("value", "low", "high", "n", "unit", "better", "kind", "note")
_STANDING = ("mark", "unranked", "of_stream", "vs_library", "vs_library_low", "vs_library_high")
COLUMNS = (*_CASE, "metric", *_METRIC, "basis", "launches_low", "launches_high", *_STANDING)


def to_json(v: View) -> str:
    """``{"run", "records", "summaries", "findings"}`` in base units, strict JSON: no NaN, no infinity.

    A summary that stands beside others of its operation says how, in ``standing``. Where limits are given there is
    ``verdicts``, too.
    """
    found = beside_others(v)
    data = {
        "run": v.data.run,
        "records": [_flat(record) for record in v.data.records],
        "summaries": [{**_flat(s), "standing": found[s.id].as_dict() if s.id in found else None} for s in v.summaries],
        "findings": [vars(finding) for finding in findings(chapters(v))],
    }
    if v.judgement is not None:
        data["verdicts"] = as_dict(v.judgement)
    return json.dumps(data, allow_nan=False) + "\n"


def _flat(case: Record | Summary) -> dict[str, Any]:
    """The fields as they are: ``dataclasses.asdict`` would copy every leaf, which takes seconds for a large run."""
    parts = {name: {key: vars(part) for key, part in getattr(case, name).items()}
             for name in ("metrics", "spread") if hasattr(case, name)}  # fmt: skip
    return {**vars(case), **parts}


def to_csv(v: View) -> str:
    """A row per summary and metric in base units; a case without metrics has one row.

    How a case stands beside others of its operation is told in each of its rows.
    """
    found = beside_others(v)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for s in v.summaries:
        told = {} if s.published or s.status != "ok" else {"status": "disproved"}  # so that no filter takes it for good
        case = [_plain(told.get(name, getattr(s, name))) for name in _CASE]
        stands = _stands(found.get(s.id))
        writer.writerows([*case, *row, *stands] for row in _rows(s))
    return out.getvalue()


def _stands(found: Standing | None) -> list[Any]:
    if found is None:
        return [""] * len(_STANDING)
    ratio = found.vs_library
    ends = (None, None, None) if ratio is None else (ratio.value, ratio.low, ratio.high)
    return [_plain(value) for value in (found.mark, found.unranked, found.of_stream, *ends)]


def _rows(s: Summary) -> list[list[Any]]:
    if not s.metrics:
        return [[""] * (len(COLUMNS) - len(_CASE) - len(_STANDING))]
    rows = []
    for name, metric in s.metrics.items():
        spread = s.spread.get(name)
        over = [basis(spread.launches), spread.low, spread.high] if spread else ["", "", ""]
        rows.append([name, *(_plain(getattr(metric, field)) for field in _METRIC), *over])
    return rows


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else value
