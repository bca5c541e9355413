"""Why two cases of a plan are one: what their id says of both, and what of them it does not say. Pure."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fabrics.errors import UserError
from microbench.case import Case

_COMPUTED = "deadline_s"  # from the other limits, where a plan does not say


class Planned:
    """The cases of a plan so far, by id; ``name`` is the plan's."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._found: dict[str, tuple[Case, int]] = {}

    def add(self, case: Case, section: int) -> None:
        """Enter a case of the section of that number; UserError where it is planned: only one of the two could hold."""
        first, other = self._found.setdefault(case.id, (case, section))
        if first is case:
            return
        where = f"one [{case.benchmark}] section" if other == section else f"two [{case.benchmark}] sections"
        apart = differences(first, case)
        told = f" that differ in {' and '.join(apart)} alone, which makes no other case" if apart else ""
        raise UserError(f"plan {self._name}: {case.id} stands in it twice, in {where}{told}: leave one of them out")


def differences(first: Case, second: Case) -> list[str]:
    """The names of what differs between two cases, options among them; the deadline only where nothing else does."""
    one, other = map(_flat, (first, second))
    found = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    return [name for name in found if name != _COMPUTED] or found


def _flat(case: Case) -> dict[str, Any]:
    return {name: value for name, value in asdict(case).items() if name != "options"} | dict(case.options)
