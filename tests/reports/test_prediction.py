"""What the report says of predicted steps: planted training is met, and what is known of other fabrics is used."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from reports.chapters import prediction
from reports.load import load
from reports.models import whatif
from reports.models.predicted import Predicted, predictions
from reports.models.step import predict
from reports.view import View, view
from tests.reports.folder import Folder, metric

FUSION = "25 MiB (the first 1 MiB)"
TENSORS = [4_000_000, 2_000_000, 12_000_000, 16_000_000, 1_000_000]  # in the network's order: gradients come reversed
READY = [0.100, 0.090, 0.050, 0.020, 0.010]
BUCKETS, BUCKETS_READY = [17_000_000, 18_000_000], [0.020, 0.100]
WIRE = {"eth2g5": 300e6, "eth10g": 1200e6}
CPU = 0.1e-9  # s of processor a byte
NOOP = 0.200


def method(**more: Any) -> dict[str, Any]:
    """What a record of training says of buckets and gradients."""
    return {"exchanges": {"gloo": {"fusion": FUSION}}, "fusions": {FUSION: {"bucket_bytes": BUCKETS}},
            "parameter_bytes": TENSORS,
            "gradient_ready_s": {"parameters": READY, "buckets": {FUSION: BUCKETS_READY}}, **more}  # fmt: skip


def run(
    folder: Path, error: float = 0.0, overlap: bool = True, sizes: Sequence[int] = (1 << 20, 16 << 20, 64 << 20)
) -> View:
    """Both networks; a step takes what follows from its buckets, but for ``error`` of it."""
    f = Folder()
    for fabric, rate in WIRE.items():
        f.add("latency", fabric, 8, metrics={"time": metric(30e-6)})
        f.add("bandwidth", fabric, 1 << 20, direction="uni", metrics={"bandwidth": metric(rate, "bytes/s")})
        for nbytes in sizes:
            times = {"time": metric(nbytes / rate)}
            f.add("allreduce", fabric, nbytes, backend="gloo", dtype="float32", ranks_per_host=1, metrics=times)
            spent = {f"gloo.{name}": metric(t) for name, t in (("pure", nbytes / rate), ("cpu", CPU * nbytes),
                                                              ("overall", 1.0))}  # fmt: skip
            if overlap and nbytes < 32 << 20:
                f.add("overlap_allreduce", fabric, nbytes, dtype="float32", metrics=spent)
        first, last = (n / rate for n in BUCKETS)
        begun = max(0.020 + first, 0.100 + CPU * BUCKETS[0])
        step = NOOP + (begun + last - 0.100)
        f.add("train", fabric, backend="gloo", workload="net", algorithm="ddp", ranks_per_host=1, method=method(),
              metrics={"step": metric(step * (1 + error)), "exposed": metric(step - NOOP), "step_noop": metric(NOOP),
                       "gloo.step": metric(step * (1 + error)), "gloo.exposed": metric(step - NOOP),
                       "gloo.dilation": metric(0.1, "1"), "gloo.cpu_per_byte": metric(CPU, "s/byte"),
                       "gloo.efficiency": metric(0.9, "1"), "step_alone": metric(0.19)})  # fmt: skip
    return view(load(f.write(folder / "run")))


def one(v: View, fabric: str) -> Predicted:
    (found,) = [p for p in predictions(v) if p.summary.fabric == fabric]
    return found


def test_planted_steps_are_met_on_both_networks(tmp_path: Path) -> None:
    v = run(tmp_path)
    for fabric in WIRE:
        found = one(v, fabric)
        assert found.notes == () and found.mode == "gloo" and found.ranks == 2
        assert found.error == pytest.approx(0, abs=0.002)


def test_the_error_is_that_of_the_prediction(tmp_path: Path) -> None:
    found = one(run(tmp_path, error=0.25), "eth2g5")
    assert found.error == pytest.approx(1 / 1.25 - 1, abs=0.002)


def test_the_processors_time_is_training_s_own_where_nothing_else_tells_it(tmp_path: Path) -> None:
    found = one(run(tmp_path, overlap=False), "eth10g")
    assert found.notes == ("processor's time from training itself",)
    assert found.exchange.cpu_s(1e6) == pytest.approx(CPU * 1e6)


def test_what_if_uses_the_other_fabric_s_curve_and_torch_s_buckets(tmp_path: Path) -> None:
    v = run(tmp_path)
    slow, fast = (one(v, name) for name in WIRE)
    told = {other.what: other.prediction for other in whatif.alternatives(v, slow) if other.prediction}
    assert told["over eth10g"].step_s == pytest.approx(fast.prediction.step_s)
    assert told[f"buckets of {FUSION}"].step_s < told["buckets of 100 MiB"].step_s
    single = predict(slow.profile, slow.exchange).exchange_s
    assert told["buckets of 100 MiB"].exposed_s == pytest.approx(single, rel=0.01)  # one bucket, ready at the end
    assert told["at line rate, 2.5 Gbit/s"].exchange_s == pytest.approx(single * 300 / 312.5, rel=0.01)
    assert "allreduce offloaded to DPUs" not in told


def test_more_hosts_are_less_efficient_and_the_report_says_from_where(tmp_path: Path) -> None:
    v = run(tmp_path)
    scaled = [s.efficiency for s in whatif.scaled(v, one(v, "eth10g"))]
    assert scaled == sorted(scaled, reverse=True) and scaled[0] < 0.95
    text = " ".join("\n\n".join(prediction.blocks(v)).split())
    assert "net by gloo over eth2g5 EMULATED: by model, exposed communication is more than 1 % of the step at" in text
    assert "bound: nothing hidden" in text and "Scaling efficiency" in text
    (first, _) = prediction.findings(v)
    assert first.chapter == 7 and "(+0.0 %)" in first.text.replace("-0.0", "+0.0")


def test_lines_fit_the_page(tmp_path: Path) -> None:
    text = "\n\n".join(prediction.blocks(run(tmp_path, overlap=False)))
    assert [line for line in text.splitlines() if len(line) > 100] == []


def test_a_record_without_times_of_gradients_is_not_predicted(tmp_path: Path) -> None:
    f = Folder()
    f.add("train", "eth10g", backend="gloo", workload="net", metrics={"step": metric(0.3), "step_noop": metric(0.2)})
    v = view(load(f.write(tmp_path / "run")))
    assert predictions(v) == [] and prediction.blocks(v) == []


def test_what_has_no_allreduce_as_small_is_not_told_by_the_time_of_a_larger_one(tmp_path: Path) -> None:
    """Tensors from 1 MB on, allreduces from 16 MiB on: a bucket per tensor has no time, and the row says why."""
    v = run(tmp_path, sizes=(16 << 20, 64 << 20))
    unfused = {other.what: other for other in whatif.alternatives(v, one(v, "eth2g5"))}["a bucket per tensor"]
    assert unfused.prediction is None
    assert unfused.note == "5 of 5 buckets below 16 MiB, the smallest size measured"
    text = " ".join("\n\n".join(prediction.blocks(v)).split())
    assert re.search(r"a bucket per tensor n/a n/a ", text)
    assert "- eth2g5 EMULATED: buckets of 1 MiB: 3 of 4 buckets below 16 MiB, the smallest size measured." in text


def test_one_size_of_allreduce_is_no_curve(tmp_path: Path) -> None:
    """Neither a step, nor what if, nor thousands of hosts follow from it; that is said."""
    v = run(tmp_path, sizes=(1 << 20,), overlap=False)
    assert predictions(v) == []
    assert list(prediction.findings(v)) == []
    text = " ".join("\n\n".join(prediction.blocks(v)).split())
    assert text.count("- net by gloo over eth") == 2
    assert "EMULATED: not predicted, nor what if: only 1 MiB was measured, and a curve takes two sizes." in text
    assert "Scaling efficiency" not in text and "What if: the step" not in text


def test_buckets_beyond_the_largest_size_are_noted(tmp_path: Path) -> None:
    v = run(tmp_path, sizes=(1 << 20, 2 << 20))
    said = "2 of 2 buckets beyond 2 MiB, the largest size measured: at its last rate"
    assert said in one(v, "eth10g").notes
    assert any(said in found.text for found in prediction.findings(v))
