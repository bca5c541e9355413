"""Times and shares of the command line: what is refused, and that the refusal says which bound it is."""

from __future__ import annotations

import argparse

import pytest

from suite.arguments import MOST, count, duration, seconds, share, whole


@pytest.mark.parametrize("text", ["86401", "1e400", "inf"])
def test_more_seconds_than_a_day_are_too_long(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=f"'{text}' is too long: at most 86400 s, a day"):
        seconds(text)


@pytest.mark.parametrize("text", ["0", "-1", "nan", "soon", "-inf"])
def test_no_number_of_seconds_is_named(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=f"'{text}' is not a number of seconds above 0, up to a day"):
        seconds(text)


@pytest.mark.parametrize("text", ["100000h", "360000000s", "99999h1s", "9" * 400 + "s"])
def test_a_budget_that_is_too_long_is_told_so(text: str) -> None:
    """Well-formed times of many digits were called no times at all."""
    with pytest.raises(argparse.ArgumentTypeError, match=f"'{text}' is too long: at most 99999h"):
        duration(text)


def test_the_longest_times_are_taken() -> None:
    assert (seconds("86400"), duration("99999h"), duration("100000m")) == (86400.0, 99999 * 3600.0, 6e6)


@pytest.mark.parametrize("text", ["1", "1.0", "-0.1", "nan", "5%"])
def test_a_share_says_that_it_is_below_1(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=f"'{text}' is not a part from 0 to below 1"):
        share(text)


@pytest.mark.parametrize("text", ["2147483648", "9223372036854775808", "9" * 5000])
def test_a_count_that_no_int_holds_is_too_large(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is too large: at most 2147483647") as told:
        count(text)
    assert len(str(told.value)) < 100
    assert (count(str(MOST)), count("007"), whole("0")) == (MOST, 7, 0)


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "", "\u0663", "1e3"])
def test_what_is_no_count_is_told_so(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not a whole number from 1 on"):
        count(text)


def test_a_seed_beyond_63_bits_is_too_large() -> None:
    assert whole(str(2**63 - 1)) == 2**63 - 1
    with pytest.raises(argparse.ArgumentTypeError, match="is too large: at most 9223372036854775807"):
        whole(str(2**63))
