"""Whether this process runs in a lab host, as its own mounts say. Standard library alone.

``enter`` mounts a lab's file over the boot id of every process that it brings into a host, so a process started in any
way there, by sshd or Slurm too, finds it among its mounts; the boot id itself is the host's own, and tells nothing.
"""

from __future__ import annotations

from fabrics.lab.enter import BASE

MEDIUM = "fabricbench"  # what the file system of a lab's files calls itself
BOOT_ID = "/proc/sys/kernel/random/boot_id"
_MOUNTS = "/proc/self/mountinfo"


def lab_host(mounts: str | None = None) -> str:
    """``lab/h0`` in a host of a lab, empty on a machine; ``mounts`` stands in for /proc/self/mountinfo."""
    if mounts is None:
        try:
            with open(_MOUNTS) as file:  # noqa: PTH123 - pathlib doubles the imports
                mounts = file.read()
        except OSError:
            return ""
    labs: dict[str, str] = {}
    found = ""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        words, medium = before.split(), after.split()
        if len(words) < 5 or medium[1:2] != [MEDIUM]:
            continue
        device, root, target = words[2:5]
        if target.startswith(f"{BASE}/"):
            labs[device] = target.removeprefix(f"{BASE}/")
        elif target == BOOT_ID:  # the last one lies on top
            found = f"{labs.get(device, '')}/{root.split('/')[1]}"
    return found
