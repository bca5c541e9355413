"""Whether a lab can be made here, found by trying in a namespace that ends with the trial."""

from __future__ import annotations

import os
import shutil

from fabrics.errors import CannotRun
from fabrics.lab import kernel
from fabrics.lab.build import batch, in_thread

_TRIALS = (
    ("ip", "link add trial0 type bridge", "bridges (bridge)"),
    ("ip", "link add trial1 type veth peer name trial2", "veth pairs (veth)"),
    ("tc", "qdisc add dev trial1 root tbf rate 1gbit burst 131072 limit 524288", "rate limits (sch_tbf)"),
)


def why_not() -> str:
    """Empty when a lab can be made here, else the reason, as one line that says what to do."""
    if os.geteuid() != 0:
        return "a lab needs root: run as root"
    for tool in ("ip", "tc"):
        if shutil.which(tool) is None:
            return f"a lab needs the command {tool}: install the package iproute2"
    return in_thread(_try)


def _try() -> str:
    try:
        kernel.unshare(kernel.NEWNET | kernel.NEWUTS | kernel.NEWIPC | kernel.NEWNS)
        kernel.mount("none", "/", flags=kernel.PRIVATE | kernel.RECURSIVE)
        kernel.mount("none", "/sys", "sysfs")
    except OSError as error:
        return f"a lab needs namespaces and mounts of its own, refused here: {error.filename}: {error.strerror}"
    for tool, line, what in _TRIALS:
        try:
            batch(tool, [line])
        except CannotRun as error:
            return f"a lab needs {what} in the kernel: {error}"
    return ""
