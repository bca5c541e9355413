"""A refill comes before what starts the ranks together, and changes nothing else of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from microbench.refill import Refilled
from microbench.sync import Sync


class Told(Sync):
    """A start that keeps what it is told."""

    name, columns = "told", 3

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def calls(self) -> list[Any]:
        return [("meet",)]

    def method(self) -> dict[str, Any]:
        return {"slack_s": 1.0}


@pytest.mark.parametrize("name", ["settle", "widen", "widen_unseen", "before_block"])
def test_what_tunes_a_start_reaches_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = Told()
    monkeypatch.setattr(inner, name, lambda *given: inner.seen.append(given))
    arguments = {"settle": (len,), "widen": (np.zeros((1, 1), "i8"), len), "widen_unseen": (1.0,)}.get(name, ())
    getattr(Refilled([("copy", 1, 2, 3)], inner), name)(*arguments)
    assert inner.seen == [arguments]


def test_every_hook_of_a_start_is_passed_on() -> None:
    hooks = {name for name, value in vars(Sync).items() if callable(value) and not name.startswith("_")}
    assert hooks <= set(vars(Refilled))


def test_the_refill_comes_first_and_is_told() -> None:
    start = Refilled([("copy", 1, 2, 3)], Told())
    assert start.calls() == [("copy", 1, 2, 3), ("meet",)]
    assert (start.name, start.columns) == ("told", 3)
    assert start.method() == {"slack_s": 1.0, "refilled": "before each sample's start"}
