"""Cases of the solver: one for each flow of a section on each number of ranks. Pure.

Such a case has ``grid`` among its options, which no other case has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from microbench.case import Case
from training.cfd import schedule
from training.cfd.options import Options

if TYPE_CHECKING:
    from suite.planfile import Section

KIND = "cfd"


def cases(section: Section, base: Case) -> Iterator[Case]:
    """Those of a section whose other values are ``base``'s; without flows it has the usual one."""
    for ranks, flow in product(section.ranks, section.flows or (Options().as_dict(),)):
        options = Options.of({key: value for key, value in flow.items() if key != "budget_s"})
        own = {"workload": options.label, "options": options.as_dict(), "ranks": ranks}
        yield replace(base, budget_s=float(flow.get("budget_s", section.budget_s)), **own)


def at_most_s(case: Case, bytes_per_s: float) -> float | None:
    """About how long a case takes at most on a fabric of that rate; None where it is no flow's."""
    return schedule.at_most_s(case, Options.of(case.options), bytes_per_s) if "grid" in case.options else None
