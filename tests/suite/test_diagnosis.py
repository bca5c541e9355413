"""Words for ranks that are stuck or dead: pure."""

from __future__ import annotations

import pytest

from suite.diagnosis import Seen, death, ranks_text, told

SEND = "MPI_Send (call 1) in iteration 17 of 100"


def test_those_that_do_not_speak_come_first() -> None:
    seen = [
        Seen(0, "h0", "running", SEND),
        Seen(1, "h1", "stopped", "MPI_Recv (call 2) in iteration 17 of 100"),
        Seen(2, "h2", "silent"),
        Seen(3, "", "absent"),
    ]
    assert told(seen) == (
        "rank 1 on h1 is stopped (last in MPI_Recv (call 2) in iteration 17 of 100); rank 2 on h2 is silent;"
        " rank 3 has not started; rank 0 on h0 is in MPI_Send (call 1) in iteration 17 of 100"
    )


def test_ranks_that_are_alike_are_told_together() -> None:
    seen = [Seen(rank, "h0" if rank < 8 else "h1", "running", SEND) for rank in range(14)]
    seen += [Seen(14, "h1", "stopped"), Seen(15, "h1", "running", SEND)]
    assert told(seen) == f"rank 14 on h1 is stopped; ranks 0-13, 15 are in {SEND}"
    assert told(seen[:3]) == f"ranks 0-2 on h0 are in {SEND}"


def test_a_hundred_ranks_that_differ_stay_a_line_of_a_few_hundred_characters() -> None:
    seen = [Seen(rank, f"h{rank}", "running", f"MPI_Recv (call 2) in iteration {rank} of 100") for rank in range(100)]
    text = told([*seen, Seen(100, "h100", "stopped")])
    assert text.startswith("rank 100 on h100 is stopped; rank 0 on h0 is in ")
    assert text.endswith("; and 94 more ranks")
    assert len(text) < 450


@pytest.mark.parametrize(
    ("ranks", "text"),
    [([3], "rank 3"), ([0, 1], "ranks 0-1"), ([4, 0, 2, 1, 6], "ranks 0-2, 4, 6"), ([5, 6, 9], "ranks 5-6, 9")],
)
def test_ranks_are_told_as_spans(ranks: list[int], text: str) -> None:
    assert ranks_text(ranks) == text


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({"code": -9, "where": SEND}, f"was killed by SIGKILL (last in {SEND})"),
        ({"code": -64, "where": ""}, "was killed by SIGRTMAX"),
        ({"code": -40, "where": ""}, "was killed by signal 40"),
        ({"code": 3, "where": "the probe"}, "exited with code 3 (last in the probe)"),
        ({"code": 0, "where": "the probe"}, "exited with code 0 (last in the probe)"),
        ({}, "ended without a word"),
    ],
)
def test_a_death_is_told_with_its_signal_or_code(facts: dict[str, object], text: str) -> None:
    assert death({"rank": 1, "host": "h1", **facts}) == f"rank 1 on h1 {text}"
