"""Data types: what a name means to numpy and to MPI, which integers it holds exactly, and how it rounds.

numpy has no bfloat16: its elements are held as their 16 bits, and :meth:`DType.encode` and :meth:`DType.decode` tell
what they stand for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fabrics.errors import UserError
from microbench.case import Unsupported
from microbench.mpi import make

if TYPE_CHECKING:
    from microbench.engine import Engine

LARGEST_INT_COUNT = 2**31 - 1
_MPICH_BFLOAT16 = (0x4C00024C, "MPIX_BFLOAT16")  # of MPICH's ABI from 5.0 on, which mpi4py's wheel does not name


@dataclass(frozen=True)
class DType:
    """``exact``: integers up to it, and sums that stay below it, are exact in the type.

    ``numpy`` is how an element is stored. ``digits`` are the bits of its significand, 0 for integers. ``code`` is
    mpi4py's, or empty where the type has a name of its own there.
    """

    name: str
    numpy: Any
    code: str
    exact: int
    digits: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of one element."""
        return int(np.dtype(self.numpy).itemsize)

    @property
    def roundoff(self) -> float:
        """The most by which rounding to nearest changes a number, relative to it; 0 for integers."""
        return 2.0**-self.digits if self.digits else 0.0

    def encode(self, values: ArrayLike) -> NDArray[Any]:
        """Numbers as the type stores them, rounded to nearest."""
        if self.code:
            return np.asarray(values).astype(self.numpy)
        bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)  # room for the carry
        to_even = (bits >> np.uint64(16)) & np.uint64(1)
        return np.asarray((bits + np.uint64(0x7FFF) + to_even) >> np.uint64(16), self.numpy)

    def decode(self, stored: NDArray[Any]) -> NDArray[np.float64]:
        """What stored elements stand for; exact, since no type has more digits than float64."""
        if self.code:
            return stored.astype(np.float64)
        return (stored.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)


DTYPES = {
    t.name: t
    for t in (
        DType("float32", np.float32, "f", 2**24, 24),
        DType("float64", np.float64, "d", 2**53, 53),
        DType("int32", np.int32, "i", 2**31 - 1),
        DType("int8", np.int8, "b", 127),
        DType("float16", np.float16, "e", 2**11, 11),
        DType("bfloat16", np.uint16, "", 2**8, 8),
    )
}


def dtype(name: str) -> DType:
    """The type of that name; UserError names the allowed ones."""
    if name not in DTYPES:
        raise UserError(f"unknown dtype {name!r}: one of {', '.join(DTYPES)}")
    return DTYPES[name]


def mpi_type(MPI: ModuleType, kind: DType) -> Any:  # noqa: N803 - the module's own name
    """The MPI datatype, seen to move and to add five elements; raises Unsupported where the library has it not."""
    for found in _named(MPI, kind):
        if found != MPI.DATATYPE_NULL and _adds(MPI, found, kind):
            return found
    raise Unsupported(f"{kind.name} is not a type that this MPI adds")


def _named(MPI: ModuleType, kind: DType) -> Iterator[Any]:  # noqa: N803
    """What may be the type in this library: by mpi4py's code or name, or by MPICH's handle if it says so itself."""
    try:
        if kind.code:
            yield MPI.Datatype.fromcode(kind.code)
            return
        yield getattr(MPI, f"{kind.name.upper()}_T", MPI.DATATYPE_NULL)
        library, _, number = make(MPI.Get_library_version()).partition(" ")
        if library == "MPICH" and int(number.split(".")[0]) >= 5:
            handle, name = _MPICH_BFLOAT16
            found = MPI.Datatype.fromhandle(handle)
            if found.Get_name() == name:
                yield found
    except (ValueError, NotImplementedError, MPI.Exception):
        return


def _adds(MPI: ModuleType, found: Any, kind: DType) -> bool:  # noqa: N803
    ones, total = kind.encode(np.ones(5)), kind.encode(np.zeros(5))
    try:
        MPI.COMM_SELF.Allreduce([ones, 5, found], [total, 5, found], op=MPI.SUM)
        copied = np.array_equal(ones, total)
        MPI.SUM.Reduce_local([ones, 5, found], [total, 5, found])
    except (NotImplementedError, MPI.Exception):
        return False
    return copied and bool((kind.decode(total) == 2).all())


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
