"""Calls on device memory, direct and staged, by a runtime that only counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fabrics.errors import CannotRun
from microbench.engine import Function
from microbench.job import local_rank
from microbench.staging import DeviceMemory, HostMemory, invoke
from tests.microbench.fake_cuda import FakeCuda


def memory(staged: bool) -> tuple[DeviceMemory, Any, Any]:
    made = DeviceMemory(FakeCuda(), staged)
    return made, made.buffer(64, sent=True), made.buffer(64)


def told(calls: list[Any]) -> list[str]:
    return [str(call[0]) for call in calls]


def test_host_memory_leaves_calls_as_they_are() -> None:
    host = HostMemory()
    send, receive = host.buffer(8, sent=True), host.buffer(8)
    calls = [("MPI_Allreduce", send, receive, 2)]
    assert host.calls(calls) == calls
    assert host.finish() == []
    assert host.method() == {}
    assert host.moved(receive, send)[0][0] == "copy"


def test_direct_hands_over_the_twins_address() -> None:
    made, send, receive = memory(staged=False)
    ((name, there, here, count),) = made.calls([("MPI_Allreduce", send, receive, 16)])
    twins = [twin.handle for twin in made.twins]
    assert (name, there, here, count) == ("MPI_Allreduce", *twins, 16)
    assert there != send.ctypes.data


def test_direct_finds_the_place_of_a_part() -> None:
    made, send, _ = memory(staged=False)
    ((_, there),) = made.calls([("MPI_Send", send[16:24])])
    assert there == made.twins[0].handle + 16


def test_direct_leaves_other_arrays_alone() -> None:
    made, _, _ = memory(staged=False)
    counts = np.zeros(2, "i4")
    assert made.calls([("MPI_Alltoallv", counts)])[0][1] is counts


def test_staged_copies_before_what_sends_and_after_what_receives() -> None:
    made, send, receive = memory(staged=True)
    calls = made.calls([("MPI_Send", send, 64), ("MPI_Recv", receive, 64)])
    copy, wait = "cudaMemcpyAsync", "cudaStreamSynchronize"
    assert told(calls) == [copy, wait, "MPI_Send", "MPI_Recv", copy, wait]
    (_, to, source, nbytes, kind, _), (_, back_to, back_from, _, back_kind, _) = calls[0], calls[4]
    assert (to is send, source, nbytes, kind) == (True, made.twins[0].handle, 64, 2)
    assert (back_to, back_from is receive, back_kind) == (made.twins[1].handle, True, 1)


def test_what_returns_at_once_is_received_when_it_is_waited_for() -> None:
    made, send, receive = memory(staged=True)
    calls = made.calls([("MPI_Irecv", receive), ("MPI_Isend", send), ("MPI_Waitall", 2)])
    copy, wait = "cudaMemcpyAsync", "cudaStreamSynchronize"
    assert told(calls) == [copy, wait, "MPI_Irecv", "MPI_Isend", "MPI_Waitall", copy, wait]


def test_every_message_of_a_window_is_copied_and_none_while_one_is_under_way() -> None:
    made, send, _ = memory(staged=True)
    calls = told(made.calls([("MPI_Isend", send)] * 4 + [("MPI_Waitall", 4)]))
    assert calls == ["cudaMemcpyAsync"] * 4 + ["cudaStreamSynchronize"] + ["MPI_Isend"] * 4 + ["MPI_Waitall"]


def test_calls_without_device_buffers_stand_alone() -> None:
    made, _, _ = memory(staged=True)
    calls = [("MPI_Barrier", 1), ("MPI_Recv", np.zeros(4, "u1"))]
    assert made.calls(calls) == calls


def test_nothing_but_a_copy_brings_bytes_back() -> None:
    made, send, _ = memory(staged=True)
    send[:] = np.arange(64)
    made.upload()
    assert not np.array_equal(send, np.arange(64))
    made.download()
    assert np.array_equal(send, np.arange(64))


def test_an_empty_buffer_is_not_copied() -> None:
    made = DeviceMemory(FakeCuda(), staged=True)
    empty = made.buffer(0, sent=True)
    assert told(made.calls([("MPI_Send", empty, 0)])) == ["MPI_Send"]
    made.upload()


def test_refilling_is_a_copy_on_the_device() -> None:
    made, send, receive = memory(staged=False)
    (name, to, source, nbytes, kind, _), waited = made.moved(receive, send)
    assert (str(name), to, source, nbytes, kind) == (
        "cudaMemcpyAsync", made.twins[1].handle, made.twins[0].handle, 64, 3,
    )  # fmt: skip
    assert str(waited[0]) == "cudaStreamSynchronize"


def test_a_copy_that_fails_says_what_cuda_says() -> None:
    made = DeviceMemory(FakeCuda(fails=700), staged=True)
    made.buffer(8)
    with pytest.raises(CannotRun, match="cudaMemcpyAsync failed: CUDA error 700: planted"):
        made.upload()


def test_a_twin_claims_to_be_on_the_device() -> None:
    made, _, _ = memory(staged=False)
    assert made.twins[0].__cuda_array_interface__["data"] == (made.twins[0].handle, False)


@pytest.mark.parametrize(("staged", "path"), [(True, "staged through pinned host memory"), (False, "direct")])
def test_a_record_says_the_path_and_that_no_hardware_was_seen(staged: bool, path: str) -> None:
    said = DeviceMemory(FakeCuda(), staged).method()
    assert said["device_path"].startswith(path)
    assert said["device"] == "not verified on hardware"


def test_ranks_of_a_host_are_counted() -> None:
    hosts = ("a", "b", "a", "a")
    assert [local_rank(hosts, rank) for rank in range(4)] == [0, 0, 1, 2]


def test_invoke_passes_the_words() -> None:
    fake = FakeCuda()
    source, to = np.arange(8, dtype="u1"), np.zeros(8, "u1")
    assert isinstance(fake.copy, Function)
    invoke(fake.copy, to.ctypes.data, source.ctypes.data, 8, 1, 0)
    assert np.array_equal(to, source)
    assert fake.done == ["to device"]
