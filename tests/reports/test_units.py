from __future__ import annotations

import pytest

from reports import units


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(None, "-"), (0, "0 B"), (8, "8 B"), (1000, "1000 B"), (1024, "1 KiB"), (65536, "64 KiB"), (65537, "65537 B"),
     (1536, "1536 B"), (4 << 20, "4 MiB"), (3 << 19, "1536 KiB"), (2 << 30, "2 GiB")],
)  # fmt: skip
def test_sizes_are_exact(nbytes: int | None, text: str) -> None:
    assert units.size(nbytes) == text


def test_one_mebibyte_in_a_millisecond() -> None:
    rate = 2**20 / 1e-3
    assert units.MB_PER_S.text(rate) == "1048.576"
    assert units.GBIT_PER_S.text(rate) == "8.389"


@pytest.mark.parametrize(
    ("seconds", "us"),
    [(0.0, "0.000"), (0.4e-6, "0.400"), (9.9994e-6, "9.999"), (62.034e-6, "62.03"), (0.0014071, "1407.1"),
     (0.254675, "254675"), (-2.5e-6, "-2.500")],
)  # fmt: skip
def test_times_have_about_four_digits(seconds: float, us: str) -> None:
    assert units.US.text(seconds) == us


def test_interval_ends_share_the_values_decimals() -> None:
    assert units.MS.text(0.0099961, like=0.0250) == "10.00"
    assert units.US.text(-1e-12, like=1e-6) == "0.000", "no negative zero"


def test_volumes_rates_durations_and_counts() -> None:
    assert units.volume(67_108_864) == "67.1 MB"
    assert units.volume(12) == "12 B"
    assert units.rate(2.5e9) == "2.5 Gbit/s"
    assert units.rate(None) == "none declared"
    assert (units.duration(45.4), units.duration(723), units.duration(7500)) == ("45 s", "12 min 3 s", "2 h 5 min")
    assert (units.count(1, "case"), units.count(2, "case"), units.count(0, "warning")) == (
        "1 case",
        "2 cases",
        "0 warnings",
    )
    assert units.runs([3, 1, 2, 7, 2]) == "1-3, 7"
    assert units.runs([]) == ""


def test_a_second_base_unit_is_not_taken_for_the_first() -> None:
    assert units.unit_for("s") is units.US
    assert units.unit_for("1/s").text(12.5) == "12.50"
    assert units.time_unit(0.0099) is units.US
    assert units.time_unit(0.01) is units.MS
