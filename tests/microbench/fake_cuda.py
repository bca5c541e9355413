"""A CUDA runtime for tests: device memory is host memory of its own, and copies are counted."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from microbench.buffers import allocate
from microbench.engine import Function

_COPY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
_WAIT, _FINISH = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64), ctypes.CFUNCTYPE(ctypes.c_int)
NAMES = {1: "to device", 2: "to host", 3: "within"}


class Tensor:
    """Bytes with an address, as a torch tensor tells it."""

    def __init__(self, nbytes: int) -> None:
        self.bytes = allocate(nbytes)

    def data_ptr(self) -> int:
        """Where they are."""
        return int(self.bytes.ctypes.data)


class FakeCuda:
    """What :class:`microbench.cuda.Cuda` has; ``fails`` makes every copy return that error."""

    def __init__(self, fails: int = 0, tensor: Any = Tensor) -> None:
        self.done: list[str] = []
        self._tensor = tensor

        def copy(to: int, source: int, nbytes: int, kind: int, stream: int) -> int:
            if fails:
                return fails
            assert stream == 0
            ctypes.memmove(to, source, nbytes)
            self.done.append(NAMES[kind])
            return 0

        def wait(stream: int) -> int:
            assert stream == 0
            self.done.append("wait")
            return 0

        def finish() -> int:
            self.done.append("finish")
            return 0

        self.copy = self._function("cudaMemcpyAsync", 5, _COPY(copy))
        self.wait = self._function("cudaStreamSynchronize", 1, _WAIT(wait))
        self.finish = self._function("cudaDeviceSynchronize", 0, _FINISH(finish))

    def _function(self, name: str, arity: int, entry: Any) -> Function:
        address = ctypes.cast(entry, ctypes.c_void_p).value or 0
        return Function(name, address, arity, lambda rc: f"CUDA error {rc}: planted", entry)

    def host(self, nbytes: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Bytes."""
        return allocate(nbytes)

    def device(self, nbytes: int) -> Any:
        """As many bytes elsewhere."""
        return self._tensor(nbytes)
