"""What a type stores and how it rounds, and which MPI type it is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from microbench.case import Unsupported
from microbench.dtypes import DTYPES, mpi_type

BFLOAT16 = DTYPES["bfloat16"]


@pytest.mark.parametrize("kind", DTYPES.values(), ids=lambda k: k.name)
def test_integers_up_to_the_exact_one_are_exact(kind: Any) -> None:
    for number in (0, 1, 3, kind.exact - 1, kind.exact, -kind.exact):
        assert int(kind.decode(kind.encode(np.array([number])))[0]) == number
    if kind.digits:
        assert kind.exact == 2**kind.digits
        assert int(kind.decode(kind.encode(np.array([kind.exact + 1])))[0]) != kind.exact + 1
        assert kind.encode(np.array([1.0])).nbytes == kind.nbytes


@pytest.mark.parametrize(
    ("number", "bits"),
    [(1.0, 0x3F80), (-2.0, 0xC000), (257.0, 0x4380), (259.0, 0x4382), (1 + 3 * 2**-8, 0x3F82), (0.0, 0),
     (255.999, 0x4380), (1 / 3, 0x3EAB), (3.389e38, 0x7F7F)],
)  # fmt: skip
def test_bfloat16_rounds_to_nearest_and_ties_to_even(number: float, bits: int) -> None:
    assert BFLOAT16.encode(np.array([number]))[0] == bits


def test_bfloat16_agrees_with_torch() -> None:
    torch: Any = pytest.importorskip("torch")
    scale = np.float32(10.0) ** np.arange(-20, 20).repeat(100)
    numbers = np.random.default_rng(1).normal(size=scale.size).astype("f4") * scale.astype("f4")
    theirs = torch.from_numpy(numbers).to(torch.bfloat16)
    ours = BFLOAT16.encode(numbers)
    assert np.array_equal(theirs.view(torch.int16).numpy().view("u2"), ours)
    assert np.array_equal(theirs.to(torch.float64).numpy(), BFLOAT16.decode(ours))


class Library:
    """An MPI that has, or has not, a bfloat16, under a name of mpi4py's or only by its handle, and adds it or not."""

    DATATYPE_NULL, Exception = "null", RuntimeError

    def __init__(self, version: str = "MPICH Version: 5.0.2", named: str = "null", called: str = "MPIX_BFLOAT16",
                 step: int = 1) -> None:  # fmt: skip
        self.BFLOAT16_T, self._version, self._called, self._step = named, version, called, step
        self.COMM_SELF = SimpleNamespace(Allreduce=lambda ones, total, op: total[0].__setitem__(slice(None), ones[0]))
        self.SUM = SimpleNamespace(Reduce_local=self._double)
        self.Datatype = SimpleNamespace(fromhandle=lambda handle: SimpleNamespace(Get_name=lambda: called, h=handle))

    def _double(self, ones: Any, total: Any) -> None:
        total[0][:] = BFLOAT16.encode(np.full(5, 1.0 + self._step))

    def Get_library_version(self) -> str:  # noqa: N802 - MPI's name
        return self._version


def test_a_type_goes_by_its_name_or_by_a_handle_that_says_it() -> None:
    named: Any = Library(named="theirs")
    assert mpi_type(named, BFLOAT16) == "theirs"
    unnamed: Any = Library()
    assert mpi_type(unnamed, BFLOAT16).h == 0x4C00024C


@pytest.mark.parametrize(
    "library",
    [Library("Open MPI v5.0.11"), Library("MPICH Version: 4.3.1"), Library(called="MPI_LOGICAL16"),
     Library("Intel(R) MPI Library 2021.18"), Library("CRAY MPICH version 9"), Library(step=0),
     Library(named="x", step=3)],
    ids=lambda library: f"{library._version} {library._called} {library._step}",
)  # fmt: skip
def test_what_has_no_such_type_or_does_not_add_it_is_unsupported(library: Any) -> None:
    with pytest.raises(Unsupported, match="bfloat16 is not a type that this MPI adds"):
        mpi_type(library, BFLOAT16)
