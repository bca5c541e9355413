"""Verdicts for people and for programs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from reports.limits.model import VERDICTS, Criterion, Judged, Judgement, LeftOut, Range, Ruling
from reports.tables import bullet, prose, table
from reports.units import size
from reports.view import View, grouped

_EXAMPLES = 3


def to_text(v: View, judgement: Judgement) -> str:
    """The verdicts as plain ASCII."""
    title = (
        f"fabricbench accept: {v.data.environment.get('hostname') or 'unknown host'}, limits {judgement.limits.name}"
    )
    parts = [f"{title}\n{'=' * len(title)}", *blocks(judgement)]
    notices = [bullet(f"WARNING: {notice}.") for notice in v.data.notices]
    parts[1:1] = ["\n".join(notices)] if notices else []
    return "\n\n".join(parts).encode("ascii", "backslashreplace").decode() + "\n"


def blocks(judgement: Judgement) -> list[str]:
    """Paragraphs: the count, a line per criterion, every case that does not pass, what passes with a note, left out."""
    found = [prose(sentence(judgement)), _table(judgement)]
    for ruling in judgement.rulings:
        lines = [*_cases(ruling), *_left_out(ruling.left_out)]
        if lines:
            found.append("\n".join([f"{ruling.criterion.name}: {ruling.verdict}", *map(bullet, lines)]))
    return found


def sentence(judgement: Judgement) -> str:
    """How many criteria have which verdict."""
    tally = Counter(ruling.verdict for ruling in judgement.rulings)
    counts = ", ".join(f"{tally[verdict]} {verdict}" for verdict in reversed(VERDICTS) if tally[verdict])
    beside = f", baseline {judgement.baseline}" if judgement.baseline else ""
    total = f"{len(judgement.rulings)} {'criterion' if len(judgement.rulings) == 1 else 'criteria'}"
    return f"Limits {judgement.limits.name}{beside}: {total}: {counts} (exit code {judgement.code})."


def _table(judgement: Judgement) -> str:
    rows = []
    for ruling in judgement.rulings:
        tally = Counter(case.verdict for case in ruling.cases)
        counts = [tally[verdict] for verdict in reversed(VERDICTS)] + [len(ruling.left_out)]
        told = [ruling.verdict, ruling.criterion.name, ruling.criterion.metric]
        rows.append(told + [str(n or "") for n in counts])
    heads = ["verdict", "criterion", "metric", *reversed(VERDICTS), "left out"]
    return table(heads, rows, ["left", "left", "left", *["right"] * 5])


def _cases(ruling: Ruling) -> Iterator[str]:
    """Every case that does not pass, the worst first, and those that pass with a note."""
    for case in sorted(ruling.cases, key=lambda case: VERDICTS.index(case.verdict)):
        if case.verdict != "pass" or case.note:
            yield case.text


def _left_out(left_out: tuple[LeftOut, ...]) -> Iterator[str]:
    for reason, same in grouped(left_out, lambda out: out.reason).items():
        more = f" and {len(same) - _EXAMPLES} more" if len(same) > _EXAMPLES else ""
        yield f"not judged: {', '.join(out.case for out in same[:_EXAMPLES])}{more}: {reason}"


def as_dict(judgement: Judgement) -> dict[str, Any]:
    """Every criterion with its cases, their records and reasons; numbers in base units."""
    return {
        "limits": judgement.limits.name, "baseline": judgement.baseline, "exit_code": judgement.code,
        "doubtful": judgement.doubtful, "criteria": [_ruling(ruling) for ruling in judgement.rulings],
    }  # fmt: skip


def to_json(v: View, judgement: Judgement) -> str:
    """The same as strict JSON, with which run was judged."""
    run = {name: v.data.run.get(name) for name in ("id", "started", "finished", "fabricbench")}
    run |= {"hostname": v.data.environment.get("hostname"), "notices": v.data.notices}
    return json.dumps({"run": run, **as_dict(judgement)}, allow_nan=False) + "\n"


def _ruling(ruling: Ruling) -> dict[str, Any]:
    return {
        "criterion": ruling.criterion.name, **_criterion(ruling.criterion), "verdict": ruling.verdict,
        "cases": [_case(case) for case in ruling.cases], "left_out": [vars(out) for out in ruling.left_out],
    }  # fmt: skip


def _criterion(c: Criterion) -> dict[str, Any]:
    selector = {**c.selector.names, "sizes": [vars(r) for r in c.selector.sizes],
                "ranks": [vars(r) for r in c.selector.ranks]}  # fmt: skip
    return {"line": c.line, "metric": c.metric, "selector": selector, "reference": c.reference, "lower": c.lower,
            "upper": c.upper, "unit": c.unit, "warn": c.warn, "judge": sorted(c.judge)}  # fmt: skip


def _case(case: Judged) -> dict[str, Any]:
    return {**vars(case), "records": [{"id": case.case, "launch": launch} for launch in case.records],
            "bar": None if case.bar is None else vars(case.bar)}  # fmt: skip


def selector_text(c: Criterion) -> str:
    """What a criterion selects, in words: ``benchmark bandwidth; sizes 1 MiB on``."""
    told = [f"{name} {', '.join(patterns)}" for name, patterns in c.selector.names.items()]
    told += [f"sizes {', '.join(_range(r, size) for r in c.selector.sizes)}"] if c.selector.sizes else []
    told += [f"ranks {', '.join(_range(r, str) for r in c.selector.ranks)}"] if c.selector.ranks else []
    return "; ".join(told)


def _range(r: Range, text: Any) -> str:
    if r.high is None:
        return f"{text(r.low)} on"
    return str(text(r.low)) if r.low == r.high else f"{text(r.low)} to {text(r.high)}"
