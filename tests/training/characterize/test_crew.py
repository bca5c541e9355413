"""Who is measured when, and which ranks make a link: pure."""

from __future__ import annotations

import pytest

from microbench.case import Unsupported
from training.characterize.crew import Crew, Seat, check
from training.characterize.links import cores_apart

ROLES = ("host", "host", "dpu", "dpu")


def crew(*machines: str, roles: tuple[str, ...] = ROLES, seats: tuple[Seat, ...] = ()) -> Crew:
    return Crew(roles, machines, seats or (Seat(),) * len(roles), False)


def test_one_machine_measures_one_rank_at_a_time_hosts_and_dpus_in_turns() -> None:
    assert crew(*("here",) * 4).turns == ((0,), (2,), (1,), (3,))
    few = crew(*("here",) * 3, roles=("host", "host", "dpu"))
    assert few.turns == ((0,), (2,), (1,))


def test_machines_of_their_own_measure_together() -> None:
    assert crew("a", "b", "c", "d").turns == ((0, 2, 1, 3),)
    assert crew("a", "b", "a", "b").turns == ((0, 1), (2, 3))


def test_links_are_those_of_the_first_of_each() -> None:
    assert crew(*("here",) * 4).pairs == {"host_host": (0, 1), "host_dpu": (0, 2), "dpu_dpu": (2, 3)}
    small = crew("a", "b", roles=("host", "dpu"))
    assert small.pairs == {"host_host": None, "host_dpu": (0, 1), "dpu_dpu": None}


def test_workers_of_one_dpu_are_no_link_where_another_is_there() -> None:
    two = crew("a", "b", "c", "c", "d", "d", roles=("host", "host", "dpu", "dpu", "dpu", "dpu"))
    assert two.pairs["dpu_dpu"] == (2, 4)
    seats = tuple(Seat(f"lab/{name}") for name in ("h0", "h1", "d0", "d0", "d1", "d1"))
    lab = crew(*("this machine",) * 6, roles=("host", "host", *("dpu",) * 4), seats=seats)
    assert lab.pairs["dpu_dpu"] == (2, 4)


@pytest.mark.parametrize("roles", [(), ("host",) * 4, ("dpu",) * 4, ("host", "dpu")])
def test_a_job_without_both_roles_says_what_to_give(roles: tuple[str, ...]) -> None:
    with pytest.raises(Unsupported, match=r"roles are .*: give each of its 4 ranks one, .* --roles host,host,dpu,dpu"):
        check(roles, 4)
    check(ROLES, 4)


def test_busy_pairs_are_kept_off_one_core() -> None:
    here = ("m",) * 4
    assert cores_apart(((0,), (1,), (0,), (1,)), here, (0, 2)) == (0, 1)
    assert cores_apart(((0,), (1,), (0,), (1,)), here, (0, 1)) is None
    assert cores_apart(((0, 1),) * 4, here, (2, 3)) == (0, 1)
    assert cores_apart(((5,),) * 4, here, (2, 3)) is None  # there is but one
    assert cores_apart(((0,),) * 2, ("a", "b"), (0, 1)) is None  # processor 0 of two machines
