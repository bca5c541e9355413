"""What ``bench`` prints of records without one time."""

from __future__ import annotations

from typing import Any

from microbench.record import Metric, Record
from reports.units import MB_PER_S
from suite import benchmodes


def record(metrics: dict[str, Metric], **more: Any) -> Record:
    return Record("x", "offload_allreduce", "as launched", "ok", nbytes=4 << 20, metrics=metrics, **more)


def test_modes_stand_beside_each_other_with_the_net_gain_that_judges() -> None:
    metrics = {
        "compute": Metric(0.036, "s", 12), "blocking.overall": Metric(0.072, "s", 12),
        "host.pure": Metric(0.036, "s", 12), "host.overall": Metric(0.060, "s", 12),
        "staged.overall": Metric(0.040, "s", 12), "staged.net_gain": Metric(1 / 3, "1", 12, 0.3, 0.35),
        "rma.overall": Metric(0.060, "s", 12), "rma.net_gain": Metric(None, "1", 12, note="n/a"),
    }  # fmt: skip
    method = {"used": {"staged": True, "rma": False}, "left_out": {"window": "no common kernel"}, "warnings": ["hm"]}
    told = benchmodes.lines(record(metrics, method=method, workload="skew 0.5"), MB_PER_S)
    assert told[0] == "# 4 MiB, skew 0.5: compute 36.00 ms, n 12"
    rows = {line.split()[0]: line for line in told[2:6]}
    assert rows["staged"].split()[1:] == ["-", "40.00", "33.3", "[30.0,", "35.0]"]
    assert rows["rma"].endswith("n/a  host (offload not used)")
    assert told[6:] == [
        "# left out: window: no common kernel", "# hm",
        "# net gain: against the best of the hosts' modes, of which blocking computes after the collective",
    ]  # fmt: skip


def test_hosts_alone_have_no_net_gain() -> None:
    metrics = {"compute": Metric(0.036, "s", 12), "host.overall": Metric(0.060, "s", 12)}
    assert benchmodes.lines(record(metrics), MB_PER_S)[1:] == ["mode      overall ms", "host           60.00"]


def test_other_metrics_have_a_line_each() -> None:
    metrics = {
        "host.triad": Metric(2e10, "bytes/s", 5, 1.9e10, 2.1e10), "host_dpu.bandwidth": Metric(1.25e9, "bytes/s", 5),
        "dpu.conv": Metric(None, "flop/s", 0, note="no torch"),
    }  # fmt: skip
    method = {"emulation": "EMULATED: a share", "findings": [{"words": "allreduce can hide"}], "warnings": ["hm"]}
    whole = benchmodes.lines(record(metrics, method=method), MB_PER_S)
    assert [line for line in whole if line.startswith("# ")] == ["# EMULATED: a share", "# allreduce can hide", "# hm"]
    told = benchmodes.lines(record(metrics), MB_PER_S)
    assert [line.split()[1:3] for line in told[1:]] == [["20000.000", "MB/s"], ["10.000", "Gbit/s"], ["n/a", "no"]]


def test_no_result_says_why() -> None:
    bad = Record("x", "offload_allreduce", "f", "skipped", reason="too large", nbytes=8)
    assert benchmodes.lines(bad, MB_PER_S) == ["8 B skipped: too large"]
