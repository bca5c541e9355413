"""Run a command in a lab host: ``python -m fabrics.lab.enter [--lab NAME] [--ssh] HOST CMD...``.

It joins the host's network, UTS and IPC namespaces, and makes a mount namespace of its own in which /sys,
/dev/shm, /etc/hosts, the boot id and the machine id are the host's. Then it becomes the command. ``--ssh``
takes the arguments that a launcher hands to ssh and, as ssh does, gives the command to a shell and passes
nothing of the caller's environment but PATH and HOME.

A host that is held to a CPU quota takes the process into its control group, and in a lab with Slurm the environment
names the lab's own configuration. Only the standard library and fast: every rank of every launch comes through here.
"""

from __future__ import annotations

import os
import sys

from fabrics.errors import CannotRun, UserError
from fabrics.lab import kernel

TYPE_CHECKING = False  # as type checkers know it: importing typing would take longer than all the rest
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

BASE = "/run/fabricbench"
NETNS = "/run/netns"
GROUP = "group"  # in a host's run directory: names the file that takes its processes
SLURM = "slurm"  # in a lab's run directory: all that is Slurm's
NOT_EXECUTABLE, NOT_FOUND = 126, 127
_SSH_VALUED = "bcDEeFIiJLlmOopQRSWw"  # the options of ssh that take a value
_BOOT = "import sys; sys.path.append({root!r}); from fabrics.lab.enter import main; main()"


def namespace(lab: str, host: str) -> str:
    """The name of a lab host's network namespace; lab names have no dot, so names of labs cannot collide."""
    return f"fabricbench.{lab}.{host}"


def enter_argv(lab: str, *words: str) -> list[str]:
    """The argument vector that runs this module for ``lab``; ``words`` are the host and the command.

    ``-I -S`` leaves out the site packages, which cost more than all the rest of the start.
    """
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
    return [sys.executable, "-I", "-S", "-c", _BOOT.format(root=root), "--lab", lab, *words]


def join_host(lab: str, host: str) -> None:
    """Move the calling process into ``host``; raises UserError for a lab or host there is none of, else CannotRun."""
    home = f"{BASE}/{lab}/{host}"
    if not os.path.exists(f"{home}/boot_id"):  # noqa: PTH110 - pathlib doubles the imports
        raise UserError(_unknown(lab, host))
    if os.geteuid() != 0:
        raise CannotRun(f"lab host {host}: entering it needs root: run as root")
    try:
        kernel.join(f"{NETNS}/{namespace(lab, host)}", kernel.NEWNET)
        kernel.join(f"{home}/uts", kernel.NEWUTS)
        kernel.join(f"{home}/ipc", kernel.NEWIPC)
        kernel.unshare(kernel.NEWNS)
        kernel.mount("none", "/", flags=kernel.SLAVE | kernel.RECURSIVE)
        _own_files(home)
    except OSError as error:
        raise CannotRun(f"lab host {host} of lab {lab}: {error.filename}: {error.strerror}") from None


def join_group(lab: str, host: str) -> None:
    """Move the calling process, with all its threads, into the control group of ``host`` if it has one."""
    try:
        with open(f"{BASE}/{lab}/{host}/{GROUP}") as marker:  # noqa: PTH123 - pathlib doubles the imports
            takes = marker.read()
        with open(takes, "w") as group:  # noqa: PTH123
            group.write("0")
    except FileNotFoundError:
        return  # no quota was ever set
    except OSError as error:
        raise CannotRun(f"lab host {host} of lab {lab}: its CPU quota: {error.strerror}") from None


def host_environment(lab: str, caller: Mapping[str, str]) -> dict[str, str]:
    """The variables of a process in ``lab``: those of ``caller``, and with Slurm where its configuration is.

    Another Slurm's variables, such as those of a job that the caller runs in, are left out then.
    """
    configuration = f"{BASE}/{lab}/{SLURM}/slurm.conf"
    if not os.path.exists(configuration):  # noqa: PTH110
        return dict(caller)
    ours = caller.get("SLURM_CONF") == configuration
    kept = {name: value for name, value in caller.items() if ours or not name.startswith("SLURM_")}
    return {**kept, "SLURM_CONF": configuration}


def _own_files(home: str) -> None:
    cgroups = os.open("/sys/fs/cgroup", os.O_PATH | os.O_CLOEXEC)  # the old one: reachable when /sys is covered
    kernel.mount("none", "/sys", "sysfs")
    kernel.mount(f"/proc/self/fd/{cgroups}", "/sys/fs/cgroup", flags=kernel.BIND | kernel.RECURSIVE)
    os.close(cgroups)
    kernel.mount(f"{home}/shm", "/dev/shm", flags=kernel.BIND)  # noqa: S108 - the mount point itself
    kernel.mount(f"{home}/boot_id", "/proc/sys/kernel/random/boot_id", flags=kernel.BIND)
    kernel.mount(f"{home}/hosts", "/etc/hosts", flags=kernel.BIND)
    if os.path.exists("/etc/machine-id"):  # noqa: PTH110
        kernel.mount(f"{home}/machine-id", "/etc/machine-id", flags=kernel.BIND)


def _unknown(lab: str, host: str) -> str:
    try:
        home = f"{BASE}/{lab}"
        hosts = sorted(name for name in os.listdir(home) if os.path.exists(f"{home}/{name}/boot_id"))  # noqa: PTH110, PTH208
    except FileNotFoundError:
        return f"lab {lab} is not up: fabricbench lab up --name {lab}"
    return f"lab {lab} has no host {host}: one of {', '.join(hosts)}"


def ssh_words(words: Sequence[str]) -> tuple[str, list[str]]:
    """Host and command of an ssh command line; a user and a fabric's suffix (``h0-mgmt``) are dropped.

    Raises UserError when there is no host or no command.
    """
    rest = list(words)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option == "--":
            break
        valued = [at for at, letter in enumerate(option) if letter in _SSH_VALUED]
        if valued and valued[0] == len(option) - 1 and rest:
            rest.pop(0)
    if len(rest) < 2:
        raise UserError("lab agent: a host and a command are needed")
    host = rest[0].rpartition("@")[2].partition("-")[0]
    return host, ["sh", "-c", " ".join(rest[1:])]


def _become(command: Sequence[str], env: Mapping[str, str]) -> NoReturn:
    try:
        os.execvpe(command[0], list(command), dict(env))  # noqa: S606 - no shell is the point
    except FileNotFoundError:
        _leave(f"{command[0]}: command not found", NOT_FOUND)
    except OSError as error:
        _leave(f"{command[0]}: {error.strerror}", NOT_EXECUTABLE)


def _leave(message: str, code: int) -> NoReturn:
    sys.stderr.write(f"fabricbench: {message}\n")
    sys.exit(code)


def _options(words: list[str]) -> tuple[str, bool, list[str]]:
    lab, ssh = "lab", False
    while words and words[0] in {"--lab", "--ssh"}:
        if words.pop(0) == "--ssh":
            ssh = True
        elif words:
            lab = words.pop(0)
    return lab, ssh, words


def _words(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    if len(words) < 2:
        raise UserError("usage: enter [--lab NAME] HOST CMD...")
    return words[0], words[1:]


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Enter a host and become the command; exits 2 or 4 with one line, 126 or 127 as a shell does."""
    lab, ssh, words = _options(list(sys.argv[1:] if argv is None else argv))
    try:
        host, command = ssh_words(words) if ssh else _words(words)
        join_host(lab, host)
        join_group(lab, host)
    except (UserError, CannotRun) as error:
        _leave(str(error), error.exit_code)
    kept = ("PATH", "HOME") if ssh else tuple(os.environ)
    _become(command, host_environment(lab, {name: os.environ[name] for name in kept if name in os.environ}))


if __name__ == "__main__":
    main()
