"""Signals that ask a command to end, as one exception."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn


@contextmanager
def interruptible() -> Iterator[None]:
    """SIGTERM and SIGHUP end the run as Ctrl-C does: workers ended, records kept."""

    def interrupt(number: int, frame: object) -> NoReturn:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _chosen(fabrics: Sequence[Fabric], names: Sequence[str] | None, file: PlanFile) -> list[Fabric]:
    """The fabrics asked for; CannotRun where one of them is not usable here."""
    for section in file.sections:
        try:
            discover.by_names(fabrics, section.fabrics)
        except UserError as error:
            raise UserError(f"plan {file.name}: [{section.benchmark}]: {error}") from None
    chosen = discover.by_names(fabrics, names) if names else list(fabrics)
    for fabric in chosen if names else ():
        if not fabric.usable:
            raise CannotRun(f"fabric {fabric.name} cannot be measured here: {fabric.unusable}")
    if not any(fabric.usable for fabric in chosen):
        raise CannotRun("no fabric can be measured here: see fabricbench fabrics")
    return chosen


def _standing_lab(name: str | None) -> cluster.Lab | None:
    return cluster.find() if name is None else cluster.load(name)


@contextmanager
def _lab(name: str | None, site: sites.Site | None) -> Iterator[cluster.Lab | None]:
    """The lab that is up, or one for the time of the run, or none where none can be made or hosts are named."""
    leftovers.remove_stale()
    leftovers.remove_scratch()
    leftovers.remove_topologies()
    if site is not None:
        yield None
        return
    cluster.remove_orphans()
    standing = _standing_lab(name)
    if standing is not None or why_not():
        yield standing
        return
    own = cluster.own_name()
    try:
        yield cluster.up(LabConfig(name=own))
    finally:
        cluster.down(own)
