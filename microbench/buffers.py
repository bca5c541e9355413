"""Message buffers: page-aligned maps of their own, with a stated page policy, written before use.

Send and receive buffers of different alignment, or one buffer for both, cost up to five times the time of a
copy; huge pages halve it. So both are fixed here and recorded.
"""

from __future__ import annotations

import mmap

import numpy as np
from numpy.typing import NDArray

from fabrics.errors import UserError

PAGE_POLICIES = ("small", "huge")
_HUGE_PAGE_BYTES = 2 << 20


def allocate(nbytes: int, pages: str = "small") -> NDArray[np.uint8]:
    """``nbytes`` bytes of zeros (at least a page) on a page boundary, every page already present.

    ``small`` forbids transparent huge pages, ``huge`` asks for them on a 2 MiB boundary.
    """
    if pages not in PAGE_POLICIES:
        raise UserError(f"unknown page policy {pages!r}: one of {', '.join(PAGE_POLICIES)}")
    align = _HUGE_PAGE_BYTES if pages == "huge" else mmap.PAGESIZE
    room = -(-max(nbytes, 1) // align) * align + (align if pages == "huge" else 0)
    area = mmap.mmap(-1, room, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    area.madvise(mmap.MADV_HUGEPAGE if pages == "huge" else mmap.MADV_NOHUGEPAGE)
    whole = np.frombuffer(area, "u1")
    start = -whole.ctypes.data % align
    whole[:] = 0
    return whole[start : start + nbytes] if nbytes else whole[start : start + mmap.PAGESIZE][:0]
