"""Plan files are strict, and the tiers are plan files that parse."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabrics.errors import UserError
from microbench import registry
from microbench.registry import Registry
from microbench.stats import FEWEST_LAUNCHES
from suite.planfile import TIERS, parse, read_plan, read_tier


@pytest.fixture(scope="module")
def table() -> Registry:
    return registry.load()


@pytest.mark.parametrize("tier", TIERS)
def test_tiers_parse(tier: str, table: Registry) -> None:
    file = read_tier(tier, table)
    usual = {"latency", "bandwidth", "bibw", "allreduce", "broadcast", "barrier", "offload_allreduce", "train"}
    assert usual <= {section.benchmark for section in file.sections}
    assert file.launches >= 1


def test_common_values_reach_every_section(table: Registry) -> None:
    file = parse('budget_s = 2\n[barrier]\nranks = [2, 3]\n[latency]\nsizes = "8:32"\nbudget_s = 3', "x", table)
    barrier, latency = file.sections
    assert (barrier.budget_s, barrier.ranks, latency.budget_s, latency.sizes) == (2.0, (2, 3), 3.0, (8, 16, 32))


def test_a_benchmark_may_have_several_sections(table: Registry) -> None:
    assert parse("[barrier]", "x", table).launches == FEWEST_LAUNCHES  # so that verdicts can be had
    file = parse("[[barrier]]\nranks = [2]\n[[barrier]]\nranks = [3]\nbudget_s = 1", "x", table)
    assert [(s.benchmark, s.ranks, s.budget_s) for s in file.sections] == [
        ("barrier", (2,), 0.5),
        ("barrier", (3,), 1.0),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[latncy]\nsizes = '8'", "unknown benchmark 'latncy': one of allgather"),
        ("[latency]\nsize = '8'", "[latency] has no 'size': allowed are sizes"),
        ("[latency]", "[latency] needs sizes"),
        ("[latency]\nsizes = '8,12junk'", "'12junk'"),
        ("[allreduce]\nsizes = '8'\ndtypes = ['float99']", "'float99': one of float32"),
        ("[allreduce]\nsizes = '8'\nalgorithms = ['nope']", "no 'nope' among its algorithms: library, ring, "),
        ("[broadcast]\nsizes = '8'\nmodes = ['in-place']", "no 'in-place' among its modes: blocking, nonblocking"),
        ("[allreduce]\nsizes = '8'\nmodes = 'blocking'", "modes = 'blocking': modes takes a list such as"),
        ("[latency]\nsizes = '8'\nalgorithms = ['ring']", "[latency] has no 'algorithms': allowed are sizes"),
        (
            "[latency]\nsizes = '8'\ndevices = ['gpu']",
            "devices = ['gpu']: devices takes a list of cpu, cuda, cuda-staged",
        ),
        ("[latency]\nsizes = '8'\nbackends = ['gloo']", "[latency] has no 'backends': allowed are sizes"),
        (
            "[allreduce]\nsizes = '8'\nalgorithms = ['ring']\nmodes = ['nonblocking']",
            "plan x: [allreduce]: modes are of the library's own algorithm, which its algorithms leave out:"
            " add 'library' to algorithms, or leave out modes",
        ),
        (
            "[allreduce]\nsizes = '8'\nbackends = ['gloo']\nmodes = ['blocking', 'in-place']",
            "modes are of MPI's own calls, which its backends leave out: add 'mpi' to backends, or leave out modes",
        ),
        (
            "[allreduce]\nsizes = '8'\nbackends = ['gloo']\nalgorithms = ['library', 'ring']",
            "algorithms are schedules of MPI's messages, which its backends leave out: add 'mpi' to backends, or leave",
        ),
        ("[barrier]\ndevices = ['cuda']", "[barrier] has no 'devices': allowed are ranks"),
        ("[overlap_allreduce]\nsizes = '8'\ndevices = ['cuda']", "[overlap_allreduce] has no 'devices': allowed are"),
        ("[barrier]\nranks = [0]", "[barrier]: ranks = [0]: ranks takes a list of whole numbers"),
        ("[barrier]\nranks = []", "ranks = []"),
        ("[barrier]\nbudget_s = -1", "budget_s = -1: budget_s takes seconds"),
        ("[barrier]\nbudget_s = nan", "budget_s = nan"),
        ("[barrier]\ndeadline_s = 0", "[barrier]: deadline_s = 0: deadline_s takes seconds"),
        ("deadline_s = 'soon'\n[barrier]", "plan x: deadline_s = 'soon': deadline_s takes seconds"),
        ("[barrier]\nbudget_s = inf", "budget_s = inf"),
        ("[barrier]\nbudget_s = 1e-9", "budget_s = 1e-09"),
        ("[barrier]\nmin_iterations = 100\nmax_iterations = 10", "min_iterations 100 is above 10"),
        ("launches = true\n[barrier]", "launches = True"),
        ("lunches = 2\n[barrier]", "at its top there is no 'lunches': allowed are launches, fabrics"),
        ("[latency]\nsizes = 8", "sizes = 8: sizes takes a text"),
        ("[allreduce]\nsizes = '3'", "plan x: [allreduce]: size 3 B is not a multiple of 4 B, the size of float32"),
        ("[train]", "[train] needs models"),
        ("[train]\nsizes = '8'", "[train] has no 'sizes': allowed are models"),
        ("[latency]\nsizes = '8'\nmodels = [{model = 'resnet20'}]", "[latency] has no 'models'"),
        ("[barrier]\nsizes = '8'", "[barrier] has no 'sizes': allowed are ranks"),
        ("[barrier]\ndtypes = ['int8']", "[barrier] has no 'dtypes'"),
        ("sizes = '8'\n[latency]", "at its top there is no 'sizes'"),
        ("budget_s = nan\n[barrier]", "plan x: budget_s = nan: budget_s takes seconds"),
        ("budget_s = 1e6\n[barrier]", "budget_s takes seconds, from 0.001 to 86400 (a day)"),
        (
            "[barrier]\nprecision = 1",
            "precision = 1: precision takes a half width from 0 (never stop early) to below 1",
        ),
        (
            "[barrier]\nsync = ['barrier']",
            "sync = ['barrier']: sync takes one of auto, barrier, dissemination, round-t",
        ),
        ("[barrier]\nsync = ['barrier']", "for several ways write a [[section]] for each"),
        ("[latency]\nsizes = '0:8'", "write 0,1:8"),
        ("[barrier]\ndeadline_s = 0.4", "[barrier]: deadline_s = 0.4 is below budget_s = 0.5"),
        ("deadline_s = 3\nbudget_s = 4\n[barrier]", "[barrier]: deadline_s = 3 is below budget_s = 4"),
        (
            "deadline_s = 3\n[train]\nmodels = [{model = 'resnet20', budget_s = 4}]",
            "deadline_s = 3 is below budget_s = 4",
        ),
        ("launches = 1000000\n[barrier]", "launches takes a whole number from 1 to 1000"),
        ("[train]\nmodels = [{model = 'resnet20', budget_s = nan}]", "budget_s = nan: budget_s takes seconds"),
        ("[train]\nmodels = [{model = 'vgg'}]", "plan x: [train]: train: unknown model 'vgg': one of resnet18"),
        ("[train]\nmodels = [{model = 'resnet20', batch = 0}]", "batch"),
        ("[train]\nmodels = [{model = 'resnet20', image_px = -3}]", "image_px"),
        ("[train]\nmodels = [{model = 'resnet20', px = 3}]", "unknown option 'px'"),
        ("launches = 0\n[barrier]", "launches = 0"),
        ("[latency]\nsizes = '8'\nranks = [1]", "[latency] takes exactly 2 ranks, not 1"),
        ("[offload_allreduce]\nsizes = '8'\nranks = [1]", "[offload_allreduce] needs 2 host ranks or more, not 1"),
        (
            "[offload_allreduce]\nsizes = '8'\ncompare = ['host', 'stagd']",
            "plan x: [offload_allreduce]: compare: unknown mode 'stagd': one of host, probes4",
        ),
        (
            "[offload_allreduce]\nsizes = '8'\nfractions = [-1]",
            "plan x: [offload_allreduce]: fractions: fraction -1: 0 to 100",
        ),
        ("[offload_allreduce]\nsizes = '8'\nfractions = 1", "fractions = 1: fractions takes a list such as"),
        ("[offload_allreduce]\nsizes = '8'\nskews = ['late']", "[offload_allreduce]: skews: skew 'late': 0 to"),
        ("[offload_allreduce]\nsizes = '8'\noutstanding = [5]", "outstanding: outstanding 5: a whole number from 1"),
        ("[offload_allreduce]\nsizes = '8'\ncompute = ['fpu']", "compute: compute 'fpu': one of registers, memory"),
        ("[offload_allreduce]\nsizes = '8'\nplacement = 'here'", "placement 'here': one of split, node, accel"),
        ("[offload_allreduce]\nsizes = '8'\nworkers = [0]", "workers: workers 0: a whole number from 1"),
        ("[offload_allreduce]\nsizes = '8'\nchunk = '100'", "chunk 100: bytes, a multiple of 64"),
        ("[offload_allreduce]\nsizes = '8'\nchunk = '1K,2K'", "chunk = '1K,2K': chunk takes one size"),
        ("[offload_allreduce]\nsizes = '8'\nchunks = '64K'", "[offload_allreduce] has no 'chunks': allowed are sizes"),
        ("[offload_allreduce]\nsizes = '8'\nranks = [2]\ndpus = 3", "dpus = 3 is above ranks = 2: a DPU is beside"),
        ("[dpu]\nkernels = ['spin']", "kernels = ['spin']: kernels takes a list of work, triad"),
        ("[dpu]\nsizes = '8'", "[dpu] has no 'sizes': allowed are ranks, kernels"),
        ("[allreduce]\nsizes = '8'\ncompare = ['host']", "[allreduce] has no 'compare': allowed are sizes"),
        ("x = 1\n[barrier]", "at its top there is no 'x'"),
        ("", "measures nothing"),
        ("[barrier", "plan x:"),
    ],
)
def test_mistakes_are_named(text: str, said: str, table: Registry) -> None:
    with pytest.raises(UserError) as caught:
        parse(text, "x", table)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_plan_is_named(table: Registry, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read plan .*nope\.toml: No such file"):
        read_plan(tmp_path / "nope.toml", table)


def test_a_deadline_may_be_as_long_as_the_budget_that_holds(table: Registry) -> None:
    """The top's budget is not a section's own, and a section's is not that of its models."""
    text = (
        "deadline_s = 3\nbudget_s = 9\n[barrier]\nbudget_s = 3\n[train]\nmodels = [{model = 'resnet20', budget_s = 1}]"
    )
    assert [section.deadline_s for section in parse(text, "x", table).sections] == [3, 3]


def test_the_usual_way_to_start_is_no_way_of_its_own(table: Registry) -> None:
    """``auto`` written and ``auto`` left out were two cases of one thing."""
    first, second = parse("[[barrier]]\nsync = 'auto'\n[[barrier]]\nranks = [3]", "x", table).sections
    assert first.sync == second.sync == ""
