"""The report as text: a line on the run, the findings in short, then eight chapters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from reports.chapters import cfd, collectives, matter, offload, point_to_point, proof, system, training, verdicts
from reports.chapters.missing import Planned, unrecorded
from reports.limits.told import sentence
from reports.summary import NOT_OK, basis
from reports.tables import WIDTH, bullet, prose
from reports.units import count
from reports.view import Chapter, Finding, View

CHAPTERS = (system, proof, point_to_point, collectives, offload, training, matter, verdicts)
BARE = "Imported numbers are what other suites printed, mostly means: of one launch they have no interval."
TOLD_BY_TABLES = (2, 3, 4)  # their findings only repeat what stands in the first table


def chapters(v: View) -> tuple[Chapter, ...]:
    """All chapters, in order."""
    return tuple(cfd.joined(v, module.chapter(v)) for module in CHAPTERS)


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
    if v.judgement is not None:
        lines.append(bullet(f"(8) {sentence(v.judgement)}"))
    lines.append(_cases(v, made[-1]))
    lines += [bullet(f"({f.chapter}) {f.text}") for f in findings(made) if f.chapter < 8 and f.short]
    return "In short\n\n" + "\n".join(lines)


def _cases(v: View, last: Chapter) -> str:
    """How many cases there are, what became of each, and what is missing of those that have numbers."""
    tally = Counter("disproved" if s.status == "ok" and not s.published else s.status for s in v.summaries)
    left = unrecorded(v)
    known = {s.id for s in v.summaries}
    tally["without a record"] = len({p.case for p in left} - known)
    order = ("ok", "disproved", *NOT_OK, "without a record")
    told = ", ".join(f"{tally[what]} {what}" for what in order if tally[what]) or "none on disk"
    warned = sum(f.text.startswith("WARNING") for f in last.findings)
    parts = [f"{count(tally.total(), 'case')}: {told}", *_partly(v, left), *_unread(v), count(warned, "warning")]
    return bullet(f"(8) {'; '.join(parts)}.")


def _partly(v: View, left: Sequence[Planned]) -> Iterator[str]:
    """The cases that have numbers, but not of every launch, and what became of those launches."""
    good = {s.id for s in v.published}
    behind = {(r.id, r.launch) for s in v.published for r in v.launches(s)}
    lost = [(r.id, "disproved" if r.status == "ok" else str(r.status)) for r in v.records
            if r.id in good and (r.id, r.launch) not in behind]  # fmt: skip
    lost += [(p.case, "without a record") for p in left if p.case in good]
    if lost:
        what = ", ".join(f"{n} {status}" for status, n in Counter(status for _, status in lost).items())
        cases = len({case for case, _ in lost})
        yield f"{cases} of the ok ones lack{'s' if cases == 1 else ''} {count(len(lost), 'launch')} ({what})"


def _unread(v: View) -> Iterator[str]:
    if v.data.dropped:
        yield f"{count(v.data.dropped, 'line')} of records could not be read"


def _emulated(v: View) -> str:
    measured = {r.fabric for r in v.records}
    names = ", ".join(name for name in v.emulated if name in measured)
    return f"EMULATED: {names}. Take orderings and mechanisms from them, never a hardware's speed." if names else ""


def _intervals(v: View) -> str:
    """What brackets hold, if it is the same in the whole report."""
    bare = any(s.imported and s.launches == 1 for s in v.published)
    counts = sorted({s.launches for s in v.published if not s.imported or s.launches > 1})
    if not counts:
        return f"{BARE} (k): from chapter k." if bare else ""
    also = f" {BARE}" if bare else ""
    kind, *others = map(basis, counts)
    if others:
        told = ", ".join(f"{basis(n)} (n {f'{n} x 30' if n > 1 else '30'})" for n in counts)
        return f"[low, high]: {told}: the heading of each table says which; n: samples.{also} (k): from chapter k."
    alone = ", which shows nothing of how launches differ"
    what = kind if "range" in kind else f"95 % interval {kind}{alone if 'within' in kind else ''}"
    return f"[low, high]: {what}; n: samples.{also} (k): from chapter k."


def _chapter(chapter: Chapter) -> str:
    heading = f"{chapter.number} {chapter.title}"
    said = "" if chapter.number in TOLD_BY_TABLES else "\n".join(bullet(f.text) for f in chapter.findings)
    return "\n\n".join([f"{heading}\n{'-' * len(heading)}", *([said] if said else []), *chapter.blocks])
