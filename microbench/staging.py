"""The buffers of a benchmark in host or device memory, and its calls made for them: direct, or staged through the host.

A benchmark fills, calls and compares host arrays. In device memory each has a twin: *direct* hands MPI the twin's
address, *staged* leaves MPI the host array, and copies what is sent from the twin before, and what was received to it
after. The copies are calls of the program and part of what is timed. Not verified on hardware.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fabrics.errors import CannotRun
from microbench.buffers import allocate
from microbench.device import CPU, CUDA, NOT_VERIFIED, STAGED, refuse
from microbench.engine import CallSpec, Function
from microbench.job import local_rank

if TYPE_CHECKING:
    from microbench.job import Job

Bytes = NDArray[np.uint8]
_TO_DEVICE, _TO_HOST, _WITHIN = 1, 2, 3  # cudaMemcpyKind
_STREAM = 0  # the default one, which torch's current stream is too


class Runtime(Protocol):
    """What is needed of CUDA.

    ``copy`` is cudaMemcpyAsync, ``wait`` cudaStreamSynchronize and ``finish`` cudaDeviceSynchronize.
    """

    copy: Function
    wait: Function
    finish: Function

    def host(self, nbytes: int) -> Bytes:
        """Host memory that the device copies from and to at full speed."""

    def device(self, nbytes: int) -> Any:
        """A torch tensor of so many bytes."""


class HostMemory:
    """Buffers in host pages: what every benchmark has without a device."""

    name = CPU

    def __init__(self, pages: str = "small") -> None:
        self._pages = pages

    def buffer(self, nbytes: int, sent: bool = False) -> Bytes:
        """A buffer of zeros."""
        return allocate(nbytes, self._pages)

    def calls(self, calls: Sequence[CallSpec]) -> list[CallSpec]:
        """As they are."""
        return list(calls)

    def moved(self, to: Bytes, source: Bytes) -> list[CallSpec]:
        """The calls that copy one buffer's bytes into another."""
        return [("copy", to, source, source.size)]

    def tensor(self, buffer: Bytes) -> Any:
        """The buffer as a torch tensor of bytes that shares its memory."""
        import torch  # noqa: PLC0415 - it takes seconds, and only torch's backends ask

        return torch.frombuffer(buffer, dtype=torch.uint8) if buffer.size else torch.empty(0, dtype=torch.uint8)

    def finish(self) -> list[CallSpec]:
        """What waits for the device: nothing."""
        return []

    def upload(self) -> None:
        """Nothing: there is no twin."""

    def download(self) -> None:
        """Nothing: there is no twin."""

    def method(self) -> dict[str, Any]:
        """What a record says of it: nothing."""
        return {}


@dataclass(frozen=True)
class Twin:
    """A host array, and the tensor of as many bytes on the device that it stands for."""

    host: Bytes
    tensor: Any
    sent: bool

    @property
    def handle(self) -> int:
        """The device address."""
        return int(self.tensor.data_ptr())

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Its place as CUDA's array interface, version 3, tells it."""
        return {"shape": (self.host.size,), "typestr": "|u1", "data": (self.handle, False), "version": 3}

    def holds(self, argument: Any) -> bool:
        """Whether an argument of a call is this host array, or a part of it."""
        if not isinstance(argument, np.ndarray) or not self.host.size:
            return False
        return 0 <= argument.ctypes.data - self.host.ctypes.data < self.host.size

    def address(self, argument: Bytes) -> int:
        """Where on the device that part is."""
        return int(self.handle + argument.ctypes.data - self.host.ctypes.data)


class DeviceMemory:
    """Buffers with twins on a device; ``staged`` tells whether MPI sees the host arrays or the twins."""

    name = CUDA

    def __init__(self, runtime: Runtime, staged: bool) -> None:
        self.runtime, self.staged = runtime, staged
        self.twins: list[Twin] = []

    def buffer(self, nbytes: int, sent: bool = False) -> Bytes:
        """The host array of a new buffer; ``sent`` tells that calls read it, else they write it."""
        twin = Twin(self.runtime.host(nbytes), self.runtime.device(nbytes), sent)
        self.twins.append(twin)
        return twin.host

    def calls(self, calls: Sequence[CallSpec]) -> list[CallSpec]:
        """The calls on the twins, or on the host arrays with the copies around them."""
        if not self.staged:
            return [self._direct(call) for call in calls]
        return [call for group in _groups(calls) for call in self._staged(group)]

    def moved(self, to: Bytes, source: Bytes) -> list[CallSpec]:
        """The calls that copy one buffer's bytes into another, on the device."""
        there, here = self._place(to), self._place(source)
        return [(self.runtime.copy, there, here, source.size, _WITHIN, _STREAM), *self._waited()]

    def tensor(self, buffer: Bytes) -> Any:
        """The twin of a whole buffer."""
        return next(twin.tensor for twin in self.twins if twin.host is buffer)

    def finish(self) -> list[CallSpec]:
        """What waits for the device: a library's own streams are not seen by a wait for its call."""
        return [(self.runtime.finish,)]

    def upload(self) -> None:
        """Make all twins what the host arrays are, and overwrite these, so that nothing but a copy brings it back."""
        self._copy_all(_TO_DEVICE)
        for twin in self.twins:
            twin.host[:] = ~twin.host

    def download(self) -> None:
        """Make all host arrays what their twins are."""
        self._copy_all(_TO_HOST)

    def method(self) -> dict[str, Any]:
        """What a record says of it."""
        path = "staged through pinned host memory, copies timed" if self.staged else "direct"
        return {"device_path": path, "device": NOT_VERIFIED}

    def _place(self, argument: Any) -> Any:
        """An argument, or the place of its twin where it has one."""
        twin = next((twin for twin in self.twins if twin.holds(argument)), None)
        return argument if twin is None else twin.address(argument)

    def _direct(self, call: CallSpec) -> CallSpec:
        return (call[0], *map(self._place, call[1:]))

    def _staged(self, group: Sequence[CallSpec]) -> Iterator[CallSpec]:
        used = [twin for call in group for argument in call[1:] for twin in self.twins if twin.holds(argument)]
        sent, received = ([twin for twin in used if twin.sent is which] for which in (True, False))
        yield from self._copies(sent, _TO_HOST)
        yield from group
        yield from self._copies(received, _TO_DEVICE)

    def _copies(self, twins: Iterable[Twin], kind: int) -> list[CallSpec]:
        copies = [self._copy(twin, kind) for twin in twins]
        return [*copies, *self._waited()] if copies else []

    def _copy(self, twin: Twin, kind: int) -> CallSpec:
        ends = (twin.handle, twin.host) if kind == _TO_DEVICE else (twin.host, twin.handle)
        return (self.runtime.copy, *ends, twin.host.size, kind, _STREAM)

    def _waited(self) -> list[CallSpec]:
        return [(self.runtime.wait, _STREAM)]

    def _copy_all(self, kind: int) -> None:
        for twin in self.twins:
            to, source = (twin.handle, twin.host.ctypes.data)[:: 1 if kind == _TO_DEVICE else -1]
            if twin.host.size:
                invoke(self.runtime.copy, to, source, twin.host.size, kind, _STREAM)
        invoke(self.runtime.finish)


def _groups(calls: Iterable[CallSpec]) -> Iterator[list[CallSpec]]:
    """Calls that return at once, up to the one that waits for them; what blocks stands alone.

    A buffer must not be written while messages from it are under way, so that a window's copies come before it.
    """
    group: list[CallSpec] = []
    for call in calls:
        group.append(call)
        if not str(call[0]).startswith("MPI_I"):
            yield group
            group = []
    if group:
        yield group


def invoke(function: Function, *words: int) -> None:
    """Call it once, outside a program. Raises CannotRun with what it says where it fails."""
    kind = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int64] * len(words))
    if rc := kind(function.address)(*words):
        raise CannotRun(f"{function} failed: {function.explain(rc)}")


Memory = HostMemory | DeviceMemory


def memory(job: Job, device: str = CPU) -> Memory:
    """Where a case's buffers for MPI are; the device is there (:func:`microbench.device.missing`).

    Raises Unsupported, on every rank alike, where MPI would have to take device memory and does not.
    """
    if device == CPU:
        return HostMemory(job.pages)
    from microbench.cuda import Cuda  # noqa: PLC0415 - it imports torch

    made = DeviceMemory(Cuda(local_rank(job.hosts, job.rank)), device == STAGED)
    if not made.staged:
        made.buffer(1)
        refuse(made.twins.pop(), job.engine)
    return made
