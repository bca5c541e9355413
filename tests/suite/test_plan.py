"""From plan and fabrics to jobs: pure."""

from __future__ import annotations

import json

import pytest

from fabrics.errors import UserError
from fabrics.model import Fabric
from microbench import registry
from microbench.case import Case
from suite.placement import Place, Seats, dpus, place
from suite.plan import Plan, estimate_s, make_plan, spec, why_nothing
from suite.planfile import allowed, parse
from suite.planvalues import READERS
from tests import jobs

SHM = Fabric("shm", "shm", ("vm",))
LAB = Fabric(
    "eth10g", "tcp", ("h0", "h1"), {h: ("eth10g",) for h in ("h0", "h1", "d0", "d1")}, 10e9, emulated=True, lab="lab"
)
BROKEN = Fabric("eth2g5", "tcp", ("h0", "h1"), {}, 2.5e9, lab="lab", unusable="not root")


def plan(text: str, *fabrics: Fabric, cpus: tuple[int, ...] = (0, 1)) -> Plan:
    return make_plan(parse(jobs.once(text), "x", registry.load()), fabrics, cpus)


def test_one_job_for_each_fabric_rank_count_and_kind() -> None:
    text = "[barrier]\nranks = [2, 3]\n[latency]\nsizes = '8'\n"
    text += "[train]\nmodels = [{model='resnet20', batch=4, image_px=32}]"
    made = plan(text, SHM)
    assert [j.number for j in made.jobs] == [1, 2]
    assert {len(j.hosts): [c.benchmark for c in j.cases] for j in made.jobs} == {
        2: ["barrier", "latency"],
        3: ["barrier"],
    }
    (train,) = made.skips
    assert train.case.id == "train/shm/pure/gloo/ddp/resnet20 32px batch 4/2r"
    assert (train.status, train.reason) == ("unsupported", "gloo has no shared-memory transport")


def test_training_has_jobs_and_budgets_of_its_own() -> None:
    models = "[{model='resnet20', batch=4, image_px=32, budget_s=3}, {model='resnet50', batch=2, image_px=64}]"
    made = plan(f"budget_s = 9\n[barrier]\n[train]\nmodels = {models}", LAB).jobs
    mpi, train = sorted(made, key=lambda j: j.cases[0].benchmark)
    assert [c.benchmark for c in mpi.cases] == ["barrier"]
    assert [c.budget_s for c in train.cases] == [3.0, 9.0]
    assert train.cases[0].options == {"model": "resnet20", "batch": 4, "image_px": 32}


def test_ways_of_a_collective_stand_beside_each_other_at_one_size() -> None:
    ways = "modes = ['blocking', 'in-place']\nalgorithms = ['library', 'ring']\nsync = 'barrier'"
    (job,) = plan(f"[allreduce]\nsizes = '8,16'\n{ways}", SHM).jobs
    assert [case.id.removeprefix("allreduce/shm/pure/mpi/") for case in job.cases] == [
        f"{way}/float32/{size}B/2r"
        for size in (8, 16)
        for way in ("library/barrier sync", "library/in-place barrier sync", "ring/barrier sync")
    ]
    only = plan("[allreduce]\nsizes = '8'\nalgorithms = ['ring']", SHM)
    assert [case.algorithm for case in only.jobs[0].cases] == ["ring"]


def test_launches_are_fresh_jobs_in_turn() -> None:
    made = plan("launches = 3\n[barrier]", SHM, LAB)
    assert [j.launch for j in made.jobs] == [1, 1, 2, 2, 3, 3]
    assert sorted((j.launch, j.fabric.name) for j in made.jobs) == [
        (n, f) for n in (1, 2, 3) for f in ("eth10g", "shm")
    ]
    assert [j.number for j in made.jobs] == [1, 2, 3, 4, 5, 6]


def test_each_launch_has_an_order_of_its_own_that_the_seed_repeats() -> None:
    file = parse("launches = 8\n[barrier]\nranks = [2, 3, 4]", "x", registry.load())

    def orders(seed: int) -> list[list[int]]:
        made = make_plan(file, (SHM,), (0, 1), seed)
        return [[len(j.hosts) for j in made.jobs if j.launch == n] for n in range(1, 9)]

    assert orders(1) == orders(1) != orders(2)
    assert len({tuple(order) for order in orders(1)}) > 1
    assert all(sorted(order) == [2, 3, 4] for order in orders(1))


def test_more_ranks_than_hosts_are_skipped_with_the_reason() -> None:
    made = plan("[barrier]\nranks = [2, 3]", LAB)
    assert [len(j.hosts) for j in made.jobs] == [2]
    (skip,) = made.skips
    assert (skip.status, skip.reason) == ("skipped", "pure recipe: one rank a host, and eth10g joins 2 hosts")


def test_far_more_ranks_than_cores_are_skipped() -> None:
    made = plan("[barrier]\nranks = [16, 17]", SHM)
    assert [len(j.hosts) for j in made.jobs] == [16]
    assert [s.reason for s in made.skips] == ["17 ranks on 2 cores say nothing"]


@pytest.mark.parametrize(
    ("text", "twice", "how"),
    [
        ("[[barrier]]\n[[barrier]]\nbudget_s = 2", "barrier/shm/pure/mpi/library/2r",
         "two [barrier] sections that differ in budget_s alone, which makes no other case"),
        ("[[barrier]]\n[[barrier]]\ndeadline_s = 2", "barrier/shm/pure/mpi/library/2r",
         "two [barrier] sections that differ in deadline_s alone, which makes no other case"),
        ("[[barrier]]\nranks = [17]\n[[barrier]]\nranks = [3, 17]", "barrier/shm/pure/mpi/library/17r",
         "two [barrier] sections"),
        ("[[barrier]]\n[[barrier]]\nsync = 'auto'", "barrier/shm/pure/mpi/library/2r", "two [barrier] sections"),
        ("[[latency]]\nsizes = '8:64'\n[[latency]]\nsizes = '64:1K'", "latency/shm/pure/mpi/library/int8/64B/2r",
         "two [latency] sections"),
        ("[train]\nmodels = [{model = 'resnet20', batch = 4, image_px = 32, budget_s = 1},"
         " {model = 'resnet20', batch = 4, image_px = 32}]", "train/shm/pure/gloo/ddp/resnet20 32px batch 4/2r",
         "one [train] section that differ in budget_s alone, which makes no other case"),
        ("[[overlap_allreduce]]\nsizes = '8'\n[[overlap_allreduce]]\nsizes = '8'\ncompare = ['host']",
         "overlap_allreduce/shm/pure/mpi/library/float32/8B/2r",
         "two [overlap_allreduce] sections that differ in compare alone, which makes no other case"),
    ],
)  # fmt: skip
def test_a_case_that_stands_twice_is_refused_by_what_makes_it_one(text: str, twice: str, how: str) -> None:
    """Of two definitions one was taken in silence."""
    with pytest.raises(UserError) as caught:
        plan(text, SHM)
    assert str(caught.value) == f"plan x: {twice} stands in it twice, in {how}: leave one of them out"


def test_what_a_list_says_again_says_nothing_more() -> None:
    """Sizes were merged, and all else was refused."""
    text = "[allreduce]\nsizes = '8,8'\nranks = [2, 3, 2]\nalgorithms = ['ring', 'ring']\ndtypes = ['int8', 'int8']"
    once = "[allreduce]\nsizes = '8'\nranks = [2, 3]\nalgorithms = ['ring']\ndtypes = ['int8']"
    assert plan(text, SHM) == plan(once, SHM)


# Of every key of a section a value that is not the usual one.
UNUSUAL = {
    "sizes": "'64'", "dtypes": "['float64']", "ranks": "[4]", "fabrics": "['eth10g']",
    "models": "[{model = 'resnet32', batch = 4, image_px = 32}]", "budget_s": "0.25", "deadline_s": "77",
    "min_iterations": "3", "max_iterations": "77", "precision": "0.5", "modes": "['blocking', 'nonblocking']",
    "algorithms": "['library', 'ALGORITHM']", "backends": "['mpi', 'gloo']", "devices": "['cuda']",
    "sync": "'dissemination'", "compare": "['host', 'probes4']", "fractions": "[0.5]", "skews": "[0.5]",
    "outstanding": "[4]", "compute": "['memory']", "placement": "'node'", "workers": "[2]", "chunk": "'64K'",
    "dpu_memory": "'64M'", "dpus": "1", "kernels": "['triad']", "flows": "[{grid = '8x8x8'}]",
}  # fmt: skip
TABLE = registry.load()


@pytest.mark.parametrize(("name", "key"), [(known.name, key) for known in TABLE for key in allowed(known)])
def test_every_key_that_a_section_takes_reaches_its_cases(name: str, key: str) -> None:
    """``devices`` was read, and numbers of the host's memory came out."""
    known = TABLE.get(name)
    given = {"models": "[{model = 'resnet20', batch = 4, image_px = 32}]"} if name == "train" else {}
    given |= {"sizes": "'8'"} if known.sized else {}
    value = UNUSUAL[key].replace("ALGORITHM", known.algorithms[-1] if known.algorithms else "")
    value = "[2]" if key == "ranks" and known.exact_ranks else value

    def cases(keys: dict[str, str]) -> list[object]:
        made = plan("\n".join([f"[{name}]", *(f"{k} = {v}" for k, v in keys.items())]), SHM, LAB)
        return [[(job.fabric.name, job.hosts, job.cpus, job.cases) for job in made.jobs], made.skips]

    only = key == "ranks" and known.exact_ranks and not known.dpus  # the one number that there is
    assert (cases(given | {key: value}) == cases(given)) == bool(only)


def test_no_key_is_without_a_test() -> None:
    assert set(UNUSUAL) == set(READERS)


def test_a_case_for_each_device() -> None:
    text = "sizes = '8,16'\ndevices = ['cpu', 'cuda', 'cuda-staged']"
    host, *loaded = sorted(plan(f"[latency]\n{text}", SHM).jobs, key=lambda job: job.torch)
    assert [(case.device, case.nbytes) for case in host.cases] == [("cpu", 8), ("cpu", 16)]
    (device,) = loaded  # torch, whose threads shall not be beside the host's numbers
    assert [case.id.removeprefix("latency/shm/pure/mpi/library/") for case in device.cases] == [
        f"{name}/int8/{size}B/2r" for name in ("cuda", "cuda-staged") for size in (8, 16)
    ]
    both = plan(f"[allreduce]\nbackends = ['mpi', 'gloo']\n{text}", LAB)
    assert {(case.backend, case.device) for job in both.jobs for case in job.cases} == {
        (backend, device) for backend in ("mpi", "gloo") for device in ("cpu", "cuda", "cuda-staged")
    }


def test_an_odd_number_of_ranks_makes_no_pairs_and_hinders_no_other() -> None:
    made = plan("[message_rate]\nsizes = '8'\nranks = [2, 3, 4]", SHM)
    assert sorted(len(job.hosts) for job in made.jobs) == [2, 4]
    assert [(s.case.ranks, s.status, s.reason) for s in made.skips] == [
        (3, "skipped", "half of the ranks send to the other half: 3 is an odd number of ranks")
    ]


def test_sections_of_other_fabrics_and_other_starts_are_others() -> None:
    text = "[[barrier]]\nfabrics = ['shm']\n[[barrier]]\nfabrics = ['eth10g']\nbudget_s = 2"
    assert {j.fabric.name: [c.budget_s for c in j.cases] for j in plan(text, SHM, LAB).jobs} == {
        "shm": [0.5], "eth10g": [2.0],
    }  # fmt: skip
    (job,) = plan("[[barrier]]\n[[barrier]]\nsync = 'dissemination'", SHM).jobs
    assert [case.mode for case in job.cases] == ["", "dissemination sync"]


@pytest.mark.parametrize(
    ("text", "fabrics", "asked", "said"),
    [
        ("[barrier]\nfabrics = ['eth10g']", (SHM,), ["shm"],
         "plan x is for eth10g alone, and --fabric asks for shm: ask for eth10g, or leave out --fabric"),
        ("[barrier]\nfabrics = ['eth2g5']", (SHM, BROKEN), [],
         "plan x has nothing that can be measured here: eth2g5: not root"),
        ("[barrier]\nranks = [17]", (SHM,), [],
         "plan x has nothing that can be measured here: barrier/shm/pure/mpi/library/17r:"
         " 17 ranks on 2 cores say nothing; see --dry-run"),
    ],
)  # fmt: skip
def test_why_a_plan_has_nothing(text: str, fabrics: tuple[Fabric, ...], asked: list[str], said: str) -> None:
    file = parse(text, "x", registry.load())
    made = make_plan(file, [fabric for fabric in fabrics if not asked or fabric.name in asked], (0, 1))
    assert not made.jobs
    assert why_nothing(made, file, fabrics, asked) == said


def test_unusable_fabrics_are_not_planned() -> None:
    assert [j.fabric.name for j in plan("[barrier]", BROKEN, SHM).jobs] == ["shm"]


def test_offload_is_placed_split() -> None:
    made = plan("[offload_allreduce]\nsizes = '4M'", LAB, SHM)
    (job,) = made.jobs
    assert [case.id for case in job.cases] == ["offload_allreduce/eth10g/pure/mpi/library/float32/4194304B/4r"]
    assert job.hosts == ("h0", "h1", "d0", "d1")
    assert job.roles == ("host", "host", "dpu", "dpu")
    assert job.cpus == ((0,), (1,), (1,), (1,))
    assert [(s.fabric.name, s.reason) for s in made.skips] == [("shm", "no DPUs beside the hosts of this fabric")]
    assert dpus(LAB) == ("d0", "d1")


def offload(text: str, *fabrics: Fabric) -> Plan:
    return plan(f"[offload_allreduce]\nsizes = '4M'\n{text}", *(fabrics or (LAB,)))


def test_every_combination_of_options_is_a_case_of_its_own() -> None:
    text = "fractions = [0.5, 1]\nskews = [0, 0.5]\noutstanding = [1, 4]\ncompute = ['registers', 'memory']"
    (job,) = offload(text).jobs
    assert len(job.cases) == len({case.id for case in job.cases}) == 16
    assert {case.workload for case in job.cases} >= {"", "compute 0.5x", "skew 0.5", "4 outstanding, memory",
                                                     "compute 0.5x, skew 0.5, 4 outstanding, memory"}  # fmt: skip
    last = job.cases[-1]
    assert last.options == {
        "compare": ["host", "probes16", "probes64", "staged", "window"], "fraction": 1, "skew": 0.5, "outstanding": 4,
        "compute": "memory", "placement": "auto", "workers": 1,
    }  # fmt: skip
    assert "/skew 0.5, 4 outstanding, memory/" in last.id


def test_placements_and_workers_take_jobs_of_their_own() -> None:
    split = "[[offload_allreduce]]\nsizes = '8,16'\nworkers = [1, 2]\n"
    made = plan(f"{split}[[offload_allreduce]]\nsizes = '8'\nplacement = 'node'", LAB)
    assert sorted((job.hosts, job.cpus, len(job.cases)) for job in made.jobs) == [
        (("h0", "h1", "d0", "d0", "d1", "d1"), ((0,), (1,), (1,), (1,), (1,), (1,)), 2),
        (("h0", "h1", "d0", "d1"), ((0,), (1,), (0,), (1,)), 1),
        (("h0", "h1", "d0", "d1"), ((0,), (1,), (1,), (1,)), 2),
    ]
    assert {job.flavour for job in made.jobs} == {"pure"}


def test_fewer_dpus_than_hosts_are_told_in_the_id() -> None:
    (job,) = offload("dpus = 1").jobs
    assert (job.hosts, job.roles) == (("h0", "h1", "d0"), ("host", "host", "dpu"))
    assert "/2 hosts on 1 DPU/" in job.cases[0].id
    (skip,) = offload("dpus = 3").skips
    assert skip.reason == "3 DPUs wanted, and 2 ranks are beside 2"


def test_more_hosts_than_have_dpus_are_skipped() -> None:
    (skip,) = offload("ranks = [3]").skips
    assert skip.reason == "3 ranks wanted on hosts with a DPU, and those of eth10g take 2"


def test_a_progress_thread_takes_a_job_of_its_own_at_its_thread_level() -> None:
    text = "[[offload_allreduce]]\nsizes = '8'\ncompare = ['host', 'thread', 'staged']\n"
    made = plan(text + "[[offload_allreduce]]\nsizes = '16'", LAB)
    assert {job.thread_level: [case.nbytes for case in job.cases] for job in made.jobs} == {
        "multiple": [8], "single": [16],
    }  # fmt: skip
    assert made.jobs[0].summary()["thread_level"] in ("single", "multiple")


def test_what_compares_gloo_starts_torch() -> None:
    (job,) = offload("compare = ['host', 'gloo', 'staged']").jobs
    assert job.libraries == ("gloo",)


def test_dpus_are_characterized_in_jobs_of_their_own() -> None:
    made = plan("[dpu]\nkernels = ['triad']\n[offload_allreduce]\nsizes = '8'\nplacement = 'node'", LAB, SHM)
    found = {job.cases[0].benchmark: job for job in made.jobs}
    assert found["dpu"].roles == ("host", "host", "dpu", "dpu") and found["dpu"].torch
    assert found["dpu"].cpus == found["offload_allreduce"].cpus == ((0,), (1,), (0,), (1,))
    assert not found["offload_allreduce"].torch
    assert found["dpu"].cases[0].options == {"kernels": ["triad"]}
    assert made.skips[0].reason == "no DPUs beside the hosts of this fabric"
    few, all_ = (plan(f"[dpu]\nbudget_s = 1\n{text}", LAB).estimate_s for text in ("kernels = ['work']", ""))
    assert few < all_


def test_more_modes_and_more_compute_take_longer() -> None:
    def estimate(text: str) -> float:
        return offload(text + "\nbudget_s = 0.1\nmin_iterations = 8").estimate_s

    few = estimate("compare = ['host', 'staged']")
    assert few < estimate("compare = ['host', 'probes16', 'staged', 'window']")
    assert few < estimate("compare = ['host', 'staged']\nfractions = [4]")
    assert few < estimate("compare = ['host', 'staged']\noutstanding = [4]")
    threaded, probed = (estimate(f"compare = ['host', '{mode}', 'staged']") for mode in ("thread", "probes64"))
    assert probed < threaded


def test_ranks_go_round_the_cores() -> None:
    assert place(SHM, Seats(3), (4, 6)).cpus == ((4,), (6,), (4,))
    assert place(LAB, Seats(2), (0,)) == Place(("h0", "h1"), ("host", "host"), ((0,), (0,)))


def test_a_section_may_name_its_fabrics() -> None:
    made = plan("[barrier]\nfabrics = ['eth10g']", SHM, LAB)
    assert [j.fabric.name for j in made.jobs] == ["eth10g"]
    assert made.skips == ()


def test_estimates_grow_with_size_and_slowness() -> None:
    small, large = (Case("bandwidth", "x", nbytes=n, budget_s=0.1) for n in (8, 1 << 20))
    slow = Fabric("slow", "tcp", ("a", "b"), rate_bits_per_s=1e9)
    assert estimate_s(small, LAB) < estimate_s(large, LAB) < estimate_s(large, slow)
    assert large.deadline_s == 60.0


def test_what_is_too_slow_for_its_fewest_iterations_is_estimated_by_those_it_gets() -> None:
    """A window that takes a minute: its fewest iterations would be ten, it gets one, beside check and warm-up."""
    slow = Fabric("slow", "tcp", ("a", "b"), rate_bits_per_s=1e9)
    huge = Case("bandwidth", "x", nbytes=120 << 20, budget_s=0.5, min_iterations=10)
    each_s = 64 * (120 << 20) * 8 / 1e9
    assert 3 * each_s < estimate_s(huge, slow) < 4 * each_s


def test_deadlines_are_beyond_estimates() -> None:
    for job in plan("[bandwidth]\nsizes = '8,1M,16M'", LAB).jobs:
        for case in job.cases:
            assert case.deadline_s > 5 * estimate_s(case, LAB)


def test_a_plan_may_set_deadlines_at_its_top_and_in_a_section() -> None:
    text = "deadline_s = 7\n[barrier]\n[latency]\nsizes = '8'\ndeadline_s = 2.5\n[allreduce]\nsizes = '8'"
    (job,) = plan(text, SHM).jobs
    assert {case.benchmark: case.deadline_s for case in job.cases} == {"barrier": 7, "latency": 2.5, "allreduce": 7}
    train = "[train]\nmodels = [{model='resnet20', batch=4, image_px=32}]\ndeadline_s = 9"
    assert [case.deadline_s for job in plan(train, LAB).jobs for case in job.cases] == [9]


def test_the_spec_survives_json() -> None:
    (job,) = plan("[barrier]", LAB).jobs
    data = json.loads(json.dumps(spec(job, ("m",), "small", 1)))
    assert Fabric.from_dict(data["fabric"]) == LAB
    assert tuple(Case(**case) for case in data["cases"]) == job.cases


@pytest.mark.parametrize("launches", [1, 2])
def test_the_estimate_is_the_sum_over_jobs(launches: int) -> None:
    one = plan("[barrier]", SHM).estimate_s
    assert plan(f"launches = {launches}\n[barrier]", SHM).estimate_s == pytest.approx(launches * one)
