"""Samples of all hosts as one: packed, gathered, and per iteration the longest of those reported."""

from __future__ import annotations

from typing import Any

import numpy as np

from collectives.overlap import samples, schedule

STEPS = schedule.steps(("host", "probes4", "staged"))
ROUNDS = 3


def blocks(level: int, without: tuple[str, ...] = ()) -> dict[str, list[dict[str, Any]]]:
    """Every span of every iteration has a value of its own, from ``level`` on."""
    numbers = iter(range(level, level + 10**6))
    return {
        step: [
            {} if step in without else
            {part: np.array([next(numbers) for _ in range(3)], "i8") for part in samples.parts(step)}
            for _ in range(ROUNDS)
        ]
        for step in STEPS
    }  # fmt: skip


def test_probes_are_timed_apart_where_there_are_any() -> None:
    assert "test_longest" in samples.parts("probes4.overall")
    assert "test" not in samples.parts("host.overall") and "test" not in samples.parts("staged.overall")
    assert samples.names(STEPS)[:3] == ("compute", "compute.processor", "host.pure")
    assert len(set(samples.names(STEPS))) == len(samples.names(STEPS))


def test_what_is_packed_comes_out_by_name_and_round() -> None:
    given = blocks(1000)
    found = samples.unpacked(samples.packed(given, STEPS)[None, :], STEPS, ROUNDS)
    assert list(found) == list(samples.names(STEPS))
    for step in STEPS:
        for part in samples.parts(step):
            assert np.array_equal(found[samples.name(step, part)], [spans[part] for spans in given[step]])


def test_of_several_hosts_the_longest_counts_iteration_by_iteration() -> None:
    one, other = blocks(1000), blocks(1000)
    one["host.overall"][1][""][2] += 5
    other["host.overall"][2]["wait"][0] += 7
    rows = np.stack([samples.packed(each, STEPS) for each in (one, other)])
    found, alone = samples.unpacked(rows, STEPS, ROUNDS), samples.unpacked(rows[:1], STEPS, ROUNDS)
    assert found["host.overall"][1, 2] == one["host.overall"][1][""][2]
    assert found["host.wait"][2, 0] == alone["host.wait"][2, 0] + 7
    assert np.array_equal(found["compute"], alone["compute"])


def test_a_rank_without_a_part_in_a_step_packs_as_much_as_the_others() -> None:
    assert samples.packed(blocks(1, without=("compute",)), STEPS).size == samples.packed(blocks(1), STEPS).size


def test_a_record_keeps_the_lead_in_of_every_step_apart() -> None:
    found = samples.unpacked(samples.packed(blocks(1000), STEPS)[None, :], STEPS, ROUNDS)
    kept = samples.flat(found, STEPS)
    assert kept["host.overall"].shape == (1, 2 * ROUNDS) and kept["lead_in.host.overall"].shape == (1, ROUNDS)
    assert not set(kept["host.overall"].ravel()) & set(kept["lead_in.host.overall"].ravel())
