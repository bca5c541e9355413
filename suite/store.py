"""A run on disk: ``run.json`` written whole, ``records.jsonl`` and ``samples/`` appended and synced."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabrics.errors import CannotRun, UserError
from microbench.record import Record, finite
from reports.load import NotARun, RunData, load

_OURS = frozenset({"samples", ".lock", "run.json", "records.jsonl", "report.txt", "log.txt"})
_DRAFT = re.compile(r"\.(run\.json|report\.txt)\.\d+")  # what a killed writer leaves of a file written whole
TORN = "the run was ended while it wrote a record: the torn line was cut off, and its case is measured again"


def write_whole(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old one or the new one, and nothing between."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def holds_run(directory: Path) -> bool:
    """Whether there is a run in the folder, whatever became of it."""
    return (directory / "run.json").exists()


def stored(directory: Path) -> RunData:
    """What is on disk of a run; UserError where there is none."""
    try:
        return load(directory)
    except NotARun as error:
        raise UserError(str(error)) from None


class RunFolder:
    """An open run: the only writer of its folder."""

    def __init__(self, directory: Path, resume: bool = False) -> None:
        """Make the folder, or with ``resume`` open one that holds a run.

        UserError where it holds anything else or is in use, CannotRun where it can't be written.
        """
        self.directory = directory
        if resume and not holds_run(directory):
            raise UserError(f"{directory} holds no run to go on with: leave out --resume to begin one")
        try:
            if not resume:
                _make(directory)
            (directory / "samples").mkdir(exist_ok=True)
            self._lock = (directory / ".lock").open("w")
        except OSError as error:
            raise _unwritable(directory, error) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise UserError(f"{directory} is in use by another run: choose another folder with -o") from None
        if not resume and holds_run(directory):
            self._lock.close()
            raise UserError(
                f"{directory} holds a run already: choose another folder with -o, or go on with it with --resume"
            )
        try:
            for draft in [entry for entry in directory.iterdir() if _DRAFT.fullmatch(entry.name)]:
                draft.unlink()
            self._records = (directory / "records.jsonl").open("ab", buffering=0)
        except OSError as error:
            self._lock.close()
            raise _unwritable(directory, error) from None
        self.count = 0

    def mend(self) -> str:
        """Bring ``records.jsonl`` to the end of a line, as a killed writer may not have; what was lost, or nothing."""
        path = self.directory / "records.jsonl"
        data = path.read_bytes()
        end = data.rfind(b"\n") + 1
        if end == len(data):
            return ""
        if _whole(data[end:]):
            self._append(b"\n")
            return ""
        os.ftruncate(self._records.fileno(), end)
        os.fsync(self._records.fileno())
        return TORN

    def write_run(self, run: Mapping[str, Any]) -> None:
        """Replace ``run.json``."""
        write_whole(self.directory / "run.json", json.dumps(finite(run), indent=1, allow_nan=False) + "\n")

    def write_report(self, text: str) -> None:
        """Replace ``report.txt``."""
        write_whole(self.directory / "report.txt", text)

    def log(self, text: str) -> None:
        """Append to the log of what workers and launchers said."""
        with (self.directory / "log.txt").open("a", encoding="utf-8") as file:
            file.write(text if text.endswith("\n") else text + "\n")

    def add(self, record: Record, samples: Mapping[str, NDArray[Any]], job: int) -> None:
        """Append the samples, then the line that cites them; both are on disk when this returns."""
        cited = self._add_samples(samples, f"job-{job}.bin") if samples else {}
        self._append(replace(record, samples=cited).to_json().encode() + b"\n")
        self.count += 1

    def _append(self, line: bytes) -> None:
        """The whole line, or on a full disk nothing of it."""
        descriptor = self._records.fileno()
        before, rest = os.fstat(descriptor).st_size, memoryview(line)
        try:
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            os.fsync(descriptor)
        except BaseException as error:
            if rest or isinstance(error, OSError):
                os.ftruncate(descriptor, before)
            raise

    def _add_samples(self, samples: Mapping[str, NDArray[Any]], name: str) -> dict[str, Any]:
        cited = {}
        with (self.directory / "samples" / name).open("ab") as file:
            for key, array in samples.items():
                cited[key] = {
                    "file": f"samples/{name}",
                    "offset": file.tell(),
                    "shape": list(array.shape),
                    "dtype": array.dtype.str,
                    "unit": "ns" if np.issubdtype(array.dtype, np.integer) else "s",
                }
                file.write(array.tobytes())
            file.flush()
            os.fsync(file.fileno())
        return cited

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._records.close()
        self._lock.close()


def _make(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    found = [entry.name for entry in directory.iterdir()]
    foreign = [name for name in found if name not in _OURS and not _DRAFT.fullmatch(name)]
    if foreign:
        raise UserError(f"{directory} is not empty ({foreign[0]}): choose another folder with -o")


def _unwritable(directory: Path, error: OSError) -> CannotRun:
    return CannotRun(f"cannot write the run into {directory}: {error.strerror}; choose another folder with -o")


def _whole(line: bytes) -> bool:
    try:
        Record.from_dict(json.loads(line))
    except ValueError:  # of the encoding, of JSON, or of the record
        return False
    return True
