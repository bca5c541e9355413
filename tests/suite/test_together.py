"""What a rank that has found a mistake needs to know before it may tell the others. Pure."""

from __future__ import annotations

import pytest

from suite.together import asked_level


@pytest.mark.parametrize(
    ("arguments", "level"),
    [
        ("bench allreduce --thread-level multiple --sizes x", "multiple"),
        ("bench --frobnicate 3 --thread-level=funneled", "funneled"),
        ("bench allreduce --thread-l serialized", "serialized"),
        ("bench allreduce", "single"),
        ("bench allreduce --thread-level", "single"),
        ("bench allreduce --thread-level manifold", "single"),
    ],
)
def test_the_thread_level_is_read_from_a_command_line_however_wrong(
    arguments: str, level: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert asked_level(arguments.split()) == level
    assert capsys.readouterr() == ("", "")
