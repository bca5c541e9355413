"""A gloo process group among the ranks of an MPI job, on the devices of one fabric."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
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


@contextmanager
def process_group(job: Job, timeout_s: float) -> Iterator[None]:
    """The default group of torch over gloo, of ``job.comm``'s ranks; it is destroyed in any case.

    ``timeout_s`` bounds each collective. Raises CannotRun on every rank where one cannot join.
    """
    devices = _devices(job)
    store = _store(job.comm, devices, min(CONNECT_TIMEOUT_S, timeout_s))
    try:
        raise_together(job.comm, _join(job, store, timeout_s))
        yield
        job.comm.Barrier()  # rank 0 holds the store: it leaves last
    finally:
        if dist.is_initialized():
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
