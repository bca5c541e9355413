"""What the MPI library of this environment can drive: asked of UCX and libfabric themselves, and MPI is not started.

``python -m suite.providers`` loads the library, and with it the UCX and libfabric that it was linked with, and has them
load their modules: one that lacks a library of the system, as those for InfiniBand lack libibverbs on many hosts, does
not come. Nothing is opened, so it costs a fraction of a second; it is a process of its own, should one of them crash.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fabrics.errors import CannotRun
from microbench import mpi
from suite import launch
from suite.launch.find import ask
from suite.user_settings import netmods

_LIBRARIES = {"ofi": "libfabric.so", "ucx": "libuct.so"}
_OFI_VERSION = 1 << 16 | 9  # the oldest whose answer has this form
_OFI_PROVIDERS_ALONE = 1 << 54  # FI_PROV_ATTR_ONLY: whether or not it can be used here
_OFI_NONE = -61  # FI_ENODATA
_UCT_NAME = 1  # UCT_COMPONENT_ATTR_FIELD_NAME
_UCX_RDMA = "ib"  # UCX's component for InfiniBand and RoCE
_UCX_ACCELERATED = "libuct_ib_mlx5.so"  # in newer versions a module apart, which holds DC


class _Fabric(ctypes.Structure):
    """fi_fabric_attr, as far as it is read."""

    _fields_ = (("fabric", ctypes.c_void_p), ("name", ctypes.c_char_p), ("provider", ctypes.c_char_p))


class _Info(ctypes.Structure):
    """fi_info, as far as it is read."""


_Info._fields_ = (
    ("next", ctypes.POINTER(_Info)), ("caps", ctypes.c_uint64), ("mode", ctypes.c_uint64),
    ("addr_format", ctypes.c_uint32), ("src_addrlen", ctypes.c_size_t), ("dest_addrlen", ctypes.c_size_t),
    ("src_addr", ctypes.c_void_p), ("dest_addr", ctypes.c_void_p), ("handle", ctypes.c_void_p),
    ("tx_attr", ctypes.c_void_p), ("rx_attr", ctypes.c_void_p), ("ep_attr", ctypes.c_void_p),
    ("domain_attr", ctypes.c_void_p), ("fabric_attr", ctypes.POINTER(_Fabric)),
)  # fmt: skip


class _Component(ctypes.Structure):
    """uct_component_attr: the field that is asked for, and room for the others."""

    _fields_ = (("field_mask", ctypes.c_uint64), ("name", ctypes.c_char * 16), ("others", ctypes.c_uint64 * 30))


def here() -> frozenset[str]:
    """Transports of UCX and providers of libfabric, by the names of :data:`fabrics.discovery.offers.PROVIDERS`.

    CannotRun where there is no MPI, or it holds them in a way that cannot be asked.
    """
    told = ask([sys.executable, "-m", "suite.providers"], {**launch.clean_environment(), "UCX_LOG_LEVEL": "fatal"})
    lines = [line for line in told.splitlines() if line.startswith("[")]
    if not lines:
        raise CannotRun("the MPI library's transports are not told")
    return frozenset(json.loads(lines[-1]))


def stacks(version: str) -> tuple[str, ...]:
    """Which of ucx and ofi a library can run on, by what it says of itself; empty where that is not known."""
    if "Open MPI" in version:
        return tuple(_LIBRARIES)
    return ("ofi",) if "Intel(R) MPI" in version else tuple(netmods(version))


def loaded(maps: str) -> dict[str, str]:
    """The paths of ucx and ofi among what a process has loaded, as its /proc/self/maps has it."""
    paths = dict.fromkeys(line.split(maxsplit=5)[5] for line in maps.splitlines() if line.count("/") > 0)
    return {stack: path for path in paths for stack, name in _LIBRARIES.items() if Path(path).name.startswith(name)}


def of_ofi(path: str) -> set[str]:
    """The providers of libfabric: verbs, tcp, ...; CannotRun where it does not tell."""
    library = ctypes.CDLL(path)
    first = ctypes.POINTER(_Info)()
    code = library.fi_getinfo(
        ctypes.c_uint32(_OFI_VERSION), None, None, ctypes.c_uint64(_OFI_PROVIDERS_ALONE), None, ctypes.byref(first)
    )
    if code not in (0, _OFI_NONE):
        raise CannotRun(f"{path} does not tell its providers: error {-code}")
    found, at = set[str](), first
    while at:
        if at.contents.fabric_attr and (name := at.contents.fabric_attr.contents.provider):
            found.add(name.decode())
        at = at.contents.next
    if first:
        library.fi_freeinfo(first)
    return found


def of_ucx(path: str) -> set[str]:
    """The RDMA transports of UCX, rc, ud and dc, as far as their modules load; CannotRun where it does not tell."""
    library = ctypes.CDLL(path)
    components, count = ctypes.POINTER(ctypes.c_void_p)(), ctypes.c_uint()
    if code := library.uct_query_components(ctypes.byref(components), ctypes.byref(count)):
        raise CannotRun(f"{path} does not tell its components: error {code}")
    names = set[str]()
    for number in range(count.value):
        attributes = _Component(field_mask=_UCT_NAME)
        if not library.uct_component_query(ctypes.c_void_p(components[number]), ctypes.byref(attributes)):
            names.add(attributes.name.decode())
    library.uct_release_component_list(components)
    if _UCX_RDMA not in names:
        return set()
    return {"rc", "ud"} | ({"dc"} if _UCX_ACCELERATED in Path("/proc/self/maps").read_text() else set())


_ASK: Mapping[str, Callable[[str], set[str]]] = {"ofi": of_ofi, "ucx": of_ucx}


def found_in(version: str, maps: str, asking: Mapping[str, Callable[[str], Any]] = _ASK) -> list[str]:
    """What all stacks of the library can drive; CannotRun where one of them cannot be asked, for it may be there."""
    wanted, there = stacks(version), loaded(maps)
    missing = [stack for stack in wanted if stack not in there]
    if missing or not wanted:
        raise CannotRun(f"{mpi.make(version)} does not show its {' and '.join(missing) or 'transports'}")
    return sorted({name for stack in wanted for name in asking[stack](there[stack])})


def main() -> int:
    """Print what there is as a line of JSON, or on the other stream why that is not known."""
    try:
        version = mpi.library_version()
        print(json.dumps(found_in(version, Path("/proc/self/maps").read_text())), flush=True)
    except (CannotRun, OSError, AttributeError) as error:
        print(error, file=sys.stderr)
        return CannotRun.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
