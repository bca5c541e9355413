"""iperf3's JSON: one stream of a test, or the sum of several, as what the receiver got."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from microbench.record import Metric
from reports.load import mapping
from reports.view import number
from suite.imported.cutjson import Document
from suite.imported.model import Found, Log, Trouble, imported

NAME = "iperf3"
NO_SUM = "the test has no sum of its own at its end: it was cut off, or did not finish"


def is_json(data: Any) -> bool:
    """Whether a JSON document is iperf3's."""
    if not isinstance(data, dict):
        return False
    start = data.get("start")
    return isinstance(start, dict) and ("test_start" in start or "iperf" in str(start.get("version", "")))


def read_json(document: Document) -> Log:
    """The result of one document; a test that ended with an error has failed."""
    data, start = document.data, _part(document.data, "start")
    suite = str(start.get("version", "")).replace("iperf ", "iperf3 ", 1).strip() or NAME
    base = _described(start, document.line, suite)
    if data.get("error"):
        reason = " ".join(str(data["error"]).removeprefix("error - ").split())
        return Log(suite, (replace(base, status="failed", reason=reason),))
    metrics = _metrics(_part(data, "end"))
    if "bandwidth" not in metrics:
        return Log(suite, (), (Trouble(document.line, NO_SUM),))
    both = "sum_received_bidir_reverse" in _part(data, "end") or "sum_bidir_reverse" in _part(data, "end")
    result = replace(base, metrics=metrics)
    return Log(suite, (replace(result, benchmark="bibw", direction="bi") if both else result,))


def _part(data: Any, name: str) -> Mapping[str, Any]:
    return mapping(mapping(data).get(name))


def _described(start: Mapping[str, Any], line: int, suite: str) -> Found:
    test = _part(start, "test_start")
    protocol, streams, block = str(test.get("protocol", "")), test.get("num_streams"), test.get("blksize")
    connected = start.get("connected")
    first = connected[0] if isinstance(connected, list) and connected and isinstance(connected[0], dict) else {}
    ends = tuple(str(first[name]) for name in ("local_host", "remote_host") if first.get(name))
    hosts = ends[::-1] if test.get("reverse") else ends  # the sender first
    method = {"suite": suite, "statistic": "mean", "protocol": protocol, "streams": streams,
              "seconds": test.get("duration")}  # fmt: skip
    several = f"{streams} streams" if isinstance(streams, int) and streams > 1 else ""
    return Found(
        line, "bandwidth", nbytes=block if isinstance(block, int) else None, ranks=2,
        hosts=hosts if len(hosts) == 2 else (), direction="uni", mode=" ".join(p for p in (NAME, protocol) if p),
        workload=several, backend="sockets", method={k: x for k, x in method.items() if x not in (None, "")},
    )  # fmt: skip


def _metrics(end: Mapping[str, Any]) -> dict[str, Metric]:
    """Bandwidth over both directions where there are two, and what was sent again or lost."""
    got = [_rate(end, name) for name in ("sum_received", "sum_received_bidir_reverse")]
    if got[0] is None:  # UDP before iperf 3.13 has one sum, of what was sent
        got = [_rate(end, name, lost=True) for name in ("sum", "sum_bidir_reverse")]
    known = [value for value in got if value is not None]
    found = {"bandwidth": imported(sum(known), "bytes/s", 1 / 8, better="higher")} if got[0] is not None else {}
    again, lost = number(_part(end, "sum_sent").get("retransmits")), number(_part(end, "sum").get("lost_percent"))
    found |= {} if again is None else {"retransmits": imported(again, "1")}
    return found | ({} if lost is None else {"lost_fraction": imported(lost, "1", 0.01)})


def _rate(end: Mapping[str, Any], name: str, lost: bool = False) -> float | None:
    """Bits/s of a sum; of one that counts what was sent, less the part that was lost."""
    total = _part(end, name)
    value, percent = number(total.get("bits_per_second")), number(total.get("lost_percent"))
    if value is None or value <= 0:
        return None
    return value * (1 - percent / 100 if lost and percent is not None else 1.0)
