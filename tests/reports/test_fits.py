"""What the report says of fits: planted parameters are printed, and what does not fit is said so."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.chapters import fits
from reports.load import load
from reports.models.fabric import fitted
from reports.view import View, view
from tests.reports.folder import Folder, metric
from tests.reports.models.planted import Fabric

PLANTED = Fabric(noise=0.0)
SIZES = [1 << k for k in range(3, 23)]


def run(folder: Path, bent: float = 0.0) -> View:
    """Two fabrics of which one is planted, and one is bent so that no line fits it."""
    f = Folder()
    for fabric in ("eth10g", "eth2g5"):
        probes = PLANTED.probes(tuple(SIZES))
        for k, m in enumerate(SIZES):
            off = 1 + bent * (k % 2) * (fabric == "eth2g5")
            half, burst, send, receive = (p.time_s[k] * off for p in
                                          (probes.half, probes.burst, probes.send, probes.receive))  # fmt: skip
            f.add("latency", fabric, m, dtype="int8", direction="ping-pong", metrics={"time": metric(half)})
            f.add("loggp", fabric, m, dtype="int8", direction="ping-pong",
                  metrics={"time": metric(half), "burst": metric(burst), "send_overhead": metric(send),
                           "receive_overhead": metric(receive)})  # fmt: skip
            f.add("reduce_local", fabric, m, dtype="float32", metrics={"time": metric(1e-7 + m * 0.25e-9)})
            f.add("bandwidth", fabric, m, direction="uni", metrics={"bandwidth": metric(1e9, "bytes/s")})
            f.add("bibw", fabric, m, direction="bi", metrics={"bandwidth": metric(1.6e9, "bytes/s")})
    return view(load(f.write(folder / "run")))


def test_planted_parameters_are_found_in_a_run(tmp_path: Path) -> None:
    found = fitted(run(tmp_path), "eth10g")
    assert found.loggp is not None and found.hockney is not None and found.why == ()
    assert found.loggp.latency_s.value == pytest.approx(PLANTED.latency_s, rel=1e-6)
    assert found.loggp.s_per_byte.value == pytest.approx(PLANTED.s_per_byte, rel=1e-6)
    assert found.two_way == pytest.approx(0.8)
    assert found.reduce_s_per_byte is not None
    assert found.reduce_s_per_byte.value == pytest.approx(0.25e-9, rel=1e-6)


def test_the_report_prints_what_fits_and_says_what_does_not(tmp_path: Path) -> None:
    lines, parameters = fits.blocks(run(tmp_path, bent=0.4))
    assert "eth2g5 EMULATED, 8 B to " in lines and ": does not fit: off by " in lines
    first, second = [line.split() for line in lines.splitlines() if line.strip()][-2:]
    assert first[:4] == ["eth10g", "EMULATED", "8", "B"] and "27.00" in first
    assert second[:4] == ["eth10g", "EMULATED", "8", "KiB"] and "1250.0" in second
    told = dict(line.rsplit("  ", 1) for line in parameters.splitlines() if line.startswith(("L us", "o_s", "g us")))
    assert {name.strip(): value.split()[0] for name, value in told.items()} == {
        "L us": "20.00", "o_s us": "3.000", "g us": "5.000",
    }  # fmt: skip


def test_a_run_with_few_sizes_says_nothing(tmp_path: Path) -> None:
    f = Folder()
    f.add("latency", "eth10g", 8, metrics={"time": metric(1e-5)})
    v = view(load(f.write(tmp_path / "run")))
    assert fits.blocks(v) == []
    assert fitted(v, "eth10g").why == ("latency: 1 size: a line takes 4",)
