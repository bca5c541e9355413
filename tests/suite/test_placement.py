"""Where ranks are put on named hosts, by which recipe, and what each of them is told: pure."""

from __future__ import annotations

import json
import os

import pytest

from fabrics.errors import CannotRun
from fabrics.model import Fabric
from microbench import registry
from microbench.case import Case
from suite import binding
from suite.placement import Place, Seats, Target, most_hosts, pairs, place, spread, why_not
from suite.plan import Plan, make_plan
from suite.planfile import parse
from suite.session import by_plan
from suite.settings import own, settings
from tests import jobs

HOSTS = ("a", "b", "c")
ETH = Fabric("eth", "tcp", HOSTS, {host: ("eth0",) for host in HOSTS})
SHM = Fabric("shm", "shm", ("a",))
RAILS = Fabric("ib", "ib", ("a", "b"), {host: ("mlx5_0:1", "mlx5_1:1") for host in ("a", "b")}, rails=(0, 1))
UNLIKE = Fabric("eth", "tcp", ("a", "b"), {"a": ("eth0",), "b": ("ens1",)})


def plan(text: str, slots: dict[str, int], *fabrics: Fabric, **target: bool | str) -> Plan:
    made = Target(slots=slots, **target)  # type: ignore[arg-type]
    return make_plan(parse(jobs.once(text), "x", registry.load()), fabrics or (ETH,), (0, 1), 1, made)


def test_every_host_has_one_rank_before_any_has_two() -> None:
    slots = {"a": 2, "b": 1, "c": 3}
    got = {ranks: "".join(spread(HOSTS, slots, ranks)) for ranks in (2, 3, 4, 5, 6)}
    assert got == {2: "ab", 3: "abc", 4: "aabc", 5: "aabcc", 6: "aabccc"}
    with pytest.raises(ValueError, match="7 ranks"):
        spread(HOSTS, slots, 7)


def test_ranks_of_named_hosts_find_their_processors_there() -> None:
    named = Target(slots={"a": 2, "b": 2, "c": 2})
    assert place(ETH, Seats(4), (0, 1), named) == Place(("a", "a", "b", "c"), ("host",) * 4, ((),) * 4)
    dpu = Fabric("eth", "tcp", ("a", "b"), {host: ("eth0",) for host in ("a", "b", "x", "y")})
    found = place(dpu, Seats(2, 2), (0, 1), Target(slots=dict.fromkeys("abxy", 1)))
    assert found == Place(("a", "b", "x", "y"), ("host", "host", "dpu", "dpu"), ((),) * 4)


def lab(hosts: int, dpus: int) -> Fabric:
    members = [*(f"h{n}" for n in range(hosts)), *(f"d{n}" for n in range(dpus))]
    devices = {member: ("eth1g",) for member in members}
    return Fabric("eth1g", "tcp", tuple(members[:hosts]), devices, 1e9, emulated=True, lab="lab")


@pytest.mark.parametrize(
    ("how", "cpus", "cores"),
    [
        ("split", (0, 1), "0 1 1 1 1 1"),
        ("split", (0, 1, 2), "0 1 2 1 2 1"),
        ("split", (3,), "3 3 3 3 3 3"),
        ("node", (0, 1), "0 1 0 0 1 0"),
        ("accel", (0, 1, 2), "0 1 2 0 1 2"),
    ],
)
def test_split_gives_the_first_host_a_core_of_its_own_and_node_one_to_each_pair(
    how: str, cpus: tuple[int, ...], cores: str
) -> None:
    found = place(lab(3, 3), Seats(3, 3, how=how), cpus)
    assert found.hosts == ("h0", "h1", "h2", "d0", "d1", "d2")
    assert found.cpus == tuple((int(core),) for core in cores.split())


def test_workers_of_a_dpu_follow_each_other_on_its_node() -> None:
    found = place(lab(2, 2), Seats(2, 2, workers=2, how="node"), (0, 1))
    assert found.hosts == ("h0", "h1", "d0", "d0", "d1", "d1")
    assert found.roles == ("host",) * 2 + ("dpu",) * 4
    assert found.cpus == ((0,), (1,), (0,), (0,), (1,), (1,))


def test_one_dpu_may_serve_several_hosts() -> None:
    assert place(lab(3, 3), Seats(3, 1, how="node"), (0, 1)).hosts == ("h0", "h1", "h2", "d0")
    assert place(lab(3, 3), Seats(3, 2, how="node"), (0, 1)).cpus == ((0,), (1,), (0,), (0,), (1,))


def test_hosts_are_beside_their_own_dpus() -> None:
    members = dict.fromkeys(("a", "b", "c", "x", "y"), ("eth0",))
    fabric, slots = Fabric("eth", "tcp", ("a", "b", "c"), members), dict.fromkeys("abcxy", 2)
    target = Target(slots=slots, dpus={"b": "x", "c": "y"})
    assert pairs(fabric, target) == {"b": "x", "c": "y"}
    assert place(fabric, Seats(2, 2), (0, 1), target).hosts == ("b", "c", "x", "y")
    assert place(fabric, Seats(3, 2), (0, 1), target).hosts == ("b", "b", "c", "x", "y")
    assert most_hosts(fabric, 64, target) == 2
    assert most_hosts(lab(8, 8), 2) == 2
    assert most_hosts(lab(8, 8), 64) == 8
    assert most_hosts(lab(2, 0), 2) == 2


@pytest.mark.parametrize(
    ("seats", "slots", "dpus", "said"),
    [
        (Seats(4, 2), {}, {"b": "x", "c": "y"},
         "4 ranks wanted on hosts with a DPU, and those of eth take 2; a has none"),
        (Seats(2, 1), {}, {"a": "x"}, "of the hosts of eth only a has a DPU: it takes 2"),
        (Seats(2, 2), {}, {"a": "z"}, "no DPUs beside the hosts of this fabric"),
        (Seats(3, 3), {"b": 2}, {"b": "x", "c": "y"}, "3 DPUs wanted, and 3 ranks are beside 2"),
        (Seats(2, 2, workers=2), {}, {"b": "x", "c": "y"}, "2 workers wanted on x, which takes 1: give it more slots"),
    ],
)  # fmt: skip
def test_what_has_no_place_beside_dpus_is_told(
    seats: Seats, slots: dict[str, int], dpus: dict[str, str], said: str
) -> None:
    members = dict.fromkeys(("a", "b", "c", "x", "y"), ("eth0",))
    fabric = Fabric("eth", "tcp", ("a", "b", "c"), members)
    target = Target(slots=dict.fromkeys("abcxy", 1) | slots, dpus=dpus)
    assert why_not(Case("offload_allreduce", "eth"), seats, fabric, 2, target) == ("skipped", said)


def test_hosts_that_several_ranks_share_take_the_recipe_of_a_job() -> None:
    made = plan("[barrier]\nranks = [2, 4]", {"a": 2, "b": 1, "c": 1})
    assert {len(job.hosts): (job.flavour, job.cases[0].id.split("/")[2]) for job in made.jobs} == {
        2: ("pure", "pure"), 4: ("job", "job"),
    }  # fmt: skip


def test_more_ranks_than_slots_are_skipped_and_told() -> None:
    (skip,) = plan("[barrier]\nranks = [5]", {"a": 2, "b": 1, "c": 1}).skips
    assert (skip.status, skip.reason) == (
        "skipped", "5 ranks wanted, and the hosts of eth take 4: give them more slots",
    )  # fmt: skip


def test_a_network_within_one_host_is_refused_unless_asked() -> None:
    slots, alone = {"a": 4}, Fabric("eth", "tcp", ("a",), {"a": ("eth0",)})
    (skip,) = plan("[barrier]", slots, alone).skips
    assert skip.reason == "all ranks are on a: their bytes need not cross eth; --same-host measures it"
    (job,) = plan("[barrier]", slots, alone, same_host=True).jobs
    assert (job.hosts, job.flavour) == (("a", "a"), "pure")
    inside = (SHM, Fabric("tcp-lo", "tcp", ("a",), {"a": ("lo",)}))
    assert {job.fabric.name for job in plan("[barrier]", slots, *inside).jobs} == {"shm", "tcp-lo"}


def test_a_library_without_a_recipe_is_unsupported_before_it_is_launched() -> None:
    opa = Fabric("opa", "opa", ("a", "b"), {host: ("hfi1_0:1",) for host in ("a", "b")})
    slots = {"a": 2, "b": 1}
    (skip,) = plan("[barrier]\nranks = [3]", slots, Fabric("cxi", "cxi", ("a", "b"), {
        host: ("cxi0",) for host in ("a", "b")}), backend="openmpi").skips  # fmt: skip
    assert (skip.status, skip.case.recipe) == ("unsupported", "job")
    assert "openmpi-ofi has no shared memory beside cxi" in skip.reason
    assert plan("[barrier]\nranks = [3]", slots, opa, backend="openmpi").jobs


def test_settings_that_differ_are_each_ranks_own() -> None:
    rails = settings(RAILS, ("mpich",), "job", ("a", "a", "b", "b"))
    assert dict(rails.shared) == {"UCX_TLS": "rc_x,sm,self"}
    devices = [own(rails.by_rank, rank) for rank in range(4)]
    assert devices == [{"UCX_NET_DEVICES": f"mlx5_{rank % 2}:1"} for rank in range(4)]
    assert len(json.loads(rails.by_rank)["sets"]) == 2
    unlike = settings(UNLIKE, ("openmpi",), "pure", ("a", "b"))
    assert "OMPI_MCA_btl" in unlike.shared
    assert own(unlike.by_rank, 1) == {"OMPI_MCA_btl_tcp_if_include": "ens1"}
    alike = settings(ETH, ("mpich",), "pure", HOSTS)
    assert (alike.by_rank, own("", 0)) == ("", {})


def test_a_place_is_a_core_before_it_is_a_thread() -> None:
    paired = {0: 0, 1: 0, 2: 2, 3: 2}  # neighbours share a core
    far = {0: 0, 1: 1, 2: 0, 3: 1}
    assert [binding.place(rank, paired, paired) for rank in range(5)] == [0, 2, 1, 3, 0]
    assert [binding.place(rank, far, far) for rank in range(4)] == [0, 1, 2, 3]
    assert [binding.place(rank, (5, 7), {}) for rank in range(3)] == [5, 7, 5]


def test_cores_are_told_by_the_kernel(tmp_path: object) -> None:
    from pathlib import Path

    for cpu, text in ((0, "0,4\n"), (4, "0,4\n"), (1, "1-2\n")):
        folder = Path(str(tmp_path)) / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(text)
    assert binding.cores((0, 1, 4, 9), Path(str(tmp_path))) == {0: 0, 1: 1, 4: 0, 9: 9}


def test_a_process_takes_its_place() -> None:
    before = os.sched_getaffinity(0)
    try:
        binding.bind("+0:+1", 1)
        assert os.sched_getaffinity(0) == {binding.place(1, before, binding.cores(before))}
    finally:
        os.sched_setaffinity(0, before)
    for cpus, rank in (("", 0), ("+0", 3)):
        binding.bind(cpus, rank)
    assert os.sched_getaffinity(0) == before


def test_hosts_keep_the_names_that_they_were_given() -> None:
    assert by_plan(["n1.site", "n1.site", "n2.site"], ("a", "a", "b")) == ("a", "a", "b")
    assert by_plan(["vm", "vm"], ("localhost", "localhost")) == ("vm", "vm")
    assert by_plan(["vm"], ()) == ("vm",)


@pytest.mark.parametrize(
    ("found", "planned", "said"),
    [
        (["x", "x"], ("a", "b"), "ranks 0 and 1 were to run on a and on b: both run on x"),
        (["x", "y"], ("a", "a"), "ranks 0 and 1 were to run on a: they run on x and on y"),
        (["x", "y", "x"], ("a", "b", "b"), "ranks 0 and 2 were to run on a and on b: both run on x"),
    ],
)
def test_ranks_that_are_elsewhere_are_told(found: list[str], planned: tuple[str, ...], said: str) -> None:
    with pytest.raises(CannotRun, match=f"^{said}$"):
        by_plan(found, planned)
