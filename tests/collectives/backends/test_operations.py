from __future__ import annotations

import pytest
import torch

from collectives.backends.operations import OPERATIONS, Tensors
from collectives.backends.table import OPERATIONS as NAMES
from microbench.dtypes import DTYPES
from microbench.staging import DeviceMemory, HostMemory
from tests.microbench.fake_cuda import FakeCuda


def test_the_table_without_torch_names_what_there_is() -> None:
    assert tuple(OPERATIONS) == NAMES


def test_a_column_of_a_matrix_is_refused() -> None:
    matrix = torch.zeros(2, 2)
    with pytest.raises(ValueError, match="not contiguous"):
        Tensors(matrix[:, 0], matrix[0])


@pytest.mark.parametrize("kind", DTYPES)
def test_tensors_are_the_buffers_bytes_in_every_type(kind: str) -> None:
    memory = HostMemory()
    send, receive = memory.buffer(16, sent=True), memory.buffer(0)
    send.view(DTYPES[kind].numpy)[:] = DTYPES[kind].encode([3] * (16 // DTYPES[kind].nbytes))
    tensors = Tensors.of(memory.tensor(send), memory.tensor(receive), kind)
    assert tensors.send.dtype is getattr(torch, kind)
    assert tensors.send.tolist() == [3] * (16 // DTYPES[kind].nbytes)
    assert tensors.receive.numel() == 0
    tensors.send.zero_()
    assert not send.any()  # one memory


def test_on_a_device_tensors_are_the_twins() -> None:
    memory = DeviceMemory(FakeCuda(tensor=lambda nbytes: torch.zeros(nbytes, dtype=torch.uint8)), staged=False)
    send, receive = memory.buffer(8, sent=True), memory.buffer(8)
    send.view("i4")[:] = (5, 7)
    memory.upload()
    tensors = Tensors.of(memory.tensor(send), memory.tensor(receive), "int32")
    assert tensors.send.tolist() == [5, 7]
    tensors.receive.copy_(tensors.send)
    memory.download()
    assert receive.view("i4").tolist() == [5, 7]
