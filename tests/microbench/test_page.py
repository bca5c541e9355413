"""A rank's page, as its writer and as another mapping of the same memory see it."""

from __future__ import annotations

import ctypes
import mmap

from microbench.page import SIZE_BYTES, Page


def test_another_mapping_sees_stage_call_and_iteration() -> None:
    memory = mmap.mmap(-1, SIZE_BYTES)
    reader = Page(memory)
    reader.reset()
    assert (reader.stage, reader.case, reader.loop()) == ("", -1, "")
    writer = Page(memory)
    writer.enter("Python code of the case", 3, 99)
    assert (reader.stage, reader.case, reader.deadline_ns) == ("Python code of the case", 3, 99)
    writer.show(b"stamp\nMPI_Send\nMPI_Recv", 100)
    assert reader.loop() == ""  # it has not begun
    at = (ctypes.c_int64 * 2).from_address(writer.address)  # as the loop writes it
    at[1], at[0] = 17, 2
    assert reader.loop() == "MPI_Recv (call 2) in iteration 17 of 100"
    writer.clear()
    assert reader.loop() == ""
    writer.show(b"MPI_Barrier", 5)
    at[1], at[0] = 0, 0
    assert reader.loop() == "MPI_Barrier (call 0) in iteration 0 of 5"


def test_more_names_than_fit_are_cut_and_the_call_still_has_its_number() -> None:
    page = Page()
    assert page.at[0] == -1
    page.show(b"\n".join([b"MPI_Isend"] * 1000), 2)
    at = (ctypes.c_int64 * 2).from_address(page.address)
    at[0] = 999
    assert page.loop() == "a call (call 999) in iteration 0 of 2"
    at[0] = 5
    assert page.loop().startswith("MPI_Isend (call 5)")
    page.enter("x" * 100, 1, 0)
    assert page.stage == "x" * 63
