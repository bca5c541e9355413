"""What runs on every host of a run before any MPI job: which addresses it has, and which hosts it reaches.

``python -m fabrics.reach survey`` tells this host's interfaces, its boot id, and which lab's host it is, if any.
``python -m fabrics.reach pairs TASK`` listens on this host's own addresses, connects to every other host over every
lane, each connection bound to the lane's own device and address, and tells those that it does not reach. A lane is a
device on each of several hosts; ``TASK`` is JSON::

    {"nonce": "...", "ports": [...], "connect_s": 2.0, "until_s": 5.0,
     "lanes": [[[rank, device, address], ...], ...]}

Hosts are known by their rank in the launch. Ports are told to all, since the programs share no channel: each listens
on the first that is free, the others try all. A greeting with the nonce tells one of us from whoever else listens
there. Standard library alone; every answer is a short line of JSON, which launchers do not tear.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fabrics import launched
from fabrics.lab import inside

_RETRY_S = 0.05
_BACKLOG = 4096
_GREETING_BYTES = 200
_ASK, _ANSWER, _ERROR, _DONE = 22, 20, 2, 3  # RTM_GETADDR, RTM_NEWADDR, NLMSG_ERROR, NLMSG_DONE
_DUMP = 0x301  # NLM_F_REQUEST | NLM_F_DUMP
_ADDRESS, _LOCAL = 1, 2  # IFA_ADDRESS, IFA_LOCAL: of a point-to-point link the first is the other end's
_NETLINK_S = 2.0

End = tuple[int, str, str]


@dataclass(frozen=True)
class Task:
    """What :func:`pairs` is asked: ``lanes`` hold rank, device and address of each host."""

    nonce: str
    ports: tuple[int, ...]
    connect_s: float
    until_s: float
    lanes: tuple[tuple[End, ...], ...]

    @classmethod
    def from_json(cls, text: str) -> Task:
        """The task of an argument."""
        data = json.loads(text)
        lanes = tuple(tuple((int(r), str(d), str(a)) for r, d, a in lane) for lane in data["lanes"])
        return cls(data["nonce"], tuple(data["ports"]), float(data["connect_s"]), float(data["until_s"]), lanes)


def addresses() -> dict[str, list[str]]:
    """``{interface: ["10.0.0.1/24", ...]}`` of this host, asked of the kernel by netlink; raises OSError."""
    names = dict(socket.if_nameindex())
    found: dict[str, list[str]] = {name: [] for name in names.values()}
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as kernel:
        kernel.settimeout(_NETLINK_S)
        kernel.send(struct.pack("=IHHIIBBBBi", 24, _ASK, _DUMP, 1, 0, 0, 0, 0, 0, 0))
        done = False
        while not done:
            data = kernel.recv(1 << 16)
            while data:
                size, kind = struct.unpack_from("=IH", data)
                if kind == _ERROR:
                    raise OSError(-struct.unpack_from("=i", data, 16)[0], "the kernel does not tell addresses")
                done = done or kind == _DONE
                if kind == _ANSWER:
                    index, text = _address(data[16:size])
                    found.setdefault(names.get(index, str(index)), []).append(text)
                data = data[_aligned(size) :]
    return found


def _address(message: bytes) -> tuple[int, str]:
    """Interface index and ``address/prefix`` of one answer."""
    family, prefix, _, _, index = struct.unpack_from("=BBBBI", message)
    parts: dict[int, bytes] = {}
    rest = message[8:]
    while len(rest) >= 4:
        size, kind = struct.unpack_from("=HH", rest)
        parts[kind] = rest[4:size]
        rest = rest[_aligned(size) :]
    return index, f"{socket.inet_ntop(family, parts.get(_LOCAL, parts.get(_ADDRESS, b'')))}/{prefix}"


def _aligned(size: int) -> int:
    return (size + 3) & ~3


@dataclass
class _Here:
    """One host at work on a task."""

    task: Task
    rank: int
    awaited: set[tuple[int, int]] = field(default_factory=set)
    all_came: asyncio.Event = field(default_factory=asyncio.Event)
    began: float = field(default_factory=time.monotonic)

    def left_s(self) -> float:
        """What is left of the task's time."""
        return max(0.0, self.began + self.task.until_s - time.monotonic())

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer a greeting of ours: who came, and who we are."""
        with suppress(OSError, ValueError, TimeoutError):
            async with asyncio.timeout(self.task.connect_s):
                nonce, lane, rank = (await reader.readline())[:_GREETING_BYTES].decode().split()
                if nonce == self.task.nonce:
                    writer.write(f"{nonce} {self.rank}\n".encode())
                    await writer.drain()
                    self.awaited.discard((int(lane), int(rank)))
                    if not self.awaited:
                        self.all_came.set()
        writer.close()

    async def reach(self, lane: int, own: End, other: End) -> str:
        """Why another host is not reached, empty where it is.

        A refusal may mean that the program there has not begun yet, so that is tried again while there is time.
        """
        why = "connection refused"
        while True:
            for port in self.task.ports:
                try:
                    if await self._greet(lane, own, other, port):
                        return ""
                except TimeoutError:
                    return "connection timed out"
                except ConnectionRefusedError:
                    continue
                except OSError as error:
                    return os.strerror(error.errno).lower() if error.errno else str(error)
            if not self.left_s():
                return why
            await asyncio.sleep(_RETRY_S)

    async def _greet(self, lane: int, own: End, other: End, port: int) -> bool:
        """Connect, and hear whether the other host is at this port; TimeoutError where nothing connects."""
        loop = asyncio.get_running_loop()
        with _bound(own) as connection:
            async with asyncio.timeout(self.task.connect_s):
                await loop.sock_connect(connection, (other[2], port))
            try:
                async with asyncio.timeout(self.task.connect_s):
                    await loop.sock_sendall(connection, f"{self.task.nonce} {lane} {self.rank}\n".encode())
                    answer = await loop.sock_recv(connection, _GREETING_BYTES)
            except (TimeoutError, ConnectionError):  # someone else's port
                return False
        return answer.decode("ascii", "replace").split() == [self.task.nonce, str(other[0])]


def _bound(own: End) -> socket.socket:
    """A socket that sends from this device and address alone; from the address where the device may not be chosen."""
    _, device, address = own
    found = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        found.setblocking(False)
        with suppress(PermissionError):  # older kernels leave that to root
            found.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode() + b"\0")
        found.bind((address, 0))
    except OSError:
        found.close()
        raise
    return found


async def pairs(task: Task, rank: int) -> list[dict[str, Any]]:
    """The hosts that this one does not reach, as ``{"lane", "to", "why"}``; ``to`` is None where it cannot listen.

    It stays until every host that may come has come, or the task's time is over.
    """
    here = _Here(task, rank)
    mine = {lane: end for lane, ends in enumerate(task.lanes) for end in ends if end[0] == rank}
    ways = [(lane, own, other) for lane, own in mine.items() for other in task.lanes[lane] if other[0] != rank]
    here.awaited.update((lane, other[0]) for lane, _, other in ways)
    servers, faults = [], []
    for address in dict.fromkeys(own[2] for own in mine.values()):
        server = await _listen(here, address)
        servers += [server] if server else []
        faults += [] if server else [lane for lane, own in mine.items() if own[2] == address]
    reasons = await asyncio.gather(*(here.reach(*way) for way in ways))
    with suppress(TimeoutError):
        if here.awaited:
            await asyncio.wait_for(here.all_came.wait(), here.left_s())
    for server in servers:
        server.close()
    told: list[dict[str, Any]] = [{"lane": lane, "to": None, "why": "no port is free there"} for lane in faults]
    return told + [
        {"lane": lane, "to": other[0], "why": why} for (lane, _, other), why in zip(ways, reasons, strict=True) if why
    ]


async def _listen(here: _Here, address: str) -> asyncio.Server | None:
    """Listen on the first port that is free; None where none is."""
    for port in here.task.ports:
        with suppress(OSError):
            return await asyncio.start_server(here.serve, address, port, backlog=_BACKLOG)
    return None


def _many_files() -> None:
    """Allow as many connections as the system does: there is one for each other host and lane."""
    import resource  # noqa: PLC0415 - a survey needs none

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _boot_id() -> str:
    """Containers of one machine have it in common; empty where the kernel does not tell."""
    try:
        return Path(inside.BOOT_ID).read_text().strip()
    except OSError:
        return ""


def _tell(row: dict[str, Any]) -> None:
    os.write(1, f"\n{json.dumps(row)}\n".encode())  # in one piece, and on a line of its own


def main(argv: list[str] | None = None) -> int:
    """Tell what is asked for, one line a fact and a last one with ``done``."""
    words = sys.argv[1:] if argv is None else argv
    rank = launched.rank()
    if words[0] == "survey":
        for name, own in addresses().items():
            _tell({"rank": rank, "interface": name, "addresses": own})
        _tell({"rank": rank, "done": socket.gethostname(), "boot_id": _boot_id(), "lab_host": inside.lab_host()})
        return 0
    _many_files()
    for row in asyncio.run(pairs(Task.from_json(words[1]), rank)):
        _tell({"rank": rank, **row})
    _tell({"rank": rank, "done": socket.gethostname()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
