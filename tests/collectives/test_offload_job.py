"""The benchmark in real jobs: this file is also the program that their ranks run.

``python test_offload_job.py FABRIC DEVICE SCENARIO ...`` runs one case per scenario on four ranks and prints, from
rank 0, a line of JSON for each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

NBYTES = 1 << 18
CPUS = sorted(os.sched_getaffinity(0))
OVER_LO = {"MPIR_CVAR_CH4_NETMOD": "ofi", "MPIR_CVAR_NOLOCAL": "1", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo"}
STEPS = ("compute", "host.pure", "host.overall", "probes16.overall", "staged.pure", "staged.overall")


def plant(scenario, crew_module):
    """Break the DPUs' service in one way."""
    original = crew_module.Crew._offload

    def offload(self):
        calls = original(self)
        if scenario == "no_collective":  # the DPU hands back its own host's data
            return [("MPI_Irecv", self.receive, *calls[0][2:]), calls[1], calls[4], calls[5], calls[6]]
        if scenario == "uncounted":
            return [call for call in calls if call[0] != "stream"]
        return calls

    crew_module.Crew._offload = offload


def rank_main(fabric_name, device, scenarios):
    from microbench import mpi

    os.sched_setaffinity(0, {CPUS[min(mpi.launched_rank(), 1, len(CPUS) - 1)]})
    MPI = mpi.start("single")  # noqa: N806 - the module's own name
    from collectives.offload import crew
    from fabrics import counters
    from fabrics.model import Fabric
    from microbench.case import Case
    from microbench.registry import load
    from suite import session

    fabric = Fabric(fabric_name, "tcp", (), emulated=True)
    job = session.open_job(MPI, fabric, roles=("host", "host", "dpu", "dpu"))
    table, service = load(["collectives.offload.bench"]), crew.Crew._offload
    case = Case("offload_allreduce", fabric_name, nbytes=NBYTES, dtype="float32", ranks=4,
                min_iterations=8, max_iterations=12, budget_s=1.0)  # fmt: skip
    for scenario in scenarios:
        plant(scenario, crew)
        before = counters.read()
        outcome = session.run_case(job, case, table)
        rises = counters.delta(before, counters.read())
        crew.Crew._offload = service
        sent = job.comm.gather(rises.get(device, (0, 0))[1], root=0)
        if job.rank == 0:
            told = {name: getattr(outcome, name) for name in ("status", "reason", "method", "validation", "placement")}
            told["metrics"] = {name: metric.__dict__ for name, metric in outcome.metrics.items()}
            told["samples"] = {name: list(times.shape) for name, times in outcome.samples.items()}
            print(json.dumps({**told, "sent": sent, "hosts": job.hosts}), flush=True)


def launch(prefix, settings, *words):
    """Run the ranks; their JSON lines."""
    command = [*prefix, "-n", "4", "-bind-to", "none"]
    for name, value in settings.items():
        command += ["-genv", name, value]
    command += [sys.executable, __file__, *words]
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("UCX_", "FI_", "MPIR_CVAR_", "PMI_"))}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=clean, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def mpiexec():
    path = Path(sys.executable).with_name("mpiexec")
    if not path.exists():
        pytest.skip(f"no mpiexec beside {sys.executable}")
    return str(path)


def check_complete(told):
    """What every good outcome holds, on any transport."""
    assert told["status"] == "ok", told["reason"]
    n = told["method"]["iterations"]
    assert 8 <= n <= 12
    assert all(told["samples"][step] == [1, n] for step in STEPS)
    for name in (*STEPS, "staged.overlap", "staged.net_gain", "host.exposed", "probes16.pure", "staged.post"):
        assert told["metrics"][name]["value"] is not None, name
        assert told["metrics"][name]["n"] == n
    assert told["validation"]["wrong_bytes"] == 0
    assert told["validation"]["flipped_bit_caught"] is True
    checks = len(STEPS) - 1 + 3  # every step but compute before timing, every overlapped one after
    assert told["validation"]["checked_bytes"] == checks * 2 * NBYTES
    assert told["method"]["tally"]["done"] == [told["method"]["tally"]["asked"]] * 2
    assert told["method"]["tally"]["asked"] >= 2 * n


@pytest.fixture(scope="module")
def over_lo():
    """A good case, and one for each way of not using the DPUs, in one job."""
    return launch([mpiexec(), "-launcher", "fork"], OVER_LO, "lo", "lo", "", "no_collective", "uncounted")


def test_all_modes_are_measured_and_checked(over_lo):
    check_complete(over_lo[0])
    method, metrics = over_lo[0]["method"], over_lo[0]["metrics"]
    fastest = min(metrics[f"{mode}.overall"]["value"] for mode in ("host", "probes16", "blocking"))
    assert metrics[f"{method['best_host']}.overall"]["value"] == fastest
    gain = 1 - metrics["staged.overall"]["value"] / fastest
    assert metrics["staged.net_gain"]["value"] == pytest.approx(gain)


def test_every_rank_is_tried_before_it_may_sleep(over_lo):
    waiting = over_lo[0]["method"]["waiting"]
    passed = waiting["selftest"]["passed"]
    assert len(passed) == 4
    assert waiting["strategy"] == ("poll" if all(passed) else "spin")


def test_a_dpu_that_skips_the_collective_leaves_wrong_data_and_no_times(over_lo):
    told = over_lo[1]
    assert (told["status"], told["metrics"], told["samples"]) == ("invalid", {}, {})
    assert told["reason"].startswith("staged.pure: wrong data")


def test_a_collective_that_no_dpu_counted_is_an_offload_not_used(over_lo):
    told = over_lo[2]
    assert (told["status"], told["metrics"], told["samples"]) == ("invalid", {}, {})
    assert told["reason"].startswith("offload not used")


def test_shared_memory_wakes_nobody_and_makes_ranks_spin():
    settings = {"UCX_TLS": "posix,self"}
    (told,) = launch([mpiexec(), "-launcher", "fork"], settings, "shm", "lo", "")
    check_complete(told)
    waiting = told["method"]["waiting"]
    assert waiting["strategy"] == "spin"
    assert not any(waiting["selftest"]["passed"])
    assert min(waiting["selftest"]["wake_us"]) > 100e3


@pytest.fixture
def lab():
    from fabrics.lab import cluster
    from fabrics.lab.check import why_not
    from fabrics.lab.config import LabConfig

    if reason := why_not():
        pytest.skip(reason)
    made = cluster.up(LabConfig(name=cluster.own_name()))
    yield made
    cluster.down(made.name)


def test_on_a_lab_emulated_dpus_sleep_and_carry_the_collective(lab):
    where = ["-launcher", "ssh", "-launcher-exec", str(lab.agent), "-hosts", "h0,h1,d0,d1", "-ppn", "1"]
    settings = {"UCX_NET_DEVICES": "eth2g5", "UCX_TLS": "tcp,self"}
    (told,) = launch([*lab.enter("h0", [mpiexec(), *where])], settings, "eth2g5", "eth2g5", "")
    check_complete(told)
    assert told["hosts"] == ["h0", "h1", "d0", "d1"]
    method = told["method"]
    assert method["waiting"]["strategy"] == "poll"
    assert all(method["waiting"]["selftest"]["passed"])
    assert max(method["idle_dpu_cpu_share"]) < 0.2
    if len(CPUS) > 1:
        assert told["placement"].startswith("split ")
        assert not [w for w in method["warnings"] if "shares its cores" in w]
    carried = 2 * NBYTES * method["tally"]["asked"]  # its part of the sum to the other DPU, the result to its host
    assert all(sent >= carried for sent in told["sent"][2:])


if __name__ == "__main__":
    rank_main(sys.argv[1], sys.argv[2], sys.argv[3:])
