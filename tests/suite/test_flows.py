"""Flows in plans: a case for each on each number of ranks, with a place, an id and an estimate of its own."""

from __future__ import annotations

import pytest

from fabrics.errors import UserError
from fabrics.model import Fabric
from microbench import registry
from suite import flows
from suite.outline import told
from suite.plan import Plan, estimate_s, make_plan, why_nothing
from suite.planfile import parse
from training.cfd.options import Options

SHM = Fabric("shm", "shm", ())
SLOW = Fabric(
    "eth1g", "tcp", ("h0", "h1"), {"h0": ("e0",), "h1": ("e1",)}, rate_bits_per_s=1e8, emulated=True, lab="lab"
)


def plan(text: str, *fabrics: Fabric) -> Plan:
    return make_plan(parse(f"launches = 1\n{text}", "x", registry.load()), fabrics or (SHM,), (0, 1))


def test_a_section_without_flows_solves_the_usual_one() -> None:
    (job,) = plan("[cfd]").jobs
    (case,) = job.cases
    assert (case.id, case.ranks) == ("cfd/shm/pure/mpi/library/euler 64x64x64/2r", 2)
    assert Options.of(case.options) == Options()
    assert not job.torch


def test_every_flow_on_every_number_of_ranks() -> None:
    text = (
        "[cfd]\nranks = [1, 2]\nbudget_s = 3\nflows = [{grid = '16x16x8', budget_s = 7}, {grid = '8x8x8', cfl = 0.3}]"
    )
    found = {(case.workload, case.ranks, case.budget_s) for job in plan(text).jobs for case in job.cases}
    assert found == {(w, n, b) for w, b in (("euler 16x16x8", 7.0), ("euler 8x8x8 cfl 0.3", 3.0)) for n in (1, 2)}


def test_a_dry_run_names_modes_and_flow() -> None:
    (job,) = plan("[cfd]\nflows = [{grid = '8x8x8', compare = ['blocking', 'probes']}]").jobs
    assert told(job.cases) == "1 cfd (blocking/probes; euler 8x8x8)"


def test_a_slower_fabric_and_a_larger_grid_are_estimated_to_take_longer() -> None:
    (small,), (large,) = (
        job.cases for grid in (48, 96) for job in plan(f"[cfd]\nflows = [{{grid = '{grid}x{grid}x{grid}'}}]").jobs
    )
    assert estimate_s(small, SHM) < estimate_s(small, SLOW)
    assert estimate_s(small, SHM) < estimate_s(large, SHM)
    assert flows.at_most_s(small, 1e9) is not None


def test_flows_that_are_one_case_are_refused() -> None:
    with pytest.raises(UserError, match=r"stands in it twice, .* that differ in steps alone"):
        plan("[cfd]\nflows = [{grid = '8x8x8', steps = 2}, {grid = '8x8x8', steps = 4}]")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("flows = [{grid = '8x8'}]", "plan x: [cfd]: cfd: grid is '8x8': cells in x, y and z"),
        ("flows = [{mesh = '8x8x8'}]", "plan x: [cfd]: cfd has no option 'mesh'"),
        ("flows = '8x8x8'", "plan x: [cfd]: flows = '8x8x8': flows takes a list such as"),
        ("flows = [{budget_s = 0}]", "a flow: budget_s = 0: budget_s takes seconds"),
        ("sizes = '8'", "plan x: [cfd] has no 'sizes': allowed are flows, ranks"),
        ("deadline_s = 5\nflows = [{budget_s = 6}]", "deadline_s = 5 is below budget_s = 6"),
        ("ranks = [0]", "ranks takes a list of whole numbers"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(text: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        plan(f"[cfd]\n{text}")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_networks_are_the_fabrics_that_join_hosts() -> None:
    loopback = Fabric("tcp-lo", "tcp", ("localhost",), {"localhost": ("lo",)})
    made = plan("[cfd]\nfabrics = ['networks']", SHM, loopback, SLOW)
    assert [job.fabric.name for job in made.jobs] == ["eth1g"]
    both = plan("[cfd]\nfabrics = ['networks', 'shm']", SHM, loopback, SLOW)
    assert {job.fabric.name for job in both.jobs} == {"eth1g", "shm"}
    file = parse("[cfd]\nfabrics = ['networks']", "x", registry.load())
    assert file.sections[0].named == ()
    assert why_nothing(plan("[cfd]\nfabrics = ['networks']", SHM), file, (SHM,)).endswith("no network joins hosts")


def test_other_cases_are_no_flows() -> None:
    (job,) = plan("[latency]\nsizes = '8'").jobs
    assert flows.at_most_s(job.cases[0], 1e9) is None
