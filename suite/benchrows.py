"""What ``fabricbench bench`` prints of a record as soon as it is there."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from microbench.record import Record
from reports.samples import Samples
from reports.units import Unit
from suite import benchmodes, benchtable, environment, osuformat


def show_osu(table: osuformat.Table, record: Record, samples: Samples, first: bool) -> None:
    """A record in OSU's columns, under their title where it is the first."""
    lines = osuformat.title(table, record, environment.version()) if first else []
    print("\n".join([*lines, osuformat.row(table, record, samples)]), flush=True)


def show(record: Record, before: Sequence[Record], byte_rate: Unit | None, timed: bool) -> None:
    """A line of JSON, or without it a row, under a title and, before the first that has a result, the headings."""
    if byte_rate is None:
        print(record.to_json())
    elif timed:
        if not before:
            print(benchtable.title(record))
        if record.status == "ok" and not any(other.status == "ok" for other in before):
            print(benchtable.method(record))
            print(benchtable.columns(record, byte_rate))
        print(benchtable.row(record, byte_rate))
    else:
        print("\n".join([*([] if before else [benchtable.title(record)]), *benchmodes.lines(record, byte_rate)]))
    sys.stdout.flush()
