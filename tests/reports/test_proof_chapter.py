"""What chapter 2 says of a fabric whose hosts did not reach each other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from reports.chapters import proof
from reports.chapters.missing import blocks
from reports.load import load
from reports.view import View, view
from tests.reports.folder import lab_run

REASON = "no route h0 -> h1 on eth10g (connection timed out)"


def unreachable(folder: Path) -> View:
    planted = lab_run()
    planted.records = [
        replace(r, status="failed", reason=REASON, proof="unknown", metrics={}, counters={})
        if r.fabric == "eth10g"
        else r
        for r in planted.records
    ]
    planted.jobs = [
        {"job": job["job"], "launch": 1, "fabric": "eth10g", "status": "failed", "reason": REASON}
        if job["fabric"] == "eth10g"
        else job
        for job in planted.jobs
    ]
    planted.run = {"reachability": {"pairs": 12, "unreachable": {"eth10g": REASON}, "took_s": 4.0}}
    return view(load(planted.write(folder / "run")))


def test_a_fabric_without_a_route_says_so_and_is_not_called_unproved(tmp_path: Path) -> None:
    v = unreachable(tmp_path)
    found = proof.chapter(v)
    (row,) = (line for line in found.blocks[0].splitlines() if line.strip().startswith("eth10g"))
    assert "no route" in row
    block = next(block for block in found.blocks if block.startswith("eth10g (EMULATED)"))
    assert "connection timed out" in " ".join(block.split())
    assert "unknown" not in block
    told = [finding.text for finding in found.findings]
    assert f"NOT MEASURED: eth10g: {REASON}." in told
    assert not [text for text in told if text.startswith("UNPROVED") and "eth10g" in text]


def test_the_other_fabrics_keep_their_verdicts(tmp_path: Path) -> None:
    v = unreachable(tmp_path)
    assert set(proof.verdicts(v, "eth2g5")) == {"proved"}
    assert proof.verdicts(v, "eth10g") == {}
    assert proof.unreachable(v, "eth2g5") == ""


def test_a_job_that_was_tried_again_has_no_say_in_the_verdict(tmp_path: Path) -> None:
    planted = lab_run()
    first = next(job for job in planted.jobs if job["fabric"] == "eth2g5")
    bad = {"verdict": "disproved", "detail": "striped"}
    planted.jobs.insert(0, {**first, "job": 90, "proof": bad, "status": "failed", "reason": "gone", "retried": True})
    v = view(load(planted.write(tmp_path)))
    assert set(proof.verdicts(v, "eth2g5")) == {"proved"}
    assert not [finding for finding in proof.chapter(v).findings if "DISPROVED" in finding.text]
    told = " ".join(" ".join(blocks(v)).split())
    assert "job 90 (launch 1, eth2g5; tried again since): failed: gone" in told
