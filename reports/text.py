"""The report as text: a line on the run, the findings in short, then eight chapters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from reports.chapters import collectives, matter, offload, point_to_point, proof, system, training, verdicts
from reports.summary import WRONG, basis
from reports.tables import WIDTH, bullet, prose
from reports.units import count
from reports.view import Chapter, Finding, View

CHAPTERS = (system, proof, point_to_point, collectives, offload, training, matter, verdicts)
TOLD_BY_TABLES = (2, 3, 4)  # their findings only repeat what stands in the first table


def chapters(v: View) -> tuple[Chapter, ...]:
    """All chapters, in order."""
    return tuple(module.chapter(v) for module in CHAPTERS)


def findings(made: Sequence[Chapter]) -> tuple[Finding, ...]:
    """All findings, chapter by chapter."""
    return tuple(finding for chapter in made for finding in chapter.findings)


def to_text(v: View) -> str:
    """The whole report, plain ASCII: what a record holds beyond it is escaped."""
    made = chapters(v)
    parts = [_title(v), _short(v, made), *map(_chapter, made)]
    return "\n\n".join(parts).encode("ascii", "backslashreplace").decode() + "\n"


def _title(v: View) -> str:
    who = v.data.environment.get("hostname") or "unknown host"
    heading = f"fabricbench report: {who}, {v.data.run.get('started') or 'start not recorded'}"
    return f"{heading}\n{'=' * min(len(heading), WIDTH)}"


def _short(v: View, made: Sequence[Chapter]) -> str:
    lines = [prose(line) for line in (_emulated(v), _intervals(v)) if line]
    if v.data.unfinished:
        lines.append(bullet(f"(8) NOT WHOLE: {v.data.unfinished}."))
    lines.append(_cases(v, made[-1]))
    lines += [bullet(f"({f.chapter}) {f.text}") for f in findings(made) if f.chapter < 8]
    return "In short\n\n" + "\n".join(lines)


def _cases(v: View, last: Chapter) -> str:
    tally: dict[str, int] = {}
    for s in v.summaries:
        what = "disproved" if s.status == "ok" and not s.published else s.status
        tally[what] = tally.get(what, 0) + 1
    told = ", ".join(f"{n} {what}" for what, n in tally.items()) or "none on disk"
    lost = Counter(r.status for r in v.records if r.status in WRONG)
    told += "".join(f"; {count(n, 'record')} {status}" for status, n in lost.items())
    warned = sum(f.text.startswith("WARNING") for f in last.findings)
    return bullet(f"(8) {count(len(v.summaries), 'case')}: {told}; {count(warned, 'warning')}.")


def _emulated(v: View) -> str:
    measured = {r.fabric for r in v.records}
    names = ", ".join(name for name in v.emulated if name in measured)
    return f"EMULATED: {names}. Take orderings and mechanisms from them, never a hardware's speed." if names else ""


def _intervals(v: View) -> str:
    """What brackets hold, if it is the same in the whole report."""
    kinds = dict.fromkeys(basis(s.launches) for s in v.published)
    if not kinds:
        return ""
    (kind, *others) = kinds
    if others:
        return "[low, high]: see the heading of each table; n: samples."
    alone = ", which shows nothing of how launches differ"
    what = kind if "range" in kind else f"95 % interval {kind}{alone if 'within' in kind else ''}"
    return f"[low, high]: {what}; n: samples. (k): from chapter k."


def _chapter(chapter: Chapter) -> str:
    heading = f"{chapter.number} {chapter.title}"
    said = "" if chapter.number in TOLD_BY_TABLES else "\n".join(bullet(f.text) for f in chapter.findings)
    return "\n\n".join([f"{heading}\n{'-' * len(heading)}", *([said] if said else []), *chapter.blocks])
