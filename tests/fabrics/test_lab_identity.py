"""Who a lab's members are to one another: machines of their own, or a host and its DPU as one."""

from __future__ import annotations

import pytest

from fabrics.errors import UserError
from fabrics.lab import cluster
from fabrics.lab.config import LabConfig
from tests.fabrics.conftest import mpich_ranks, run_in
from tests.fabrics.test_commands import fabricbench
from tests.fabrics.test_lab import host_says, traces

PAYLOAD = 32 << 20
CROSS_MEMORY = {"UCX_TLS": "tcp,self,cma", "UCX_NET_DEVICES": "eth10g"}


@pytest.fixture
def shared(spare: str) -> cluster.Lab:
    """A lab whose hosts and DPUs share identity."""
    return cluster.up(LabConfig(spare, shared_identity=True))


def _identity(lab: cluster.Lab, member: str) -> list[str]:
    return host_says(
        lab, member, "cat /proc/sys/kernel/random/boot_id; readlink /proc/self/ns/ipc; stat -c %d /dev/shm"
    ).split()


def test_host_and_dpu_are_one_machine_on_request(shared: cluster.Lab) -> None:
    seen = {member: _identity(shared, member) for member in shared.config.members}
    assert seen["h0"] == seen["d0"]
    assert seen["h1"] == seen["d1"]
    assert not set(seen["h0"]) & set(seen["h1"])
    assert [host_says(shared, member, "hostname") for member in shared.config.members] == list(shared.config.members)
    nets = {host_says(shared, member, "readlink /proc/self/ns/net") for member in shared.config.members}
    assert len(nets) == 4


def test_shared_memory_and_ipc_are_one(shared: cluster.Lab) -> None:
    host_says(shared, "h0", "echo planted > /dev/shm/window; ipcmk -M 4096 > /dev/null")
    assert host_says(shared, "d0", "cat /dev/shm/window; ipcs -m | grep -c ^0x") == "planted\n1"
    assert host_says(shared, "h1", "ls /dev/shm; ipcs -m | grep -c ^0x") == "0"


def test_messages_of_host_and_dpu_pass_by_memory_only_when_they_share_identity(
    shared: cluster.Lab, lab: cluster.Lab
) -> None:
    """CMA is on offer in both labs; counters tell which of them could use it."""
    assert _sent(shared, ("h0", "d0")) < PAYLOAD / 10
    assert _sent(shared, ("h0", "d1")) >= PAYLOAD
    assert _sent(lab, ("h0", "d0")) >= PAYLOAD


def _sent(lab: cluster.Lab, pair: tuple[str, str]) -> int:
    first = next(row for row in mpich_ranks(lab, pair, CROSS_MEMORY, PAYLOAD) if row["sent"])
    return int(sum(sent for _, sent in first["delta"].values()))


def test_a_shared_identity_is_kept_and_goes(shared: cluster.Lab) -> None:
    assert cluster.up(shared.config) == shared
    boot_id = host_says(shared, "d0", "cat /proc/sys/kernel/random/boot_id")
    apart = cluster.up(LabConfig(shared.name))  # another config: made anew
    assert host_says(apart, "d0", "cat /proc/sys/kernel/random/boot_id") != boot_id
    assert _identity(apart, "h0") != _identity(apart, "d0")
    cluster.down(shared.name)
    assert traces(shared.name) == []


def test_a_shared_identity_needs_dpus() -> None:
    with pytest.raises(UserError, match="needs DPUs"):
        LabConfig(dpus=False, shared_identity=True)


def test_the_command_makes_and_tells_it(spare: str) -> None:
    assert fabricbench("lab", "up", "--name", spare, "--shared-identity").returncode == 0
    lab = cluster.load(spare)
    assert lab.config.shared_identity
    row = next(line for line in fabricbench("lab", "status").stdout.splitlines() if line.split()[0] == spare)
    assert "host and DPU share identity" in row


def test_processes_of_a_dpu_are_not_its_host_s(shared: cluster.Lab) -> None:
    lab = cluster.limit_cpu(shared, 0.5, "d0")
    group = "grep -o 'fabricbench[.].*' /proc/self/cgroup"
    assert f"{lab.name}.d0" in host_says(lab, "d0", group)
    assert run_in(lab, "h0", "sh", "-c", group).stdout == ""
