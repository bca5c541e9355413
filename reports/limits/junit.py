"""Verdicts as JUnit XML, as CI servers read it.

A test suite per criterion, a test case per case: what fails is a failure, what was not measured an error, what is
inconclusive or left out is skipped, each with its reason. Elements and attributes are those of the schema by which
Jenkins checks (junit-10.xsd of its xunit plugin), in Ant's order, with no time zone and no exponents.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

from reports.limits.model import Judged, Judgement, Ruling
from reports.limits.told import selector_text
from reports.view import View

_TAGS = {"fail": "failure", "not measured": "error", "inconclusive": "skipped"}
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML 1.0, section 2.2


def to_junit(v: View, judgement: Judgement) -> str:
    """The judgement as one XML document."""
    root = ET.Element("testsuites")
    for number, ruling in enumerate(judgement.rulings):
        root.append(_suite(v, judgement, ruling, number))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(v: View, judgement: Judgement, ruling: Ruling, number: int) -> ET.Element:
    tally = Counter(case.verdict for case in ruling.cases)
    left = len(ruling.left_out)
    suite = ET.Element("testsuite", {
        "name": _token(ruling.criterion.name), "package": "fabricbench", "id": str(number),
        "timestamp": _timestamp(v), "hostname": _token(str(v.data.environment.get("hostname") or "localhost")),
        "tests": str(len(ruling.cases) + left), "failures": str(tally["fail"]), "errors": str(tally["not measured"]),
        "skipped": str(tally["inconclusive"] + left), "time": "0",
    })  # fmt: skip
    properties = ET.SubElement(suite, "properties")
    notices = (("notice", notice) for notice in v.data.notices)
    for name, value in (*_properties(v, judgement, ruling).items(), *notices):
        ET.SubElement(properties, "property", {"name": name, "value": _clean(value)})
    for case in ruling.cases:
        _case(suite, ruling, case)
    for out in ruling.left_out:
        _told(_testcase(suite, ruling, out.case), "skipped", "not judged", out.reason)
    ET.SubElement(suite, "system-out").text = _clean(f"{ruling.criterion.name}: {ruling.verdict}\n")
    ET.SubElement(suite, "system-err").text = ""
    return suite


def _properties(v: View, judgement: Judgement, ruling: Ruling) -> dict[str, str]:
    told = {"limits": judgement.limits.name, "baseline": judgement.baseline, "run": str(v.data.run.get("id") or ""),
            "line": str(ruling.criterion.line), "metric": ruling.criterion.metric,
            "selects": selector_text(ruling.criterion), "verdict": ruling.verdict}  # fmt: skip
    return {name: value for name, value in told.items() if value}


def _case(suite: ET.Element, ruling: Ruling, case: Judged) -> None:
    found = _testcase(suite, ruling, case.case or ruling.criterion.name)
    if case.verdict != "pass":
        _told(found, _TAGS[case.verdict], case.verdict, case.text)
    launches = ", ".join(map(str, case.records))
    ET.SubElement(found, "system-out").text = _clean(case.text + (f"\nlaunches {launches}" if launches else ""))


def _testcase(suite: ET.Element, ruling: Ruling, name: str) -> ET.Element:
    named = {"name": _token(name), "classname": f"fabricbench.{_token(ruling.criterion.name)}", "time": "0"}
    return ET.SubElement(suite, "testcase", named)


def _told(testcase: ET.Element, tag: str, kind: str, text: str) -> None:
    ET.SubElement(testcase, tag, {"message": _clean(text), "type": kind}).text = _clean(text)


def _timestamp(v: View) -> str:
    """When the run began, in UTC and without a zone, which the schema has no place for."""
    try:
        began = datetime.fromisoformat(str(v.data.run.get("started")))
    except ValueError:
        began = datetime.fromtimestamp(0, UTC)
    zoned = began if began.tzinfo else began.replace(tzinfo=UTC)
    return zoned.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _clean(text: str) -> str:
    """Without the characters that XML has no way to write."""
    return _NOT_XML.sub("?", text)


def _token(text: str) -> str:
    """One line, without blanks at its ends or in a row."""
    return " ".join(_clean(text).split()) or "-"
