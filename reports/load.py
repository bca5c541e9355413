"""A run folder read back: ``run.json`` and every whole line of ``records.jsonl``."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import Field, dataclass, fields
from pathlib import Path
from typing import Any, get_args

from microbench.record import SCHEMA, Metric, Record, Status

RUN_SCHEMA = 1
UNFINISHED = "the run is unfinished: it crashed, or is still going on; cases not listed were not measured"
INTERRUPTED = "the run was interrupted; cases not listed were not measured"
SPENT = "the run's budget of time had passed; cases not listed were not measured"
_DROPPED = ": dropped"

_TYPES: Mapping[str, Any] = {
    "str": str, "int": int, "bool": bool, "tuple": tuple, "Mapping": Mapping, "Status": str, "Better": str,
    "MetricKind": str, "int | None": int | None, "float | None": float | int | None,
}  # fmt: skip


class NotARun(Exception):
    """The folder holds no run that this version can read; one line says why. The command exits with 2."""


@dataclass(frozen=True)
class RunData:
    """A run as it is on disk: ``run.json``, the records in the order written, and notices of damage."""

    run: Mapping[str, Any]
    records: tuple[Record, ...]
    notices: tuple[str, ...] = ()

    @property
    def environment(self) -> Mapping[str, Any]:
        """The machine and its software; empty where the run did not say."""
        return mapping(self.run.get("environment"))

    @property
    def plan(self) -> Mapping[str, Any]:
        """What was to run; empty where the run did not say."""
        return mapping(self.run.get("plan"))

    @property
    def fabrics(self) -> tuple[Mapping[str, Any], ...]:
        """Every fabric the run knew of, unusable ones included."""
        return mappings(self.run.get("fabrics"))

    @property
    def jobs(self) -> tuple[Mapping[str, Any], ...]:
        """Every MPI job that was launched, with its proof."""
        return mappings(self.run.get("jobs"))

    @property
    def finished(self) -> bool:
        """Whether the run came to its end."""
        return bool(self.run.get("finished"))

    @property
    def dropped(self) -> int:
        """How many lines of records could not be read."""
        return sum(notice.endswith(_DROPPED) for notice in self.notices)

    @property
    def unfinished(self) -> str:
        """Why the run did not come to its end, as far as it says; empty where it did."""
        return "" if self.finished else self.notices[0]


def mapping(data: Any) -> Mapping[str, Any]:
    """``data`` if it is a mapping, else an empty one."""
    return data if isinstance(data, Mapping) else {}


def mappings(data: Any) -> tuple[Mapping[str, Any], ...]:
    """The mappings of a list; anything else is left out."""
    return tuple(item for item in data if isinstance(item, Mapping)) if isinstance(data, list | tuple) else ()


def load(directory: Path) -> RunData:
    """The run in ``directory``.

    A torn or corrupt line of ``records.jsonl`` is dropped with a notice that names it. Raises NotARun where
    there is no readable ``run.json``, or the run was written by a newer version.
    """
    run = _read_run(Path(directory))
    records, notices = _read_records(Path(directory) / "records.jsonl")
    notices += _lost_samples(Path(directory), records)
    if not run.get("finished"):
        notices.insert(0, {"interrupted": INTERRUPTED, "budget": SPENT}.get(str(run.get("ended")), UNFINISHED))
    return RunData(run, tuple(records), tuple(notices))


def _read_run(directory: Path) -> Mapping[str, Any]:
    path = directory / "run.json"
    try:
        run = _parse(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise NotARun(f"{directory}: no run.json: give a folder that 'fabricbench run' wrote") from None
    except OSError as error:
        raise NotARun(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise NotARun(f"{path}: not JSON ({error}): the run cannot be read") from None
    schema = run.get("schema") if isinstance(run, Mapping) else None
    if not isinstance(schema, int):
        raise NotARun(f"{path}: has no schema number: not a run of fabricbench")
    if schema > RUN_SCHEMA:
        raise NotARun(f"{path}: run schema {schema} is newer than {RUN_SCHEMA}: update fabricbench")
    return _shaped(mapping(run))


def _shaped(run: Mapping[str, Any]) -> Mapping[str, Any]:
    """``run`` with lists where lists belong: whatever else stands there, by hand or by damage, is left out."""
    plan = dict(mapping(run.get("plan")))
    if "jobs" in plan:
        plan["jobs"] = [_with_lists(job, "cases", "hosts", "roles", "cpus") for job in mappings(plan["jobs"])]
    whole: dict[str, Any] = {
        "plan": plan,
        "fabrics": [_with_lists(fabric, "hosts") | _devices(fabric) for fabric in mappings(run.get("fabrics"))],
        "jobs": [_with_lists(job, "hosts", "roles", "cpus") for job in mappings(run.get("jobs"))],
        "warnings": [text for text in _list(run.get("warnings")) if isinstance(text, str)],
        "resumed": [text for text in _list(run.get("resumed")) if isinstance(text, str)],
    }
    return {**run, **{name: value for name, value in whole.items() if name in run}}


def _with_lists(data: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {**data, **{name: _list(data[name]) for name in names if name in data}}


def _devices(fabric: Mapping[str, Any]) -> dict[str, Any]:
    devices = mapping(fabric.get("devices"))
    return {"devices": {host: _list(names) for host, names in devices.items()}} if "devices" in fabric else {}


def _list(data: Any) -> list[Any]:
    return list(data) if isinstance(data, list | tuple) else []


def _read_records(path: Path) -> tuple[list[Record], list[str]]:
    records: list[Record] = []
    notices: list[str] = []
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return [], ["records.jsonl is missing: nothing was measured yet, or the file was lost"]
    except OSError as error:
        raise NotARun(f"{path}: cannot be read: {error.strerror}") from None
    for number, line in _whole(lines):
        try:
            records.append(_record(line, path, number))
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            torn = number == len(lines)
            what = "torn, as a crash leaves it" if torn else f"corrupt ({_short(error)})"
            notices.append(f"records.jsonl line {number} is {what}{_DROPPED}")
    return records, notices


def _lost_samples(directory: Path, records: Iterable[Record]) -> list[str]:
    """That files of samples, which records cite, are not there or are too short; numbers are the records' own."""
    ends: dict[str, int] = {}
    for cited in (mapping(of) for record in records for of in mapping(record.samples).values()):
        if isinstance(name := cited.get("file"), str) and isinstance(offset := cited.get("offset"), int):
            ends[name] = max(ends.get(name, 0), offset + 1)
    sizes = {name: path.stat().st_size if (path := directory / name).is_file() else 0 for name in ends}
    lost = [name for name, end in ends.items() if sizes[name] < end]
    if not lost:
        return []
    more = f" and {len(lost) - 1} more" if lost[1:] else ""
    return [f"{lost[0]}{more} cited by records, missing or cut off: the numbers below cannot be remade from samples"]


def _whole(lines: list[bytes]) -> Iterator[tuple[int, bytes]]:
    return ((number, line) for number, line in enumerate(lines, 1) if line.strip())


def _parse(data: bytes) -> Any:
    """JSON; NaN and infinities, which no version of ours writes, are no values."""
    return json.loads(data.decode("utf-8"), parse_constant=lambda _: None, parse_float=_finite)


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:80]


def _record(line: bytes, path: Path, number: int) -> Record:
    data = _parse(line)
    schema = mapping(data).get("schema")
    if isinstance(schema, int) and schema > SCHEMA:
        raise NotARun(f"{path} line {number}: record schema {schema} is newer than {SCHEMA}: update fabricbench")
    record = Record.from_dict(data)
    _check(record, fields(Record))
    for metric in record.metrics.values():
        _check(metric, fields(Metric))
    if record.status not in get_args(Status):
        raise ValueError(f"unknown status {record.status!r}")
    return record


def _check(data: Any, expected: tuple[Field[Any], ...]) -> None:
    """Every field has its declared type, so that no report stumbles over a damaged one."""
    for field in expected:
        kind = _TYPES[str(field.type).partition("[")[0]]
        if not isinstance(getattr(data, field.name), kind):
            raise TypeError(f"field {field.name!r} is not {field.type}")
