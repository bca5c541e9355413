"""gloo's own thread as a mode: torch.distributed's asynchronous work among the hosts, on the operands of the others.

Imports torch: only where the mode is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import torch

from collectives.backends.operations import OPERATIONS, Tensors
from collectives.backends.proving import use_threads
from collectives.backends.rendezvous import CONNECT_TIMEOUT_S, process_group
from collectives.overlap.cargo import Cargo
from collectives.overlap.ranks import Calls, Ranks
from fabrics.errors import CannotRun
from microbench.called import python_call
from microbench.case import Case


class Gloo:
    """Asynchronous work of gloo for each operation: posted and waited for from Python, progressed by gloo's threads."""

    name = "gloo"

    def __init__(self, ranks: Ranks, case: Case, cargo: Sequence[Cargo]) -> None:
        """Form the group among the hosts. Raises CannotRun on every host alike where that does not work."""
        self.cargo, self._ranks = cargo, ranks
        self._works: list[Any] = []
        self._open = ExitStack()
        if ranks.here is None:
            return
        use_threads(1)
        timeout_s = max(CONNECT_TIMEOUT_S, case.deadline_s / 2)
        self._open.enter_context(process_group(ranks.here, timeout_s, flavour=case.recipe or "pure"))
        self._operation = OPERATIONS[cargo[0].row.name]
        self._functions: list[Callable[..., Any]] = [self._operation.bind(one.o, _tensors(one)) for one in cargo]
        self._post = python_call(f"torch.distributed.{self._operation.name}", self._start_all)
        self._wait = python_call("torch.distributed.Work.wait", self._wait_all)
        self._look = python_call("torch.distributed.Work.is_completed", self._look_all)

    def _start_all(self) -> None:
        self._works = [function(async_op=True) for function in self._functions]

    def _wait_all(self) -> None:
        for work in self._works:
            work.wait()

    def _look_all(self) -> None:
        for work in self._works:
            work.is_completed()

    def begin(self) -> None:
        """Nothing: gloo's threads sleep while they have nothing to do."""

    def end(self) -> None:
        """Nothing."""

    def poison(self) -> None:
        """Spoil the results."""
        for one in self.cargo:
            one.poison()

    def start(self) -> Calls:
        """The input anew where it has no form but in place, then the hosts meet."""
        refill: Calls = []
        if self._operation.in_place:
            refill = [("copy", one.o.receive, one.o.send, one.o.send.size) for one in self.cargo]
        return [*refill, ("MPI_Barrier", self._ranks.comm)]

    def post(self) -> Calls:
        """Start every operation."""
        return [(self._post,)]

    def probe(self) -> Calls:
        """Ask each whether it is done."""
        return [(self._look,)]

    def wait(self) -> Calls:
        """Until every operation is done."""
        return [(self._wait,)]

    def serve(self) -> Calls:
        """Nothing."""
        return []

    def method(self) -> dict[str, Any]:
        """Which call, of which torch, and that it is made from Python."""
        if self._ranks.here is None:
            return {}
        return {
            "call": f"torch.distributed.{self._operation.name}",
            "torch": torch.__version__,
            "posted_from": "Python",
        }

    def close(self) -> None:
        """Leave the group; all hosts together."""
        self._open.close()


def _tensors(one: Cargo) -> Tensors:
    send, receive = (torch.from_numpy(buffer) for buffer in (one.o.send, one.o.receive))
    return Tensors.of(send, receive, one.o.kind.name)


def form(ranks: Ranks, case: Case, cargo: Sequence[Cargo]) -> tuple[Gloo | None, str]:
    """The mode, or why a host cannot have it; for the other ranks it is always there."""
    try:
        return Gloo(ranks, case, cargo), ""
    except CannotRun as error:
        return None, str(error)
