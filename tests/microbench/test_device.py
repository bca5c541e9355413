"""Is there a device, and may MPI be handed its memory: with fakes, since there is no device to ask."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fabrics.errors import CannotRun, UserError
from microbench import device
from microbench.case import Unsupported

MPICH, OPEN_MPI = "MPICH Version: 5.0.2", "Open MPI v5.0.11, package: Open MPI"
_ANSWER = ctypes.CFUNCTYPE(ctypes.c_int)


class OnDevice:
    """An object of host memory that claims to be on a device."""

    def __init__(self) -> None:
        self.bytes = np.zeros(8, "u1")

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": (8,), "typestr": "|u1", "data": (self.bytes.ctypes.data, False), "version": 3}


def engine(answer: int | None, library: str = MPICH) -> Any:
    """An engine whose MPI library answers so when asked for CUDA, or has nothing to ask."""
    entry = _ANSWER(lambda: answer)

    def function(name: str) -> int:
        if answer is None or name != "MPIX_Query_cuda_support":
            raise CannotRun(f"this MPI library has no {name}")
        return ctypes.cast(entry, ctypes.c_void_p).value or 0

    return SimpleNamespace(function=function, MPI=SimpleNamespace(Get_library_version=lambda: library), kept=entry)


def test_the_host_is_always_there() -> None:
    assert device.why_none("cpu") == ""


def test_an_unknown_device_is_named() -> None:
    with pytest.raises(UserError, match="unknown device 'tpu': one of cpu, cuda, cuda-staged"):
        device.why_none("tpu")


def test_the_first_that_says_no_is_told_and_the_others_are_not_asked() -> None:
    asked: list[str] = []

    def driver() -> str:
        asked.append("driver")
        return "the driver finds none"

    def torch() -> str:
        asked.append("torch")
        return ""

    assert device.why_none("cuda", (driver, torch)) == "no CUDA device: the driver finds none"
    assert asked == ["driver"]
    assert device.why_none("cuda", (torch,)) == ""


def test_a_driver_that_is_not_here_is_named() -> None:
    assert device.driver("libnope.so.1") == "the driver's library libnope.so.1 is not here"


@pytest.mark.parametrize(
    ("init", "count", "said"),
    [(100, 0, "cuInit returned 100"), (0, 0, "finds none"), (0, 2, "")],
)
def test_a_driver_is_asked_for_its_devices(monkeypatch: pytest.MonkeyPatch, init: int, count: int, said: str) -> None:
    def counted(into: Any) -> int:
        into._obj.value = count
        return 0

    library = SimpleNamespace(cuInit=lambda flags: init, cuDeviceGetCount=counted)
    monkeypatch.setattr(device.ctypes, "CDLL", lambda name: library)
    found = device.driver()
    assert said in found if said else not found


def test_without_a_device_it_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "driver", lambda: "the driver finds none")
    with pytest.raises(CannotRun, match=r"^no CUDA device: the driver finds none$") as caught:
        device.require("cuda")
    assert caught.value.exit_code == 4


def test_the_first_rank_without_a_device_speaks_for_all() -> None:
    comm: Any = SimpleNamespace(allgather=lambda mine: ["", "no CUDA device: none", "no CUDA device: other"])
    assert device.missing(comm, "cuda") == "rank 1: no CUDA device: none"
    assert device.missing(None, "cpu") == ""  # type: ignore[arg-type]  # nobody is asked


@pytest.mark.parametrize(
    ("answer", "library", "environment", "aware", "how"),
    [
        (1, MPICH, {}, True, "MPICH 5.0.2 takes it (MPIX_Query_cuda_support)"),
        (0, MPICH, {}, False, "MPICH 5.0.2 does not take it"),
        (1, MPICH, {"MPIR_CVAR_ENABLE_GPU": "0"}, False, "MPIR_CVAR_ENABLE_GPU=0"),
        (1, MPICH, {"MPIR_CVAR_ENABLE_GPU": "1"}, True, "takes it"),
        (1, OPEN_MPI, {"MPIR_CVAR_ENABLE_GPU": "0"}, True, "Open MPI 5.0.11 takes it"),
        (None, OPEN_MPI, {}, False, "does not say that it takes it"),
    ],
)
def test_the_library_says_whether_it_takes_device_memory(
    answer: int | None, library: str, environment: dict[str, str], aware: bool, how: str
) -> None:
    found = device.cuda_support(engine(answer, library), environment)
    assert found.aware is aware
    assert how in found.how


@pytest.mark.parametrize("answer", [0, None])
def test_a_claim_of_device_memory_is_refused_before_the_call(answer: int | None) -> None:
    with pytest.raises(Unsupported, match=r"device memory, and MPICH 5.0.2 does not .*: cuda-staged copies it"):
        device.refuse(OnDevice(), engine(answer))


def test_host_memory_and_a_library_that_takes_devices_are_not_refused() -> None:
    device.refuse(np.zeros(8), engine(0))
    device.refuse(OnDevice(), engine(1))
