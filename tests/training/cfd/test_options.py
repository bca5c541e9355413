"""What a case may set, and its label; one line for every value that cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from fabrics.errors import UserError
from training.cfd.options import MODES, Options


def test_without_anything_it_is_the_usual_flow() -> None:
    usual = Options.of({})
    assert (usual.grid, usual.compare, usual.label) == ((64, 64, 64), MODES, "euler 64x64x64")
    assert (usual.strong, usual.weak, usual.cells) == (True, True, 64**3)
    assert Options.of(usual.as_dict()) == usual


@pytest.mark.parametrize(
    ("given", "label"),
    [
        ({"grid": "32x48x8"}, "euler 32x48x8"),
        ({"grid": [32, 48, 8], "cfl": 0.3}, "euler 32x48x8 cfl 0.3"),
        ({"split": "2x1", "steps": 9, "scaling": "none"}, "euler 64x64x64 split 2x1"),
    ],
)
def test_the_label_says_what_is_solved(given: dict[str, Any], label: str) -> None:
    options = Options.of(given)
    assert options.label == label
    assert Options.of(options.as_dict()) == options


def test_modes_are_in_the_usual_order_and_once() -> None:
    assert Options.of({"compare": ["probes", "blocking", "probes"]}).compare == ("blocking", "probes")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"grid": "64x64"}, "cells in x, y and z"),
        ({"grid": "64x64x1"}, "2 or more each"),
        ({"grid": "99999x99999x99999"}, "at most"),
        ({"grid": 64}, "grid is 64"),
        ({"grid": [4, 4, 4.5]}, "grid is"),
        ({"steps": 0}, "steps is 0"),
        ({"steps": True}, "steps is True"),
        ({"compare": ["quick"]}, "no mode 'quick': one of blocking, overlapped, probes"),
        ({"compare": "blocking"}, "a list of"),
        ({"compare": []}, "a list of"),
        ({"scaling": "all"}, "one of both, strong, weak, none"),
        ({"cfl": 0}, "cfl is 0"),
        ({"cfl": float("nan")}, "cfl is nan"),
        ({"split": "2"}, "such as 2x1"),
        ({"split": "0x2"}, "such as 2x1"),
        ({"cells": 5}, "no option 'cells': one of grid, steps"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match="cfd") as caught:
        Options.of(given)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
