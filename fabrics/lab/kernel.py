"""The Linux calls that lab hosts need and Python lacks. Standard library only: ``enter`` must start fast.

Namespaces belong to a thread, so all of this may also be done by one thread of a process.
"""

from __future__ import annotations

import ctypes
import os

TYPE_CHECKING = False  # as type checkers know it: importing typing would take longer than all the rest
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

NEWNS, NEWUTS, NEWIPC, NEWNET = 0x00020000, 0x04000000, 0x08000000, 0x40000000
BIND, RECURSIVE, PRIVATE, SLAVE = 0x1000, 0x4000, 0x40000, 0x80000
_DETACH = 2
_LIBC = ctypes.CDLL(None, use_errno=True)


def _check(call: Callable[..., int], what: str, *args: Any) -> None:
    if call(*args):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), what)


def unshare(kinds: int) -> None:
    """Give the calling thread new namespaces of ``kinds``; raises OSError."""
    _check(_LIBC.unshare, "unshare", ctypes.c_int(kinds))


def join(path: str, kind: int) -> None:
    """Move the calling thread into the namespace pinned at ``path``; raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _check(_LIBC.setns, path, ctypes.c_int(descriptor), ctypes.c_int(kind))
    finally:
        os.close(descriptor)


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """mount(2) of ``source`` on ``target``; raises OSError that names the target."""
    words = [ctypes.c_char_p(word.encode() or None) for word in (source, target, kind)]
    _check(_LIBC.mount, target, *words, ctypes.c_ulong(flags), ctypes.c_char_p(data.encode() or None))


def unmount(target: str) -> None:
    """Detach what is mounted on ``target``, busy or not; raises OSError."""
    _check(_LIBC.umount2, target, ctypes.c_char_p(target.encode()), ctypes.c_int(_DETACH))


def set_hostname(name: str) -> None:
    """Name the UTS namespace of the calling thread; raises OSError."""
    _check(_LIBC.sethostname, "sethostname", ctypes.c_char_p(name.encode()), ctypes.c_size_t(len(name)))
