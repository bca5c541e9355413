"""Chapter 6 over planted records: fabric beside fabric, exchange beside exchange, and what each number rests on."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from reports.exchanges import buckets, exchanges, first, gradient_bytes, images, metric_name, replayed
from reports.ratios import within
from reports.render import render
from reports.summary import summarise
from tests.reports import steps
from tests.reports.folder import Folder, metric

THREE = {"gloo": 1.10, "mpi": 1.00, "gloo+unfused": 1.30}
REPLAYED = "replayed: the other hosts sleep"


def chapter(f: Folder, folder: Path) -> str:
    text = render(f.write(folder))
    return text[text.index("\n6 Training") : text.index("\n7 Does the fabric")]


def flat(text: str) -> str:
    return " ".join(text.split())


def row(text: str, label: str) -> list[list[str]]:
    """The cells of every line with that label."""
    return [re.split(r"  +", line)[1:] for line in text.splitlines() if re.match(re.escape(label) + "  ", line)]


def findings(folder: Path) -> list[dict[str, Any]]:
    return [found for found in json.loads(render(folder, "json"))["findings"] if found["chapter"] == 6]


def test_fabrics_stand_beside_each_other_with_all_quantities(tmp_path: Path) -> None:
    f = Folder()
    for fabric, step_s in (("eth2g5", 1.10), ("eth10g", 1.00)):
        steps.add(f, fabric, {"gloo": step_s})
    text = chapter(f, tmp_path)
    assert row(text, "step ms") == [["1100.0 [1078.0, 1122.0]", "1000.0 [980.0, 1020.0]"]]
    for label in ("data ms", "forward ms", "backward ms", "optimizer ms", "no-op step ms", "exposed ms", "exposed %",
                  "dilation %", "imbalance %", "images/s"):  # fmt: skip
        (cells,) = row(text, label)
        assert len(cells) == 2 and all("[" in cell for cell in cells), label
    assert row(text, "cpu ns/byte") == [["1.200 [1.176, 1.224]"] * 2]
    assert row(text, "efficiency %")[0][0].startswith("76.4 [")
    assert (row(text, "n"), row(text, "n alone")) == ([["12", "12"]], [["4", "4"]])
    assert row(text, "notes") == [["EMULATED", "EMULATED"]]
    assert "one rank alone, the base of efficiency (weak scaling): eth2g5 840.0 [831.6, 848.4] ms (n 4)" in flat(text)
    assert "gradients 102.2 MB; 1 thread a rank" in flat(text)


def test_exchanges_stand_beside_each_other_on_each_fabric(tmp_path: Path) -> None:
    f = Folder()
    for fabric in ("eth2g5", "eth10g"):
        steps.add(f, fabric, THREE)
    text = chapter(f, tmp_path)
    heads = [line.split() for line in text.splitlines() if line.split()[:2] == ["noop", "gloo"]]
    assert heads and all(head[0] == "noop" for head in heads)
    assert len([cells for cells in row(text, "step ms") if len(cells) > 1]) == 2, "a table for each fabric"
    first_line = row(text, "step ms")[0]
    assert first_line[:3] == ["850.0 [841.5, 858.5]", "1100.0 [1078.0, 1122.0]", "1000.0 [980.0, 1020.0]"]
    glance = text.split("step ms  images/s")[1].split("Intervals: within one launch.")[0]
    lines = [re.split(r"  +", line.strip()) for line in glance.splitlines() if "EMULATED" in line and "x [" in line]
    assert [line[0] for line in lines] == ["mpi", "gloo+unfused"] * 2
    assert lines[0][-2] == "0.91x [0.87, 0.95]"
    assert "mpi: MPI_Iallreduce, in place, posted in the hook; 25 MiB (the first 1 MiB): 5 buckets, " in flat(text)
    assert "gloo+unfused: torch.distributed.all_reduce; a bucket per tensor: 161 buckets, 102.2 MB in all" in flat(text)
    assert "completed by gloo's threads" in flat(text)


def test_the_first_rows_keep_their_order_where_the_step_without_an_exchange_lacks_some(tmp_path: Path) -> None:
    f = Folder()
    steps.add(f, "eth2g5", THREE)
    lines = [line.split("  ")[0] for line in chapter(f, tmp_path).splitlines()]
    place = {label: lines.index(label) for label in ("step ms", "step p90 ms", "images/s", "data ms", "efficiency %")}
    assert list(place.values()) == sorted(place.values())


@pytest.mark.parametrize("launches", [1, 3, 6])
def test_the_ratio_of_steps_is_of_the_same_launches(tmp_path: Path, launches: int) -> None:
    """A launch in which the machine is twice as slow widens each step's interval, not their ratio."""
    f = Folder(launches)
    for launch in range(1, launches + 1):
        slow = 2.0 if launch == 2 else 1.0
        steps.add(f, "eth2g5", {"gloo": 1.10 * slow, "mpi": 1.00 * slow}, noop_s=0.85 * slow, launch=launch)
    text = flat(chapter(f, tmp_path))
    basis = {1: "within one launch", 3: "range of 3 launches", 6: "over 6 launches"}[launches]
    said = "no verdict below 6 launches" if launches == 3 else "shorter"
    ratio = "0.91x [0.87, 0.95]" if launches == 1 else "0.91x [0.91, 0.91]"
    assert f"steps over those by gloo, {basis}: eth2g5 (EMULATED) mpi {ratio} ({said})." in text
    (found,) = [one for one in findings(tmp_path) if "step_ratio" in one["values"]]
    assert found["values"]["step_ratio"]["eth2g5"]["mpi"]["value"] == pytest.approx(1 / 1.1)


@pytest.mark.parametrize(("mpi", "said"), [(0.95, "shorter"), (1.11, "not told apart"), (1.30, "LONGER")])
def test_a_step_is_called_shorter_or_longer_only_where_intervals_say_so(tmp_path: Path, mpi: float, said: str) -> None:
    f = Folder()
    steps.add(f, "eth2g5", {"gloo": 1.10, "mpi": mpi})
    assert f"] ({said})." in flat(chapter(f, tmp_path))


def test_exchanges_without_intervals_are_not_judged(tmp_path: Path) -> None:
    f = Folder()
    record = steps.add(f, "eth2g5", {"gloo": 1.10, "mpi": 1.00})
    few = {
        name: metric(record.metrics[name].value, n=5, half=None, note="n=5 < 6") for name in ("gloo.step", "mpi.step")
    }
    f.records[-1] = type(record)(**{**vars(record), "metrics": {**record.metrics, **few}})
    assert "one side has no interval: eth2g5 (EMULATED) mpi 0.91x (no interval)." in flat(chapter(f, tmp_path))


def test_a_replayed_peer_is_printed_wherever_its_numbers_are(tmp_path: Path) -> None:
    f = Folder()
    pair = {"gloo": 1.13, "dpu": 0.93}
    steps.add(f, "eth2g5", pair, workload="resnet50", method=steps.method(pair, peer=REPLAYED), roles=("host", "dpu"))
    steps.add(f, "eth10g", {"gloo": 1.0}, workload="resnet50", method=steps.method({"gloo": 1.0}, peer=REPLAYED))
    text = chapter(f, tmp_path)
    assert len([line for line in text.splitlines() if line.endswith("EMULATED, peer replayed")]) == 3
    assert "resnet50 on eth2g5 (EMULATED, peer replayed); intervals" in flat(text)
    assert "resnet50 on 2 ranks, peer replayed: exposed communication" in flat(text)


def test_peers_that_compute_are_not_called_replayed(tmp_path: Path) -> None:
    f = Folder()
    steps.add(f, "eth2g5", THREE)
    assert "peer replayed" not in chapter(f, tmp_path)


def test_tails_are_told_in_images_and_what_lacks_samples_says_so(tmp_path: Path) -> None:
    f = Folder()
    record = steps.add(f, "eth2g5", {"gloo": 1.0})
    long = {name: metric(value, n=400) for name, value in (("gloo.step_p90", 1.25), ("gloo.step_p99", 1.6))}
    steps.add(f, "eth10g", {"gloo": 1.0})
    f.records[-1] = summarised = type(record)(**{**vars(f.records[-1]), "metrics": {**f.records[-1].metrics, **long}})
    assert summarised.metrics["gloo.step_p90"].value == 1.25
    text = chapter(f, tmp_path)
    assert row(text, "step p90 ms") == [["n=12 < 36", "1250.0 [1237.5, 1262.5]"]]
    assert row(text, "images/s p90") == [["-", "25.60"]]
    assert row(text, "images/s p99") == [["-", "20.00"]]


def test_a_percentile_that_a_launch_cannot_tell_is_not_told_of_the_others(tmp_path: Path) -> None:
    f = Folder(2)
    for launch in (1, 2):
        steps.add(f, "eth2g5", {"gloo": 1.0}, launch=launch)
    metrics = {**f.records[1].metrics, "gloo.step_p90": metric(1.2, n=40)}
    f.records[1] = type(f.records[1])(**{**vars(f.records[1]), "metrics": metrics})
    (s,) = summarise(f.records)
    assert s.value("gloo.step_p90") is None
    assert s.metrics["gloo.step_p90"].note == "n/a in 1 of 2 launches: n=12 < 36"


def test_old_records_are_shown_as_they_were(tmp_path: Path) -> None:
    f = Folder()
    for fabric, step_s in (("eth2g5", 1.10), ("eth10g", 1.00)):
        plain = {"step": metric(step_s, n=30), "step_noop": metric(0.85, n=30), "exposed": metric(step_s - 0.85, n=30),
                 "exposed_fraction": metric(1 - 0.85 / step_s, "1", 30),
                 "images_per_s": metric(32 / step_s, "images/s", 30, better="higher")}  # fmt: skip
        f.add("train", fabric, backend="gloo", algorithm="ddp", workload="resnet50", metrics=plain)
    text = chapter(f, tmp_path)
    labels = [line.split("  ")[0] for line in text.splitlines() if "  " in line and line[0].isalpha()]
    assert labels == ["step ms", "images/s", "no-op step ms", "exposed ms", "exposed %", "n", "intervals", "notes"]
    assert "dilation" not in text and "efficiency" not in text
    assert "resnet50 on 2 ranks: exposed communication, of the step: eth2g5 (EMULATED) 22.7" in flat(text)


def test_data_time_is_told_apart_from_what_the_network_takes(tmp_path: Path) -> None:
    """A slow loader makes data time longer, beside the step; exposed communication stays, and images take both."""
    f = Folder()
    slow = steps.add(f, "eth2g5", {"gloo": 1.10})
    metrics = {**slow.metrics, "gloo.data": metric(0.3, n=12)}
    f.records[-1] = type(slow)(**{**vars(slow), "metrics": metrics})
    steps.add(f, "eth10g", {"gloo": 1.10})
    text = chapter(f, tmp_path)
    assert row(text, "data ms") == [["300.0 [297.0, 303.0]", "1.000 [0.980, 1.020]"]]
    (exposed,) = row(text, "exposed ms")
    assert exposed[0] == exposed[1]


def test_json_and_csv_have_every_exchange_by_name(tmp_path: Path) -> None:
    f = Folder()
    steps.add(f, "eth2g5", THREE)
    rows = {line["metric"]: line for line in csv.DictReader(io.StringIO(render(f.write(tmp_path), "csv")))}
    assert {"mpi.exposed", "gloo+unfused.cpu_per_byte", "noop.forward", "step_alone", "efficiency"} <= set(rows)
    assert rows["gloo+unfused.cpu_per_byte"]["unit"] == "s/byte"
    (told,) = json.loads(render(tmp_path, "json"))["summaries"]
    assert told["metrics"]["mpi.step"]["value"] == 1.0


def test_exchanges_are_known_by_their_metrics() -> None:
    f = Folder()
    steps.add(f, "eth2g5", {"gloo+64M": 1.0, "mpi-ring": 1.1})
    f.add("train", "eth2g5", workload="old", metrics={"step": metric(1.0)})
    new, old = summarise(f.records)
    assert (exchanges(new), exchanges(old)) == (["gloo+64M", "mpi-ring"], [""])
    assert (first(new), first(old)) == ("gloo+64M", "")
    assert [metric_name(m, "step") for m in ("mpi-ring", "", "noop")] == ["mpi-ring.step", "step", "step_noop"]
    assert metric_name("noop", "data") == "noop.data"


def test_buckets_gradients_and_images_come_from_the_record() -> None:
    f = Folder()
    steps.add(f, "eth2g5", THREE)
    f.add("train", "eth2g5", workload="old", method={"bucket_bytes": [10, 30]}, metrics={"step": metric(1.0)})
    f.add("train", "eth2g5", workload="bare", method={"parameters": 5}, metrics={"step": metric(1.0)})
    new, old, bare = summarise(f.records)
    assert (len(buckets(new, "mpi")), len(buckets(new, "gloo+unfused")), buckets(old, "")) == (5, 161, [10.0, 30.0])
    assert [gradient_bytes(s) for s in (new, old, bare)] == [sum(steps.BUCKETS), 40.0, 20.0]
    assert images(f.records[:1], "mpi") == steps.IMAGES
    assert images(f.records[1:], "") is None
    assert not replayed(new)


def test_a_ratio_within_launches_needs_both_metrics_and_positive_ones() -> None:
    f = Folder()
    f.add("train", "eth2g5", metrics={"a": metric(2.0), "b": metric(4.0), "zero": metric(0.0)})
    (s,) = summarise(f.records)
    found = within(s, f.records, "a", "b")
    assert found is not None
    assert (found.value, found.low, found.high) == (
        0.5,
        pytest.approx(0.5 * 0.99 / 1.01),
        pytest.approx(0.5 * 1.01 / 0.99),
    )
    assert within(s, f.records, "a", "zero") is None
    assert within(s, f.records, "a", "absent") is None


def test_images_of_a_tail_wait_for_their_loader_too(tmp_path: Path) -> None:
    """32 images in 1.25 s that were waited for 0.35 s before; as many as the record says train."""
    f = Folder()
    record = steps.add(f, "eth2g5", {"gloo": 1.0}, method=steps.method({"gloo": 1.0}, images=16))
    long = {"gloo.step_p90": metric(1.25, n=400), "gloo.data": metric(0.35, n=400)}
    f.records[-1] = type(record)(**{**vars(record), "metrics": {**record.metrics, **long}})
    assert row(chapter(f, tmp_path), "images/s p90") == [["10.00"]]
    assert images(f.records, "gloo") == 16


def test_an_efficiency_without_an_interval_says_how_few_steps_it_rests_on(tmp_path: Path) -> None:
    f = Folder()
    record = steps.add(f, "eth2g5", {"gloo": 1.0})
    few = {"gloo.efficiency": metric(1.223, "1", 2, None, note="n=2 < 7"), "step_alone": metric(1.2, n=2, half=None)}
    f.records[-1] = type(record)(**{**vars(record), "metrics": {**record.metrics, **few}})
    text = chapter(f, tmp_path)
    assert row(text, "efficiency %") == [["122.3 (n=2 < 7)"]]
    assert row(text, "n alone") == [["2"]]
    assert "eth2g5 1200.0 ms (n 2, no interval) a step" in flat(text)


def test_what_launches_warned_of_stands_beside_their_numbers(tmp_path: Path) -> None:
    """The optimizer, which no exchange touches, took longer without one: exposed communication is too low."""
    f = Folder(2)
    for fabric, launch in (("eth2g5", 1), ("eth2g5", 2), ("eth10g", 1), ("eth10g", 2)):
        told = [f"the optimizer took {9 + launch}.5 ms, and exposed is too LOW"] if fabric == "eth10g" else []
        steps.add(f, fabric, {"gloo": 1.0}, launch=launch, method=steps.method({"gloo": 1.0}, warnings=told))
    text = flat(chapter(f, tmp_path))
    said = "- WARNING: eth10g, in 2 of 2 launches, so in launch 1: the optimizer took 10.5 ms, and exposed is too LOW."
    assert text.count("- WARNING") == 1 and said in text
    (found,) = [one for one in findings(tmp_path) if "exposed_fraction" in one["values"]]
    assert found["text"].endswith("WARNED OF: eth10g (EMULATED).")
