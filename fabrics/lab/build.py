"""The steps that make a lab's namespaces: what ``ip`` and ``tc`` are told, and each member's identity.

Per node and fabric a small switch joins the host, its DPU and one uplink to the fabric's core. Only the uplink
is shaped, both ways: a host and its DPU talk at the speed of the machine, nodes at the fabric's rate. All
bridges live in one namespace of their own, so that the machine's own network sees nothing of the lab.
"""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from fabrics.errors import CannotRun
from fabrics.lab import kernel
from fabrics.lab.config import MANAGEMENT, SEND_BUFFER_BYTES, LabConfig, burst_bytes, limit_bytes
from fabrics.lab.enter import BASE, NETNS, namespace
from fabrics.lab.inside import MEDIUM

SWITCH = "switch"
_COMMAND_DEADLINE_S = 30.0
_SYSCTLS = {
    "ipv6/conf/all/disable_ipv6": "1",  # else its own chatter moves the counters
    "ipv6/conf/default/disable_ipv6": "1",
}
_MEMBER_SYSCTLS = {
    "ipv4/tcp_congestion_control": "reno",  # the kernel's default may be BBR, which retransmits here
    "ipv4/tcp_no_metrics_save": "1",  # a connection must not inherit what an earlier one learned
    "ipv4/tcp_wmem": f"4096 16384 {SEND_BUFFER_BYTES}",  # else slow start alone overflows the uplink's queue
}
Rates = Mapping[str, Mapping[str, float | None]]
T = TypeVar("T")


def batch(tool: str, lines: Iterable[str], netns: str = "", hold: int | None = None) -> None:
    """Feed ``lines`` to ``ip`` or ``tc``, in a named namespace; raises CannotRun with what the tool said.

    ``hold`` is a lock's descriptor that the tool inherits: should this process be killed, the lock stays
    held for as long as the tool runs on.
    """
    where = ["-n", netns] if netns else []
    try:
        result = subprocess.run(
            [tool, *where, "-batch", "-"],
            input="\n".join(lines) + "\n",
            text=True,
            capture_output=True,
            timeout=_COMMAND_DEADLINE_S,
            check=False,
            pass_fds=() if hold is None else (hold,),
        )
    except subprocess.TimeoutExpired:
        raise CannotRun(f"{tool}: no answer within {_COMMAND_DEADLINE_S:.0f} s") from None
    if result.returncode:
        raise CannotRun(f"{tool}: {' '.join(result.stderr.split())}")


def in_thread(work: Callable[[], T]) -> T:
    """The result of ``work``, done in a thread that ends with it and may therefore change namespaces."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(work).result()


def switch_lines(config: LabConfig) -> list[str]:
    """What ``ip`` makes in the switches' namespace: bridges, uplinks, and a port for each member."""
    lines = ["link set lo up", *_bridge(config, f"core.{MANAGEMENT}")]
    for member in config.members:
        lines += _port(config, member, MANAGEMENT, f"core.{MANAGEMENT}")
    for fabric in config.fabrics:
        lines += _bridge(config, f"core.{fabric.name}")
        for node in range(config.nodes):
            lines += _node_switch(config, node, fabric.name)
    return lines


def _node_switch(config: LabConfig, node: int, fabric: str) -> list[str]:
    switch = f"s{node}.{fabric}"
    up, down = uplink(node, fabric)
    lines = _bridge(config, switch)
    for member in (f"h{node}", f"d{node}") if config.dpus else (f"h{node}",):
        lines += _port(config, member, fabric, switch)
    lines.append(f"link add {up} mtu {config.mtu} type veth peer name {down} mtu {config.mtu}")
    lines.append(f"link set {up} master {switch} up")
    lines.append(f"link set {down} master core.{fabric} up")
    return lines


def _bridge(config: LabConfig, name: str) -> list[str]:
    quiet = "stp_state 0 forward_delay 0 mcast_snooping 0"
    return [f"link add {name} type bridge {quiet}", f"link set {name} mtu {config.mtu} up"]


def _port(config: LabConfig, member: str, network: str, bridge: str) -> list[str]:
    port, mtu = f"{member}.{network}", config.mtu
    peer = f"peer name {network} mtu {mtu} netns {namespace(config.name, member)}"
    return [f"link add {port} mtu {mtu} type veth {peer}", f"link set {port} master {bridge} up"]


def uplink(node: int, fabric: str) -> tuple[str, str]:
    """The two ends of a node's uplink: what leaves the node, and what comes to it."""
    return f"u{node}.{fabric}", f"c{node}.{fabric}"


def shape_lines(rates: Rates) -> list[str]:
    """What ``tc`` sets on the uplinks, in the switches' namespace."""
    lines = []
    for fabric, by_host in rates.items():
        for host, rate in by_host.items():
            for device in uplink(int(host[1:]), fabric):
                lines.append(f"qdisc replace dev {device} root {_qdisc(rate)}")
    return lines


def _qdisc(rate_bits_per_s: float | None) -> str:
    if rate_bits_per_s is None:
        return "noqueue"
    burst, limit = burst_bytes(rate_bits_per_s), limit_bytes(rate_bits_per_s)
    return f"tbf rate {rate_bits_per_s:.0f}bit burst {burst} limit {limit}"


def member_lines(config: LabConfig, member: str) -> list[str]:
    """What ``ip`` sets in a member's own namespace."""
    lines = ["link set lo up"]
    for network in config.networks:
        lines.append(f"addr add {config.address(member, network)}/24 dev {network}")
        lines.append(f"link set {network} up")
    return lines


def hosts_file(config: LabConfig) -> str:
    """The /etc/hosts of every member; a bare name means the management network."""
    lines = ["127.0.0.1 localhost"]
    for member in config.members:
        lines.append(f"{config.address(member, MANAGEMENT)} {member} {member}-{MANAGEMENT}")
        lines += [f"{config.address(member, f.name)} {member}-{f.name}" for f in config.fabrics]
    return "\n".join(lines) + "\n"


def make_namespaces(config: LabConfig, rates: Rates, hold: int) -> None:
    """Make every namespace, device and file of a lab; raises CannotRun or OSError half-way."""
    home = Path(BASE, config.name)
    home.mkdir()
    # its own file system, for the agent must be executable and /run may be mounted noexec
    kernel.mount(MEDIUM, str(home), "tmpfs", data="mode=755")
    kernel.mount("none", str(home), flags=kernel.PRIVATE)
    places = (SWITCH, *config.members)
    batch("ip", [f"netns add {namespace(config.name, place)}" for place in places], hold=hold)
    switch = namespace(config.name, SWITCH)
    in_thread(partial(_quiet, config.name, SWITCH, _SYSCTLS))
    for member in config.members:
        in_thread(partial(_make_member, config, member))
    batch("ip", switch_lines(config), switch, hold)
    for member in config.members:
        batch("ip", member_lines(config, member), namespace(config.name, member), hold)
    batch("tc", shape_lines(rates), switch, hold)


def _quiet(lab: str, place: str, sysctls: Mapping[str, str]) -> None:
    kernel.join(f"{NETNS}/{namespace(lab, place)}", kernel.NEWNET)
    for name, value in sysctls.items():
        path = Path("/proc/sys/net", name)
        if path.exists():  # a kernel without IPv6 is as quiet
            path.write_text(value)


def _make_member(config: LabConfig, member: str) -> None:
    _quiet(config.name, member, {**_SYSCTLS, **_MEMBER_SYSCTLS})
    home = Path(BASE, config.name, member)
    home.mkdir()
    (home / "machine-id").write_text(f"{uuid.uuid4().hex}\n")
    (home / "hosts").write_text(hosts_file(config))
    boot_id = _make_identity(home, _sharing(config, member))
    kernel.unshare(kernel.NEWUTS)
    kernel.set_hostname(member)
    _pin("uts", home)
    (home / "boot_id").write_text(boot_id)  # last: by it `enter` knows that the member is whole


def _sharing(config: LabConfig, member: str) -> Path | None:
    """The run directory of the host whose identity ``member`` shares, if it does."""
    shares = config.shared_identity and member in config.dpu_hosts
    return Path(BASE, config.name, f"h{member[1:]}") if shares else None


def _make_identity(home: Path, host: Path | None) -> str:
    """Give a member /dev/shm and IPC, its own or those of ``host``; its boot id."""
    (home / "shm").mkdir()
    if host is None:
        kernel.mount("shm", str(home / "shm"), "tmpfs", data="mode=1777")
        kernel.unshare(kernel.NEWIPC)
        _pin("ipc", home)
        return f"{uuid.uuid4()}\n"
    (home / "ipc").touch()
    for name in ("shm", "ipc"):
        kernel.mount(str(host / name), str(home / name), flags=kernel.BIND)
    return (host / "boot_id").read_text()


def _pin(kind: str, home: Path) -> None:
    (home / kind).touch()
    kernel.mount(f"/proc/thread-self/ns/{kind}", str(home / kind), flags=kernel.BIND)
