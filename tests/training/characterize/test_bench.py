"""The record of planted measurements, and the options of a case: without MPI."""

from __future__ import annotations

import pytest

from fabrics.errors import UserError
from microbench.record import Metric
from training.characterize.bench import BENCHMARKS, outcome, rows, wanted
from training.characterize.crew import Crew, Seat
from training.characterize.kernels import VARIANTS
from training.characterize.measure import Own

ROLES = ("host", "host", "dpu", "dpu")
SEATS = (Seat("lab/h0"), Seat("lab/h1"), Seat("lab/d0", 0.26, 0.25), Seat("lab/d1", 0.26, 0.25))
BETWEEN = {
    f"{link}.{name}": Metric(value, unit, 30, 0.99 * value, 1.01 * value)
    for link, scale in (("host_host", 1), ("host_dpu", 4), ("dpu_dpu", 1))
    for name, value, unit in (("latency", 1e-5, "s"), ("bandwidth", scale * 1e9, "bytes/s"))
}


def own(speed: float, blocks: int = 6) -> Own:
    """A rank that does ``speed`` units a second of every kernel, blocks of a tenth of a second."""
    ns = {variant: [100_000_000] * blocks for variant in VARIANTS}
    return Own(ns, {variant: speed / 10 for variant in VARIANTS}, dict.fromkeys(VARIANTS, 3), {}, {}, "")


def planted(seats: tuple[Seat, ...] = SEATS, emulated: bool = True):
    crew = Crew(ROLES, ("m",) * 4, seats, emulated)
    everyone = [own(400), own(420), own(100), own(105)]
    return outcome(crew, everyone, VARIANTS, BETWEEN, {"blocks": 6}, 1)


def test_a_planted_job_gives_its_rates_and_ratios() -> None:
    got = planted()
    assert got.metrics["host.triad_all"].value == pytest.approx(410, rel=0.01)
    assert got.metrics["dpu.triad_all"].value == pytest.approx(102.5, rel=0.01)
    assert got.metrics["ratio.work"].value == pytest.approx(0.25)
    assert got.metrics["hide.omv"].value == pytest.approx(4)
    assert got.metrics["hide.oda32"].value == got.metrics["dpu.augment32_all"].value
    assert got.method["per_rank"]["zlib"] == pytest.approx([400, 420, 100, 105])
    assert got.samples["zlib"].shape == (4, 6)
    assert got.method["units_per_block"]["zlib"] == pytest.approx([40, 42, 10, 10.5])
    assert [finding["what"] for finding in got.method["findings"]][:1] == ["allreduce"]
    assert "work_all" not in got.method["per_rank"]


def test_what_is_emulated_says_so_with_its_speed_and_quota() -> None:
    method = planted().method
    assert method["quota_cores"] == [None, None, 0.26, 0.26]
    assert method["speeds"] == [None, None, 0.25, 0.25]
    assert method["emulation"] == (
        "EMULATED: DPUs are this machine's own cores: measured speed 0.25 of a host's; CPU quota 26 % of a core"
    )
    bare = planted((Seat(),) * 4).method["emulation"]
    assert bare.endswith("measured speed 0.25 of a host's; no CPU quota")


def test_real_dpus_are_not_called_emulated() -> None:
    method = planted((Seat(),) * 4, emulated=False).method
    assert method["emulated"] is False
    assert "emulation" not in method


def test_a_rank_without_torch_leaves_its_kernels_out() -> None:
    lacking = own(100)
    del lacking.ns["conv"]
    lacking.missing["conv"] = "n/a: no torch here"
    found = rows([own(400), lacking], "conv")
    assert found.missing == {1: "n/a: no torch here"}
    assert found.seconds[0].tolist() == pytest.approx([1 / 400] * 6)


def test_options_name_kernels() -> None:
    assert wanted({}) == VARIANTS
    assert wanted({"kernels": ["triad", "work"]}) == ("work", "triad", "triad_all")
    for options, said in (
        ({"kernels": ["fft"]}, "no kernel 'fft': one of work, triad"),
        ({"kernels": "triad"}, "kernels is 'triad': a list of"),
        ({"kernels": []}, "a list of"),
        ({"speed": 1}, "no option 'speed': one of kernels"),
    ):
        with pytest.raises(UserError, match=said):
            wanted(options)


def test_it_is_registered_as_what_has_ranks_on_dpus() -> None:
    (benchmark,) = BENCHMARKS
    assert (benchmark.name, benchmark.kind, benchmark.dpus, benchmark.sized) == ("dpu", "dpu", True, False)
