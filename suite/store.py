"""A run on disk: ``run.json`` written whole, ``records.jsonl`` and ``samples/`` appended and synced."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabrics.errors import CannotRun, UserError
from microbench.record import Record, finite

_OURS = frozenset({"samples", ".lock", "run.json", "records.jsonl", "report.txt", "log.txt"})


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


class RunFolder:
    """An open run: the only writer of its folder."""

    def __init__(self, directory: Path) -> None:
        """Make the folder. UserError where it holds anything or is in use, CannotRun where it can't be written."""
        self.directory = directory
        try:
            directory.mkdir(parents=True, exist_ok=True)
            foreign = [entry.name for entry in directory.iterdir() if entry.name not in _OURS]
            if foreign:
                raise UserError(f"{directory} is not empty ({foreign[0]}): choose another folder with -o")
            (directory / "samples").mkdir(exist_ok=True)
            self._lock = (directory / ".lock").open("w")
        except OSError as error:
            why = error.strerror
            raise CannotRun(f"cannot write the run into {directory}: {why}; choose another folder with -o") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(f"{directory} is in use by another run: choose another folder with -o") from None
        if (directory / "run.json").exists():
            raise UserError(f"{directory} holds a run already: choose another folder with -o")
        self._records = (directory / "records.jsonl").open("a", encoding="utf-8")
        self.count = 0

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
        self._records.write(replace(record, samples=cited).to_json() + "\n")
        self._records.flush()
        os.fsync(self._records.fileno())
        self.count += 1

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
