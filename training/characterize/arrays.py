"""How large the triad's arrays have to be, and how large they may be."""

from __future__ import annotations

from pathlib import Path

CACHES = 4  # an array is that many times the last-level caches, as STREAM asks
ASSUMED_CACHE_BYTES = 32 << 20  # where the kernel does not tell
TRIADS = 2 * 3  # arrays of a rank: three for one core, three for all of them
_KEPT = 0.5  # of what memory is free
_LEAST_BYTES = 1 << 20
_CPUS = Path("/sys/devices/system/cpu")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def last_level_bytes(cpus: Path = _CPUS) -> int | None:
    """All last-level caches of this machine together, in bytes; None where the kernel tells of none.

    A cache that several processors share counts once.
    """
    found: dict[tuple[int, str], int] = {}
    for folder in cpus.glob("cpu[0-9]*/cache/index*"):
        try:
            level, shared = int(_read(folder / "level")), _read(folder / "shared_cpu_list")
            size = _read(folder / "size")
            if _read(folder / "type") != "Instruction":
                found[level, shared] = _bytes(size)
        except (OSError, ValueError, KeyError):
            continue  # an entry that this kernel leaves half told
    last = max((level for level, _ in found), default=0)
    return sum(size for (level, _), size in found.items() if level == last) or None


def _read(path: Path) -> str:
    return path.read_text("ascii").strip()


def _bytes(text: str) -> int:
    return int(text[:-1]) * _UNITS[text[-1]] if text[-1:].isalpha() else int(text)


def array_bytes(cache_bytes: int | None, free_bytes: int, ranks: int) -> tuple[int, str]:
    """Bytes of one array, and what must be told of it: where ``ranks`` ranks share ``free_bytes`` of memory.

    Raises ValueError where not even a small one fits.
    """
    cache = ASSUMED_CACHE_BYTES if cache_bytes is None else cache_bytes
    wanted, room = CACHES * cache, int(_KEPT * free_bytes) // (TRIADS * ranks)
    unknown = (
        f"; the kernel does not tell its last-level cache: {cache >> 20} MiB assumed" if cache_bytes is None else ""
    )
    if room < _LEAST_BYTES:
        raise ValueError(f"{free_bytes / 1e6:.0f} MB of free memory are too little for the triad of {ranks} ranks")
    if room >= wanted:
        return _whole(wanted), unknown.removeprefix("; ")
    bound = f"triad arrays of {room >> 20} MiB are below {CACHES} times the last-level cache ({cache >> 20} MiB)"
    return _whole(room), f"{bound}: free memory bounds them, and the bandwidth may be the cache's{unknown}"


def _whole(nbytes: int) -> int:
    return nbytes // 4096 * 4096
