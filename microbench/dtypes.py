"""Data types: what a name means to numpy and to MPI, and which integers it holds exactly."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from fabrics.errors import UserError
from microbench.case import Unsupported

if TYPE_CHECKING:
    from microbench.engine import Engine

LARGEST_INT_COUNT = 2**31 - 1


@dataclass(frozen=True)
class DType:
    """``exact``: integers up to it, and sums that stay below it, are exact in the type."""

    name: str
    numpy: Any
    code: str
    exact: int

    @property
    def nbytes(self) -> int:
        """Bytes of one element."""
        return int(np.dtype(self.numpy).itemsize)


DTYPES = {
    t.name: t
    for t in (
        DType("float32", np.float32, "f", 2**24),
        DType("float64", np.float64, "d", 2**53),
        DType("int32", np.int32, "i", 2**31 - 1),
        DType("int8", np.int8, "b", 127),
        DType("float16", np.float16, "e", 2048),
    )
}


def dtype(name: str) -> DType:
    """The type of that name; UserError names the allowed ones."""
    if name not in DTYPES:
        raise UserError(f"unknown dtype {name!r}: one of {', '.join(DTYPES)}")
    return DTYPES[name]


def mpi_type(MPI: ModuleType, kind: DType) -> Any:  # noqa: N803 - the module's own name
    """The MPI datatype, seen to add five elements; raises Unsupported where the library has it not."""
    try:
        found = MPI.Datatype.fromcode(kind.code)
        ones, total = np.ones(5, kind.numpy), np.zeros(5, kind.numpy)
        if found != MPI.DATATYPE_NULL:
            MPI.COMM_SELF.Allreduce([ones, 5, found], [total, 5, found], op=MPI.SUM)
            if np.array_equal(ones, total):
                return found
    except (ValueError, NotImplementedError, MPI.Exception):
        pass
    raise Unsupported(f"{kind.name} is not a type that this MPI adds")


def counted(engine: Engine, name: str, *counts: int) -> str:
    """The MPI function that takes these counts: ``name``, or from 2^31 on its large-count form ``name_c`` (MPI 4).

    Raises Unsupported where the library has none: a count that does not fit into an int would wrap.
    """
    if max(counts) <= LARGEST_INT_COUNT:
        return name
    if not engine.has(f"{name}_c"):
        raise Unsupported(f"{max(counts)} elements are more than an int holds, and this MPI has no {name}_c")
    return f"{name}_c"


def elements(nbytes: int, kind: DType) -> int:
    """How many elements ``nbytes`` are; UserError where it is no whole number of them."""
    if nbytes % kind.nbytes:
        raise UserError(f"size {nbytes} B is not a multiple of {kind.nbytes} B, the size of {kind.name}")
    return nbytes // kind.nbytes
