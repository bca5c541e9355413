"""The metrics that limits may name: all that reports show, and no other."""

from __future__ import annotations

import pytest

from reports.chapters import matter, offload_modes, training
from reports.limits.quantities import ANY, UNITS, base_unit, percentile_name
from tests.reports.folder import lab_run


@pytest.mark.parametrize("name", [q[0] for m in (matter, offload_modes, training) for q in m.QUANTITIES])
def test_what_chapters_show_can_be_limited(name: str) -> None:
    assert base_unit(name) is not None
    assert base_unit(f"staged.{name}") == base_unit(name)


def test_units_are_those_of_records() -> None:
    found = {(name, m.unit) for r in lab_run().records for name, m in r.metrics.items()}
    assert len(found) > 15
    assert [name for name, unit in found if base_unit(name) != unit] == []


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("time_p99", "s"), ("time_p99.9", "s"), ("time_max", "s"), ("time_fastest", "s"), ("host.pure_min", "s"),
        ("message_rate_makespan", "messages/s"), ("overlap_printed", "1"), ("ratio.copy", "1"), ("host.copy", ANY),
        ("hide.oda224", ANY), ("gloo+64M.cpu_per_byte", "s/byte"), ("retransmits", "1"), ("bandwith", None), ("", None),
        ("time_p98", None), ("staged.", None), (".", None), ("staged.tyme", None), ("busbw_mbs", None),
    ],
)  # fmt: skip
def test_names(name: str, unit: str | None) -> None:
    assert base_unit(name) == unit


def test_percentiles_are_those_that_are_measured() -> None:
    assert percentile_name("gloo.step", 90) == "gloo.step_p90" and percentile_name("time", 50) == "time"
    assert percentile_name("bandwidth", 99) is None


def test_units_are_multiples_of_base_units() -> None:
    assert UNITS["MiB/s"] == ("bytes/s", 1048576.0) and UNITS["Gbit/s"] == ("bytes/s", 1.25e8)
    assert UNITS["us"] == ("s", 1e-6) and UNITS["%"] == ("1", 0.01)
    assert all(UNITS[base] == (base, 1.0) for base, _ in UNITS.values() if base != "bytes/s")
