"""Variants of one operation: the library's own, other algorithms, other backends, other forms of the call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count as numbers

from reports.ratios import Ratio, speed
from reports.summary import Summary
from reports.view import grouped

LIBRARY, MPI = "library", "mpi"
FORMS = ("nonblocking", "in-place")  # words of a mode that tell how an operation is called, not how it is measured
Variant = tuple[str, str, str]


@dataclass(frozen=True)
class Contest:
    """The calls of one form at one size: the fastest, and those that it cannot be told apart from."""

    nbytes: int | None
    form: str
    fastest: Summary
    tied: tuple[Summary, ...]

    @property
    def winner(self) -> Summary | None:
        """The fastest, where its interval lies apart from every other's."""
        return None if self.tied else self.fastest


def form(s: Summary) -> str:
    """How the operation is called: ``nonblocking``, ``in-place``, both, or nothing, which is the usual way."""
    return " ".join(word for word in s.mode.split() if word in FORMS)


def measured(s: Summary) -> str:
    """What else a mode says: how the ranks start, which is of the measurement and makes no variant."""
    return " ".join(word for word in s.mode.split() if word not in FORMS)


def by_mpi(s: Summary) -> bool:
    """Whether MPI carries it, rather than another backend."""
    return s.backend in ("", MPI)


def variant(s: Summary) -> Variant:
    """Algorithm, backend and form of the call."""
    return s.algorithm or LIBRARY, s.backend or MPI, form(s)


def own(s: Summary) -> bool:
    """Whether it is the MPI library's own, called the usual way."""
    return variant(s) == (LIBRARY, MPI, "")


def label(s: Summary) -> str:
    """A variant in words: ``library``, ``ring``, ``library, nonblocking``, ``gloo``."""
    algorithm, backend, called = variant(s)
    other = backend if algorithm in (LIBRARY, backend) else f"{backend} {algorithm}"
    name = algorithm if by_mpi(s) else other
    return f"{name}, {called}" if called else name


def comparisons(shown: Iterable[Summary]) -> list[list[Summary]]:
    """The summaries that differ in variant and size alone: those of each operation, fabric, layout, dtype and MPI.

    A single variant makes no comparison. Other backends stand beside every MPI library that was measured.
    """
    found: list[list[Summary]] = []
    for group in grouped((s for s in shown if "time" in s.metrics), _setting).values():
        libraries = dict.fromkeys(s.mpi for s in group if by_mpi(s)) or {"": None}
        for mpi in libraries:
            rows = [s for s in group if s.mpi == mpi or not by_mpi(s)]
            if len({variant(s) for s in rows}) > 1:
                found.append(_ordered(rows))
    return found


def _setting(s: Summary) -> tuple[str | int, ...]:
    """All that variants must share, the MPI library apart."""
    return (s.benchmark, s.fabric, s.ranks, s.ranks_per_host, s.recipe, s.dtype, measured(s), s.workload, s.device,
            s.direction)  # fmt: skip


def _ordered(rows: Sequence[Summary]) -> list[Summary]:
    """The usual calls first, the library's before ours before other backends'; else as they first appear."""
    place = dict(zip(dict.fromkeys(map(variant, rows)), numbers(), strict=False))
    return sorted(rows, key=lambda s: (form(s) != "", not by_mpi(s), variant(s)[0] != LIBRARY, place[variant(s)]))


def contests(rows: Iterable[Summary]) -> list[Contest]:
    """Who is fastest among the calls of one form at one size, of two or more, by ascending size.

    Nonblocking and in-place calls do other work than the usual one, so they contend among themselves. What has no
    interval does not contend: nothing can be told apart from it.
    """
    timed = [s for s in rows if s.value("time") is not None and s.ends("time") is not None]
    groups = [group for group in grouped(timed, lambda s: (s.nbytes, form(s))).values() if len(group) > 1]
    return sorted(map(_contest, groups), key=lambda c: (c.form, -1 if c.nbytes is None else c.nbytes))


def _contest(group: Sequence[Summary]) -> Contest:
    fastest = min(group, key=lambda s: s.value("time") or 0.0)
    tied = tuple(s for s in group if s is not fastest and not _apart(fastest, s))
    return Contest(fastest.nbytes, form(fastest), fastest, tied)


def _apart(fast: Summary, slow: Summary) -> bool:
    """Whether the two intervals leave each other out."""
    below, above = fast.ends("time"), slow.ends("time")
    return below is not None and above is not None and below[1] < above[0]


def best(rows: Iterable[Summary]) -> dict[str, str]:
    """The marks of the fastest by the summary's id: ``*`` where it is told apart, ``=`` on it and its equals."""
    marked: dict[str, str] = {}
    for contest in contests(rows):
        for s in (contest.fastest, *contest.tied):
            marked[s.id] = "=" if contest.tied else "*"
    return marked


def library_at(rows: Iterable[Summary]) -> dict[int | None, Summary]:
    """The library's own, called the usual way, by size."""
    return {s.nbytes: s for s in rows if own(s)}


def against_library(s: Summary, library: Mapping[int | None, Summary]) -> Ratio | None:
    """How many times faster than the library's own at that size; None where that was not measured."""
    found = library.get(s.nbytes)
    return None if found is None else speed(s, found, "time")
