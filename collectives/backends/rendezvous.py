"""A process group of torch among the ranks of an MPI job, on the devices of one fabric."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta

import psutil
import torch.distributed as dist
from torch.distributed import TCPStore  # type: ignore[attr-defined]  # public, but not in torch's __all__

from collectives.backends.member import Member, raise_together
from collectives.backends.table import BACKENDS
from fabrics import recipes
from fabrics.errors import CannotRun
from microbench.job import local_rank

CONNECT_TIMEOUT_S = 30.0
GLOO = "gloo"

_GLOO_DEVICES = "GLOO_SOCKET_IFNAME"
_CAME, _VERDICT, _WHOLE = "fabricbench/came", "fabricbench/verdict", "whole"
_LOOK_S, _GRACE_S = 0.02, 5.0
# A thread of gloo's lets go of an operation's Python objects a little after it, for which it takes the interpreter's
# lock; the end of a group holds that lock while it waits for such threads. Both would wait for ever.
_SETTLE_S = 0.05
_OWN_RANKS = "torch-mpi"  # takes rank and size from MPI itself


@contextmanager
def process_group(job: Member, timeout_s: float, backend: str = GLOO, flavour: str = "pure") -> Iterator[None]:
    """The default group of torch over ``backend``, of ``job.comm``'s ranks; it is destroyed in any case.

    ``timeout_s`` bounds each collective, ``flavour`` is that of the recipe in force. Raises CannotRun on every rank
    where one cannot join or does not come, or where the environment is not the fabric's recipe.
    """
    raise_together(job.comm, settings_fault(job, backend, flavour), backend)
    connect_s = min(CONNECT_TIMEOUT_S, timeout_s)
    store = _store(job, connect_s, backend)
    if fault := census(store, job.rank, job.size, connect_s):
        raise CannotRun(f"{backend}: {fault}")
    try:
        raise_together(job.comm, _join(job, store, timeout_s, backend), backend)
        yield
        job.comm.Barrier()  # rank 0 holds the store: it leaves last
    finally:
        if dist.is_initialized():
            time.sleep(_SETTLE_S)
            dist.destroy_process_group()


def settings_fault(job: Member, backend: str, flavour: str = "pure") -> str:
    """Why ``backend`` would not use just the fabric's devices on this rank, or nothing.

    torch's use of MPI goes the way of the MPI library. In a job of the user's own the fabric names no devices; gloo,
    which would take whatever the host's name resolves to, must then be told some.
    """
    if backend == _OWN_RANKS:
        return ""
    if not job.fabric.devices:
        if backend != GLOO or os.environ.get(_GLOO_DEVICES):
            return ""
        return f"no interface is chosen: set {_GLOO_DEVICES}, such as {_GLOO_DEVICES}=eth0"
    host = job.hosts[job.rank]
    try:
        made = recipes.recipe(job.fabric, backend, flavour, host, local_rank=local_rank(job.hosts, job.rank))
    except recipes.NoRecipe as error:
        return str(error)
    return mismatch(made.env)


def mismatch(wanted: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> str:
    """The first variable that is not what a recipe wants, or nothing."""
    for name, value in wanted.items():
        if environment.get(name) != value:
            found = environment.get(name)
            return f"{name} is {found!r}, not the fabric's {value!r}: start with the recipe's environment"
    return ""


def interface_address(device: str) -> str:
    """The IPv4 address of a network interface of this host. Raises CannotRun where it has none."""
    addresses = psutil.net_if_addrs().get(device)
    if addresses is None:
        raise CannotRun(f"there is no network interface {device!r} on this host")
    for entry in addresses:
        if entry.family == socket.AF_INET:
            return str(entry.address)
    raise CannotRun(f"network interface {device!r} has no IPv4 address")


def _meeting_address(job: Member) -> str:
    """Where rank 0 can be met: over the first interface under test, or, of RDMA devices, where its name resolves to."""
    own = ",".join(job.fabric.devices.get(job.hosts[job.rank], ())) or os.environ.get(_GLOO_DEVICES, "")
    if own and not job.fabric.rdma:
        return interface_address(own.split(",")[0])
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError as error:
        raise CannotRun(f"this host's name has no address: {error}") from None


def _store(job: Member, timeout_s: float, backend: str) -> TCPStore:
    """The store that the ranks meet at: rank 0 serves it, on a free port of its fabric address."""
    timeout = timedelta(seconds=timeout_s)
    store, where, fault = None, ("", 0), ""
    if job.rank == 0:
        try:
            address = _meeting_address(job)
            store = TCPStore(address, 0, is_master=True, timeout=timeout, wait_for_workers=False)
            where = (address, store.port)
        except (CannotRun, RuntimeError) as error:
            fault = _first_line(error)
    where = job.comm.bcast(where)
    raise_together(job.comm, fault, backend)
    if store is None:
        try:
            store = TCPStore(where[0], where[1], is_master=False, timeout=timeout, wait_for_workers=False)
        except RuntimeError as error:
            fault = f"no way to rank 0 at {where[0]} port {where[1]}: {_first_line(error)}"
    raise_together(job.comm, fault, backend)
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


def _join(job: Member, store: TCPStore, timeout_s: float, backend: str) -> str:
    """Enter the group; returns why that failed, so that the ranks can agree on it."""
    timeout, name = timedelta(seconds=timeout_s), BACKENDS[backend].torch
    try:
        if backend == _OWN_RANKS:
            dist.init_process_group(name, timeout=timeout)
        else:
            dist.init_process_group(name, store=store, rank=job.rank, world_size=job.size, timeout=timeout)
    except (RuntimeError, ValueError) as error:
        where = f" over {os.environ[_GLOO_DEVICES]}" if backend == GLOO else ""
        return f"{name} does not connect{where}: {_first_line(error)}"
    return misplaced((dist.get_rank(), dist.get_world_size()), (job.rank, job.size))


def misplaced(torch_says: tuple[int, int], launched: tuple[int, int]) -> str:
    """Whether torch's rank and number of ranks are others than those launched: each would measure itself alone."""
    if torch_says == launched:
        return ""
    return f"torch says rank {torch_says[0]} of {torch_says[1]}, launched was rank {launched[0]} of {launched[1]}"


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
