"""perftest (ib_write_bw, ib_send_lat, ...), as text and as JSON (``--out_json``).

``time`` is its typical, the median, where it is printed, else its average; a read's and an atomic's is the whole round
trip, others' half of it. A rate's unit (2^20 B/s or 1e9 bit/s) is what agrees with its own messages per second.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from microbench.record import Metric
from suite.imported.cutjson import Document
from suite.imported.model import GB, MIB, Found, Line, Log, Malformed, Trouble, imported, number, rate, time, whole
from suite.imported.tables import CUT, Reader

NAME = "perftest"
_TITLE = re.compile(
    r"\s*(?P<name>(?:RDMA|Send|Write|Read|Atomic|Raw)(?:[ _]\w+)*?)[ _](?P<kind>BW|Latency|Lat)[ _]Test\s*"
)
_BOTH, _WORDS = "Bidirectional", ("Bidirectional", "Post", "List")
_PAIR = re.compile(r"([A-Z][\w* ./-]*?)\s*:\s*(\S+)")
_HEADING = re.compile(r"\s*#bytes\s+#iterations\b.*")
_HEADS = re.compile(r"(?:99(?:\.9)?% percentile|BW peak|BW average|CPU_Util|tps average|[#\w%.]+)(?:\[[^]]*\])?")
_RULE = re.compile(r"-{20,}")
_RATES = {"MB/sec": MIB, "MiB/sec": MIB, "Gb/sec": GB / 8}
_AGREE = 0.01


@dataclass(frozen=True)
class Test:
    """A test's title, what it says of its set-up, and its columns."""

    verb: str
    latency: bool
    both: bool = False
    told: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    unit: float = 0.0


def starts(line: Line) -> bool:
    """Whether a line is the title of such output."""
    return _titled(line.text) is not None


def _titled(text: str) -> Test | None:
    """``RDMA_Write Bidirectional BW Test``, or in JSON ``RDMA_Write_BW_Test``."""
    found = _TITLE.fullmatch(text)
    if found is None:
        return None
    words = re.split(r"[ _]", found["name"])
    return Test("_".join(w for w in words if w not in _WORDS), found["kind"] != "BW", _BOTH in words)


def read(section: Sequence[Line], last: int) -> Log:
    """The results of a section; without the line below the table it was cut off."""
    reader, test, ended = Reader(last), None, True
    for line in section:
        text = line.text.strip()
        if (found := _titled(line.text)) is not None:
            test, ended = found, False
            reader.table(line.number)
        elif test is not None and _HEADING.fullmatch(line.text):
            test = _headed(test, text)
        elif test is not None and test.columns and _RULE.fullmatch(text):
            ended, test = True, replace(test, columns=())
            reader.end()
        elif test is not None and test.columns and text[:1].isdigit():
            reader.row(line, _row(test), lambda found: found.nbytes)
        elif test is not None and not test.columns and ":" in text:
            test = replace(test, told={**test.told, **dict(_PAIR.findall(text))})
        elif text and not _RULE.fullmatch(text) and not text.startswith("*"):
            reader.leave(line)
    reader.end()
    if not ended:
        reader.left.append((section[-1].number, f"the line below the table is not there: {CUT.rpartition(': ')[2]}"))
    return Log(NAME, tuple(reader.found), reader.troubles)


def _headed(test: Test, text: str) -> Test:
    heads = _HEADS.findall(text)
    unit = next((scale for name, scale in _RATES.items() if f"BW average[{name}]" in heads), 0.0)
    return replace(test, columns=tuple(head.partition("[")[0].lower() for head in heads), unit=unit)


def _row(test: Test) -> Callable[[Line], Sequence[Found]]:
    def read_row(line: Line) -> Sequence[Found]:
        tokens = line.text.split()
        if len(tokens) != len(test.columns):
            raise Malformed(f"{len(tokens)} columns where its table has {len(test.columns)}")
        return [_result(test, line.number, dict(zip(test.columns, tokens, strict=True)))]

    return read_row


def _result(test: Test, line: int, cells: Mapping[str, str]) -> Found:
    nbytes, n = whole(cells["#bytes"]), whole(cells["#iterations"])
    method = {"suite": NAME, "statistic": "median" if "t_typical" in cells else "mean"}
    method |= {"device_name": device} if (device := test.told.get("Device", "")) else {}
    method |= {"qps": qps} if (qps := test.told.get("Number of qps", "")) else {}
    metrics = _times(cells, n) if test.latency else _bandwidth(test, cells, nbytes, n)
    benchmark = "latency" if test.latency else "bibw" if test.both else "bandwidth"
    direction = "ping-pong" if test.latency else "bi" if test.both else "uni"
    return Found(line, benchmark, metrics, nbytes, ranks=2, direction=direction, mode=f"{NAME} {test.verb}",
                 backend="verbs", workload="" if qps in ("", "1") else f"{qps} QPs", method=method)  # fmt: skip


def _times(cells: Mapping[str, str], n: int) -> dict[str, Metric]:
    named = {"t_typical": "time", "t_avg": "time_mean", "t_min": "time_min", "t_max": "time_max",
             "99% percentile": "time_p99", "99.9% percentile": "time_p99.9", "t_stdev": "time_deviation"}  # fmt: skip
    found = {name: time(number(cells[cell]), n) for cell, name in named.items() if cell in cells}
    if "time" not in found and "time_mean" in found:
        found = {"time": found.pop("time_mean")} | found
    if "time" not in found:
        raise Malformed("no time that is known here")
    for name in ("time_min", "time_deviation"):
        if name in found:
            found[name] = replace(found[name], better="none")
    return found


def _bandwidth(test: Test, cells: Mapping[str, str], nbytes: int, n: int) -> dict[str, Metric]:
    printed, rated = number(cells["bw average"]), number(cells.get("msgrate", "nan"))
    unit = _unit(test.unit, printed, rated, nbytes)
    messages = imported(rated, "messages/s", 1e6, n, "higher")
    peak = number(cells.get("bw peak", "nan"))
    found = {"bandwidth": rate(printed, unit, n, payload=nbytes)}
    found |= {"bandwidth_peak": replace(rate(peak, unit, n), better="none")} if peak else {}
    return found | ({"message_rate": messages} if rated else {})


def _unit(named: float, printed: float | None, rated: float | None, nbytes: int) -> float:
    """Bytes/s of a printed rate: as its heading says, or what agrees with the messages per second."""
    if named:
        return named
    if printed and rated:
        for unit in (MIB, GB / 8):
            if abs(printed * unit / (rated * 1e6 * nbytes) - 1) < _AGREE:
                return unit
    raise Malformed("the unit of the bandwidth is not told, and does not follow from messages per second")


def is_json(data: Any) -> bool:
    """Whether a JSON document is perftest's."""
    return isinstance(data, dict) and "test_info" in data


def read_json(document: Document) -> Log:
    """The result of one document."""
    info, results = document.data.get("test_info"), document.data.get("results")
    title = str(info.get("test", "")) if isinstance(info, dict) else ""
    rows = results if isinstance(results, list) else [results]
    found: list[Found] = []
    troubles: list[Trouble] = []
    for row in rows:
        try:
            found.append(_result(_json_test(title, info), document.line, _cells(row)))
        except (Malformed, KeyError, AttributeError, TypeError) as error:
            why = str(error) if isinstance(error, Malformed) else "no results in it, or not complete"
            troubles.append(Trouble(document.line, why))
    return Log(NAME, tuple(found), tuple(dict.fromkeys(troubles)))


def _json_test(title: str, info: Mapping[str, Any]) -> Test:
    test = _titled(title)
    if test is None:
        raise Malformed(f"a test that is not known: {title!r}")
    return replace(
        test, told={"Device": str(info.get("Device", "")), "Number of qps": str(info.get("Number_of_qps", ""))}
    )


def _cells(row: Mapping[str, Any]) -> dict[str, str]:
    """A result by the names of the text's columns."""
    named = {"MsgSize": "#bytes", "n_iterations": "#iterations", "BW_peak": "bw peak", "BW_average": "bw average",
             "MsgRate": "msgrate"}  # fmt: skip
    found = {named.get(name, name): str(value) for name, value in row.items()}
    tails = {name: value for name, value in found.items() if "99" in name}
    for name, value in tails.items():
        found["99.9% percentile" if re.search(r"99[._]9", name) else "99% percentile"] = value
    return found
