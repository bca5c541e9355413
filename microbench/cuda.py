"""CUDA's own copies as calls of a program: functions of libcudart, which torch brings. Not verified on hardware."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fabrics.errors import CannotRun
from microbench.engine import Function

_RUNTIME = "libcudart"


class Cuda:
    """The device of a host's rank ``local``: those of a host share its devices in turn."""

    def __init__(self, local: int = 0) -> None:
        self._device = torch.device("cuda", local % torch.cuda.device_count())
        torch.cuda.set_device(self._device)
        torch.cuda.init()  # type: ignore[no-untyped-call]  # no annotations in torch
        library = ctypes.CDLL(loaded(_RUNTIME))
        self.copy = function(library, "cudaMemcpyAsync", 5)
        self.wait = function(library, "cudaStreamSynchronize", 1)
        self.finish = function(library, "cudaDeviceSynchronize", 0)

    def host(self, nbytes: int) -> NDArray[np.uint8]:
        """Pinned bytes."""
        pinned: NDArray[np.uint8] = torch.zeros(nbytes, dtype=torch.uint8, pin_memory=True).numpy()
        return pinned

    def device(self, nbytes: int) -> Any:
        """A tensor of bytes on the device."""
        return torch.zeros(nbytes, dtype=torch.uint8, device=self._device)


def loaded(name: str, maps: Path = Path("/proc/self/maps")) -> str:
    """The path of a library of this process: a second copy would know nothing of the first one's memory.

    Raises CannotRun where it is not loaded.
    """
    paths = (line.split(maxsplit=5)[5].strip() for line in maps.read_text("utf-8").splitlines() if name in line)
    found = next((path for path in paths if Path(path).name.startswith(f"{name}.so")), None)
    if found is None:
        raise CannotRun(f"{name} is not loaded: this torch brings none, and staged copies need it")
    return found


def function(library: Any, name: str, arity: int) -> Function:
    """A function of the CUDA runtime as a call; a failure is told in the runtime's own words."""
    words = library.cudaGetErrorString
    words.restype, words.argtypes = ctypes.c_char_p, [ctypes.c_int]

    def explain(rc: int) -> str:
        text: bytes = words(rc) or b"unknown error"
        return f"CUDA error {rc}: {text.decode()}"

    return Function(name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0, arity, explain, library)
