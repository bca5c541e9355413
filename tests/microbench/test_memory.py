"""Both figures are told before anything is allocated."""

from __future__ import annotations

from microbench.memory import available_bytes, shortage

GIB = 1 << 30


def test_what_fits_is_not_complained_of() -> None:
    assert shortage(GIB, ("a", "b"), False, 6 * GIB) == ""
    assert shortage(0, ("a", "a", "a"), False, 1) == ""


def test_ranks_that_share_a_host_need_more() -> None:
    told = shortage(GIB, ("a", "a", "b"), False, 6 * GIB)
    assert told == "needs 8.59 GB for 2 ranks on a host, of which 6.44 GB are available"


def test_hosts_of_a_lab_share_one_memory() -> None:
    assert shortage(GIB, ("h0", "h1"), True, 6 * GIB)
    assert not shortage(GIB, ("h0", "h1"), True, 12 * GIB)


def test_a_process_has_a_limit_of_its_own() -> None:
    assert shortage(GIB, ("a", "a", "a"), False, 64 * GIB, 5 * GIB) == ""  # three processes, a limit for each
    told = shortage(GIB, ("a",), False, 64 * GIB, 3 * GIB)
    assert told == "needs 4.29 GB a rank, of which a process's limit (ulimit -v) leaves 3.22 GB"


def test_this_machine_has_memory() -> None:
    assert available_bytes() > 1 << 20
