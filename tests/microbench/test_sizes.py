"""One strict grammar of sizes."""

from __future__ import annotations

import pytest

from fabrics.errors import UserError
from microbench.sizes import parse_size, parse_sizes

GOOD = {"8": 8, "0": 0, "1k": 1024, "1K": 1024, "1KiB": 1024, "1kB": 1024, "1M": 1 << 20, "2G": 2 << 30, "3": 3}


@pytest.mark.parametrize(("token", "nbytes"), GOOD.items())
def test_sizes(token: str, nbytes: int) -> None:
    assert parse_size(token) == nbytes


@pytest.mark.parametrize("token", ["-1", "1.5M", "12junk", "", "M", "1 M", "0x10", "1e3", "4kbit", "17179869185g"])
def test_malformed_sizes_are_named(token: str) -> None:
    with pytest.raises(UserError, match="size") as caught:
        parse_size(token)
    assert repr(token) in str(caught.value)


def test_ranges_double_and_lists_join() -> None:
    assert parse_sizes("8:64") == (8, 16, 32, 64)
    assert parse_sizes("0,1,8:16,3") == (0, 1, 8, 16, 3)
    assert parse_sizes("3:13") == (3, 6, 12)
    assert parse_sizes("8,8,8") == (8,)


@pytest.mark.parametrize(
    ("text", "token"), [("4M:1M", "'4M:1M'"), ("1,,2", "''"), ("0:8", "'0:8'"), ("8:16:32", "'16:32'")]
)
def test_bad_ranges_are_named(text: str, token: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_sizes(text)
    assert token in str(caught.value)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("0:64", ("0,1:64", "0,8:64")),
        ("0:12K", ("0,1:12K", "0,8:12K")),
        ("0:8", ("0,1:8", "0,8")),
        ("0:4", ("0,1:4",)),
        ("0:1", ("0,1",)),
        ("0:0", ("0",)),
    ],
)
def test_a_range_from_nothing_is_told_what_to_write_that_can_be_read(text: str, advice: tuple[str, ...]) -> None:
    """Advice that was an error itself: sizes from 1 on are no whole number of most types."""
    with pytest.raises(UserError) as caught:
        parse_sizes(text)
    said = str(caught.value).partition("write ")[2].removesuffix(" where elements have several bytes")
    assert tuple(said.split(", or ")) == advice
    for written in advice:
        assert parse_sizes(written)[0] == 0
    if len(advice) > 1:
        assert all(size % 8 == 0 for size in parse_sizes(advice[1]))
