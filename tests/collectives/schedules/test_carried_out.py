"""The views carried out on numbers, as a reader with staging would: a second opinion beside the symbolic checker."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from collectives.schedule import INPUT, OUTPUT, bounds
from collectives.schedules import ALGORITHMS
from tests.collectives.schedules.layouts import build


def columns(made):
    names = ("source", "target", "read_from", "read_at", "write_to", "write_at", "count", "combine")
    return zip(*(getattr(made, name).tolist() for name in names), strict=True)


class Reader:
    """Every rank's buffers; with ``late_reads`` what overwrites lands before any send is read."""

    def __init__(self, schedule, given, late_reads):
        self.late_reads = late_reads
        self.memory = [[np.full(size, -999, "i8") for size in schedule.sizes[:, r]] for r in range(schedule.ranks)]
        for mine, values in zip(self.memory, given, strict=True):
            mine[INPUT][:] = values[: mine[INPUT].size]

    def region(self, rank, buffer, at, count):
        return self.memory[rank][buffer][at : at + count]

    def exchange(self, parts):
        wires, staged = defaultdict(list), []
        for part in parts:
            for source, target, buffer, at, _, _, count, _ in columns(part.sends):
                sent = self.region(source, buffer, at, count)
                wires[source, target].append(sent if self.late_reads else sent.copy())
        for part in parts:
            for source, target, _, _, buffer, at, count, combine in columns(part.receives):
                region, wire = self.region(target, buffer, at, count), wires[source, target].pop(0)
                if combine:
                    staged.append((region, wire.copy()))
                else:
                    region[:] = wire
        assert not any(wires.values())
        for region, arrived in staged:
            np.add(region, arrived, out=region)

    def locally(self, parts):
        for part in parts:
            for rank, _, buffer, at, to, to_at, count, combine in columns(part.local):
                source, region = self.region(rank, buffer, at, count), self.region(rank, to, to_at, count)
                region[:] = region + source if combine else source


def carry_out(schedule, given, late_reads):
    """Every rank's OUTPUT at the end."""
    reader, by_round = Reader(schedule, given, late_reads), defaultdict(list)
    for rank in range(schedule.ranks):
        for part in schedule.view(rank):
            by_round[part.number].append(part)
    for _, parts in sorted(by_round.items()):
        reader.exchange(parts)
        reader.locally(parts)
    return [buffers[OUTPUT] for buffers in reader.memory]


def expected(operation, given, ranks, count):
    total, cuts = given.sum(axis=0), bounds(count, ranks)
    blocks = [slice(*cuts[r : r + 2]) for r in range(ranks)]
    return {
        "allreduce": [total] * ranks,
        "broadcast": [given[0]] * ranks,
        "allgather": [given.reshape(-1)] * ranks,
        "reduce_scatter": [total[block] for block in blocks],
        "alltoall": [given[:, block].reshape(-1) for block in blocks],
    }[operation]


@pytest.mark.parametrize("late_reads", [False, True], ids=["early reads", "late reads"])
@pytest.mark.parametrize("key", sorted(k for k in ALGORITHMS if k[0] != "barrier"), ids="-".join)
def test_numbers_come_out_right(key, late_reads):
    rng = np.random.default_rng(1)
    for ranks in (1, 2, 3, 5, 8, 11):
        for count in (0, 3, 29):
            given = rng.integers(0, 1000, (ranks, count))
            got = carry_out(build(key, ranks, count), given, late_reads)
            for mine, right in zip(got, expected(key[0], given, ranks, count), strict=True):
                assert mine.tolist() == right.tolist()
