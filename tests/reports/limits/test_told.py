"""Verdicts as text and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from reports.limits.judge import judge
from reports.limits.model import Limits, Range
from reports.limits.told import selector_text, to_json, to_text
from reports.render import render
from tests.reports.folder import MIB, Folder, lab_run
from tests.reports.limits.planted import MB, criterion, seen, stream


def planted() -> tuple[Folder, Limits]:
    f = Folder()
    stream(f, 1200.0)
    stream(f, 900.0, fabric="roce1")
    stream(f, 900.0, fabric="eth10g")
    return f, Limits("planted", (criterion(lower=1000 * MB, name="stream"), criterion(lower=MB, name="some")))


def test_text_has_a_line_a_criterion_and_every_case_that_does_not_pass() -> None:
    f, limits = planted()
    text = to_text(seen(f), judge(seen(f), limits))
    assert "Limits planted: 2 criteria: 1 pass, 1 fail (exit code 1)." in text
    rows = [line.split() for line in text.splitlines() if line.startswith(("fail ", "pass "))]
    assert rows == [["fail", "stream", "bandwidth", "1", "1", "1"], ["pass", "some", "bandwidth", "2", "1"]]
    assert "roce1, n0-n1 (int8): fail" in text and "roce0, n0-n1" not in text
    assert "not judged: bandwidth/eth10g/pure/mpi/int8/1048576B/2r: emulated: judged only" in " ".join(text.split())
    assert text.isascii()


def test_json_is_strict_and_whole() -> None:
    f, limits = planted()

    def refuse(token: str) -> Any:
        raise AssertionError(token)

    data = json.loads(to_json(seen(f), judge(seen(f), limits)), parse_constant=refuse)
    assert (data["exit_code"], data["limits"], data["run"]["hostname"]) == (1, "planted", "node1")
    first = data["criteria"][0]
    assert (first["criterion"], first["verdict"], first["lower"], first["unit"]) == ("stream", "fail", 1e9, "MB/s")
    assert first["selector"]["benchmark"] == ["bandwidth"]
    bad = first["cases"][1]
    assert (bad["verdict"], bad["value"], bad["bar"]["lower"]) == ("fail", 9e8, 1e9)
    assert bad["records"] == [{"id": f.records[1].id, "launch": 1}]
    assert first["left_out"][0]["case"] == f.records[2].id


def test_what_is_selected_in_words() -> None:
    found = criterion(sizes=(Range(8, 8), Range(MIB)), ranks=(Range(2, 4),))
    assert selector_text(found) == "benchmark bandwidth; sizes 8 B, 1 MiB on; ranks 2 to 4"


def test_the_report_has_the_verdicts_where_limits_are_given(tmp_path: Path) -> None:
    f = lab_run()
    f.write(tmp_path)
    found = criterion("time", "us", upper=1e-9, names={"benchmark": ("latency",), "fabric": ("shm",)}, name="quick")
    limits = Limits("mine", (found, replace(found, name="slow", upper=1.0)))
    text = " ".join(render(tmp_path, limits=limits).split())
    assert text.count("Limits mine: 2 criteria: 1 pass, 1 fail (exit code 1).") == 2  # in short, and in chapter 8
    assert "time of latency 2 ranks 8 B on shm, localhost (int8): fail" in text
    assert json.loads(render(tmp_path, "json", limits=limits))["verdicts"]["exit_code"] == 1
    assert "verdicts" not in json.loads(render(tmp_path, "json"))
