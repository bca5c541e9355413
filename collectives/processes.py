"""Executes the ranks' views of a schedule apart from each other, as processes whose messages are not buffered.

A process posts the receives and sends of a round and goes on when all of them are matched; messages of a pair of
ranks match first in, first out. Only the matching is executed: what is computed, :mod:`collectives.checker` shows.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable

import numpy as np

from collectives.schedule import ScheduleError, Table, View

Row = list[int]  # round, source, target, count, and the rest of a message
Posted = dict[tuple[int, int], deque[Row]]


class _Process:
    """A rank that carries out its view: posts a round's receives and sends, and goes on when all are matched."""

    def __init__(self, view: View) -> None:
        self.rank, self.open = view.rank, 0
        self.parts: dict[int, tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
        for side, table in enumerate((view.receives, view.sends)):
            for row in _rows(table):
                self.parts[row[0]][side].append(row)
        self.order = deque(sorted(self.parts))


def _rows(table: Table) -> list[Row]:
    m = table.messages
    columns = (table.number, m.source, m.target, m.count, m.read_from, m.read_at, m.write_to, m.write_at, m.combine)
    rows: list[Row] = np.stack(columns, axis=1).tolist()
    return rows


def check_views(views: Iterable[View]) -> None:
    """Execute the ranks apart, with unbuffered messages matched first in, first out per pair.

    Raises ScheduleError where a rank would wait for ever, or where the two ends mean different messages.
    """
    processes = {view.rank: _Process(view) for view in views}
    posted: tuple[Posted, Posted] = (defaultdict(deque), defaultdict(deque))
    ready = deque(processes.values())
    while ready:
        process = ready.popleft()
        if not process.order:
            continue
        sides = process.parts[process.order[0]]
        process.open = len(sides[0]) + len(sides[1])
        for side, rows in enumerate(sides):
            for row in rows:
                pair = (row[1], row[2])
                if not posted[1 - side][pair]:
                    posted[side][pair].append(row)
                    continue
                _agree(posted[1 - side][pair].popleft(), row)
                for rank in pair:
                    ended = processes[rank]
                    ended.open -= 1
                    if ended.open == 0:
                        ended.order.popleft()
                        ready.append(ended)
    _refuse_waiting(*posted)


def _agree(one: Row, other: Row) -> None:
    if one != other:
        what = "counts" if one[3] != other[3] else "messages"
        raise ScheduleError(
            f"rank {one[1]} to rank {one[2]}: the two ends have different {what}:"
            f" {one[3]} elements in round {one[0]}, {other[3]} in round {other[0]}"
        )


def _refuse_waiting(receives: Posted, sends: Posted) -> None:
    """Raise for the first that waits, in the earliest round."""
    doomed = [(row, row[2], row[1], "to receive from") for rows in receives.values() for row in rows]
    doomed += [(row, row[1], row[2], "to send to") for rows in sends.values() for row in rows]
    if doomed:
        row, rank, peer, doing = min(doomed)
        raise ScheduleError(f"round {row[0]}: rank {rank} waits for ever {doing} rank {peer} ({row[3]} elements)")
