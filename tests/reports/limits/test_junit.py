"""JUnit XML as a CI server's schema has it (that of Jenkins' xunit plugin), with failures, errors and skips apart."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from reports.limits.judge import judge
from reports.limits.junit import to_junit
from reports.limits.model import Limits
from tests.reports.folder import MIB, Folder
from tests.reports.limits.planted import MB, criterion, seen, stream

# By element: its attributes (those with a + must be there), and what may stand in it.
TOLD = ({"message", "type"}, set[str]())
GRAMMAR: dict[str, tuple[set[str], set[str]]] = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"+name", "+tests", "+failures", "+errors", "group", "time", "skipped", "timestamp", "hostname", "id",
         "package", "file", "log", "url"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set(), {"property"}),
    "property": ({"+name", "+value"}, set()),
    "testcase": ({"+name", "time", "classname", "group"}, {"skipped", "error", "failure", "system-out", "system-err"}),
    "skipped": TOLD, "error": TOLD, "failure": TOLD,
    "system-out": (set(), set()), "system-err": (set(), set()),
}  # fmt: skip
TIME = re.compile(r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]*)?")


def check(element: ET.Element) -> None:
    """Fails where the element is not what the schema has."""
    attributes, inside = GRAMMAR[element.tag]
    assert set(element.attrib) <= {name.removeprefix("+") for name in attributes}, element.tag
    assert {name[1:] for name in attributes if name.startswith("+")} <= set(element.attrib), element.tag
    assert TIME.fullmatch(element.get("time", "0"))
    for child in element:
        assert child.tag in inside, f"{child.tag} in {element.tag}"
        check(child)


def planted() -> tuple[Folder, Limits]:
    f = Folder()
    stream(f, 1100.0)
    stream(f, 900.0, fabric="roce1")
    stream(f, 1000.0, fabric="roce2")
    f.add("bandwidth", "roce3", MIB, status="failed", reason="<rank> 1 & \x00 died\ud800")
    stream(f, 900.0, fabric="eth10g")
    return f, Limits("planted", (criterion(lower=1000 * MB, name=" a  name\n"), criterion("busbw", lower=1.0)))


def document() -> ET.Element:
    f, limits = planted()
    v = seen(f)
    return ET.fromstring(to_junit(v, judge(v, limits)).encode())  # noqa: S314 - our own


def test_it_is_what_the_schema_has() -> None:
    check(document())


def test_failures_errors_and_skips_are_counted_apart() -> None:
    first, second = document()
    told = {name: first.get(name) for name in ("name", "tests", "failures", "errors", "skipped", "hostname")}
    assert told == {"name": "a name", "tests": "5", "failures": "1", "errors": "1", "skipped": "2", "hostname": "node1"}
    for suite in (first, second):
        cases = suite.findall("testcase")
        assert int(suite.attrib["tests"]) == len(cases)
        for tag, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            assert int(suite.attrib[name]) == sum(case.find(tag) is not None for case in cases)
    assert first.get("timestamp") == "2026-03-01T10:00:00"


def test_each_tells_metric_limit_interval_and_count() -> None:
    first, _ = document()
    cases = {case.attrib["name"]: case for case in first.findall("testcase")}
    failed = next(case for name, case in cases.items() if "roce1" in name)
    found = failed.find("failure")
    assert found is not None and failed.attrib["classname"] == "fabricbench.a name"
    assert found.attrib["message"] == (
        "bandwidth of bandwidth 2 ranks 1 MiB on roce1, n0-n1 (int8): fail: 900.0 [891.0, 909.0] MB/s"
        " (n 100, within one launch) against at least 1000.0 MB/s; below the lower limit"
    )
    passed = next(case for name, case in cases.items() if "roce0" in name)
    assert [child.tag for child in passed] == ["system-out"]
    assert "pass: 1100.0 [" in (passed.findtext("system-out") or "")
    properties = {p.attrib["name"]: p.attrib["value"] for p in first.iter("property")}
    assert properties["selects"] == "benchmark bandwidth" and properties["verdict"] == "fail"


def test_text_of_others_cannot_break_the_document() -> None:
    first, _ = document()
    found = next(case for case in first.iter("testcase") if "roce3" in case.attrib["name"]).find("error")
    assert found is not None and "<rank> 1 & ? died?" in found.attrib["message"]
