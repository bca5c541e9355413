"""What torch's process groups ask of the job that they are formed in; torch is not imported here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from fabrics.errors import CannotRun
from fabrics.model import Fabric, Proof
from microbench.job import lowest_fault

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm


class Member(Protocol):
    """The part of a rank's job that a group uses."""

    @property
    def comm(self) -> Intracomm:
        """The ranks that take part."""

    @property
    def rank(self) -> int:
        """The rank of the process in ``comm``."""

    @property
    def size(self) -> int:
        """How many ranks ``comm`` has."""

    @property
    def fabric(self) -> Fabric:
        """The fabric under test."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """The host of each rank."""

    @property
    def seed(self) -> int:
        """The same on every rank."""

    def prove(self, traffic: Callable[[], None], sent_bytes: int, received_bytes: int) -> Proof:
        """What the counters of all hosts say of ``traffic``, in which each rank moves at least so much."""


def raise_together(comm: Intracomm, fault: str, what: str) -> None:
    """Raise CannotRun on every rank, with the lowest rank's fault of ``what``, where any rank has one."""
    if text := lowest_fault(comm, fault):
        raise CannotRun(f"{what}: {text}")
