"""A planted offload that falls back to the host: the hosts do the collective themselves, and the DPUs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from collectives.offload.channel import Channel
from collectives.offload.party import Calls
from microbench.dtypes import dtype, mpi_type
from microbench.engine import requests, statuses

NAMES = ("post", "probe", "wait", "serve")


def _request(channel: Any) -> Any:
    if not hasattr(channel, "fallback"):
        channel.fallback = requests(1, channel.crew.job.engine.MPI), statuses(1)
    return channel.fallback


def post(channel: Any) -> Calls:
    """The hosts' own allreduce, of float32."""
    library = channel.crew.job.engine.MPI
    kind = mpi_type(library, dtype("float32"))
    data = (channel.send, channel.receive, channel.task.count, kind, library.SUM)
    return [("MPI_Iallreduce", *data, channel.crew.hosts_comm, _request(channel)[0])]


def probe(channel: Any) -> Calls:
    """A test of it."""
    return [("probe", *_request(channel))]


def wait(channel: Any, gentle: bool = True) -> Calls:
    """The wait for it."""
    return [("MPI_Wait", *_request(channel))]


@contextmanager
def falls_back(counts: bool) -> Iterator[None]:
    """For a while; with ``counts`` the DPUs' tally tells of work that they did not do."""
    usual = {name: getattr(Channel, name) for name in NAMES}
    serve = (lambda channel: [("stream", channel.tally, 1, 1)]) if counts else (lambda channel: [])
    for name, planted in {"post": post, "probe": probe, "wait": wait, "serve": serve}.items():
        setattr(Channel, name, planted)
    try:
        yield
    finally:
        for name, method in usual.items():
            setattr(Channel, name, method)
