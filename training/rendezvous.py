"""A gloo process group among the ranks of an MPI job, on the devices of one fabric."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import psutil
import torch.distributed as dist
from torch.distributed import TCPStore  # type: ignore[attr-defined]  # public, but not in torch's __all__

from fabrics.errors import CannotRun
from training.workload import Job, raise_together

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

CONNECT_TIMEOUT_S = 30.0

_DEVICE_VARIABLE = "GLOO_SOCKET_IFNAME"
_CAME, _VERDICT, _WHOLE = "fabricbench/came", "fabricbench/verdict", "whole"
_LOOK_S, _GRACE_S = 0.02, 5.0
# A thread of gloo's lets go of an operation's Python objects a little after it, for which it takes the interpreter's
# lock; the end of a group holds that lock while it waits for such threads. Both would wait for ever.
_SETTLE_S = 0.05


@contextmanager
def process_group(job: Job, timeout_s: float) -> Iterator[None]:
    """The default group of torch over gloo, of ``job.comm``'s ranks; it is destroyed in any case.

    ``timeout_s`` bounds each collective. Raises CannotRun on every rank where one cannot join or does not come.
    """
    devices = _devices(job)
    connect_s = min(CONNECT_TIMEOUT_S, timeout_s)
    store = _store(job.comm, devices, connect_s)
    if fault := census(store, job.rank, job.size, connect_s):
        raise CannotRun(f"train: {fault}")
    try:
        raise_together(job.comm, _join(job, store, timeout_s))
        yield
        job.comm.Barrier()  # rank 0 holds the store: it leaves last
    finally:
        if dist.is_initialized():
            time.sleep(_SETTLE_S)
            dist.destroy_process_group()


def device_fault(devices: tuple[str, ...]) -> str:
    """Why gloo would not use just these devices, or nothing."""
    wanted, found = ",".join(devices), os.environ.get(_DEVICE_VARIABLE)
    if found == wanted:
        return ""
    return f"{_DEVICE_VARIABLE} is {found!r}, not the fabric's {wanted!r}: start with the recipe's environment"


def interface_address(device: str) -> str:
    """The IPv4 address of a network interface of this host. Raises CannotRun where it has none."""
    addresses = psutil.net_if_addrs().get(device)
    if addresses is None:
        raise CannotRun(f"there is no network interface {device!r} on this host")
    for entry in addresses:
        if entry.family == socket.AF_INET:
            return str(entry.address)
    raise CannotRun(f"network interface {device!r} has no IPv4 address")


def _devices(job: Job) -> tuple[str, ...]:
    host = job.hosts[job.rank]
    devices = tuple(job.fabric.devices.get(host, ()))
    fault = device_fault(devices) if devices else f"fabric {job.fabric.name} has no device on host {host}"
    raise_together(job.comm, fault)
    return devices


def _store(comm: Intracomm, devices: tuple[str, ...], timeout_s: float) -> TCPStore:
    """The store that the ranks meet at: rank 0 serves it, on a free port of its fabric address."""
    timeout = timedelta(seconds=timeout_s)
    store, where, fault = None, ("", 0), ""
    if comm.Get_rank() == 0:
        try:
            address = interface_address(devices[0])
            store = TCPStore(address, 0, is_master=True, timeout=timeout, wait_for_workers=False)
            where = (address, store.port)
        except (CannotRun, RuntimeError) as error:
            fault = _first_line(error)
    where = comm.bcast(where)
    raise_together(comm, fault)
    if store is None:
        try:
            store = TCPStore(where[0], where[1], is_master=False, timeout=timeout, wait_for_workers=False)
        except RuntimeError as error:
            fault = f"no way to rank 0 at {where[0]} port {where[1]}: {_first_line(error)}"
    raise_together(comm, fault)
    assert store is not None  # noqa: S101 - else the line above has raised
    return store


def census(store: TCPStore, rank: int, size: int, timeout_s: float) -> str:
    """What is wrong with who came to the store, or nothing: an absent rank, a surplus one, or one that came twice.

    Rank 0 judges, within ``timeout_s`` or as soon as it can, and all who came are told the same: it takes no word of
    those who did not. Who comes after the verdict learns it alone.
    """
    store.append(_CAME, f"{rank} ")  # type: ignore[attr-defined]  # public, but not in torch's stubs
    if rank == 0:
        store.set(_VERDICT, _judged(store, size, timeout_s) or _WHOLE)
    try:
        store.wait([_VERDICT], timedelta(seconds=timeout_s + _GRACE_S))
    except RuntimeError:
        return f"expected {count(size)}: rank 0 did not say within {timeout_s + _GRACE_S:g} s who came"
    came = _came(store)
    late = misfits(came, size) if came.count(rank) > 1 or rank >= size else ""
    verdict = store.get(_VERDICT).decode()
    return late if verdict == _WHOLE else verdict


def _judged(store: TCPStore, size: int, timeout_s: float) -> str:
    until = time.monotonic() + timeout_s
    while True:
        came = _came(store)
        if fault := misfits(came, size):
            return fault
        absent = sorted(set(range(size)) - set(came))
        if not absent:
            return ""
        if time.monotonic() > until:
            who = f"{'rank' if len(absent) == 1 else 'ranks'} {_list(absent)}"
            return f"expected {count(size)}, seen {_list(came)} within {timeout_s:g} s: {who} did not come"
        time.sleep(_LOOK_S)


def misfits(came: Sequence[int], size: int) -> str:
    """Which of the ranks that came have no place among ``size``, or have one that another took; or nothing."""
    surplus = sorted({rank for rank in came if rank >= size})
    double = sorted({rank for rank in came if came.count(rank) > 1})
    seen = f"expected {count(size)}, seen {_list(came)}"
    if double:
        return f"{seen}: {_list(double)} came more than once"
    return f"{seen}: {_list(surplus)} too many" if surplus else ""


def _came(store: TCPStore) -> list[int]:
    return sorted(int(text) for text in store.get(_CAME).decode().split())


def count(size: int) -> str:
    """``rank 0 alone``, or ``ranks 0 to 3``."""
    return "rank 0 alone" if size == 1 else f"ranks 0 to {size - 1}"


def _list(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks))


def _join(job: Job, store: TCPStore, timeout_s: float) -> str:
    """Enter the group; returns why that failed, so that the ranks can agree on it."""
    timeout = timedelta(seconds=timeout_s)
    try:
        dist.init_process_group("gloo", store=store, rank=job.rank, world_size=job.size, timeout=timeout)
    except RuntimeError as error:
        return f"gloo does not connect over {os.environ[_DEVICE_VARIABLE]}: {_first_line(error)}"
    return ""


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
