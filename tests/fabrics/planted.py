"""Planted faults of fabrics: each acts on labs of its own, and says what was told instead where it was not told.

The tests run each once, ``make proof`` ten times.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fabrics.definition import fabric as defined
from fabrics.definition import parse
from fabrics.discover import lab_fabrics
from fabrics.errors import CannotRun
from fabrics.lab import cluster
from fabrics.lab.config import MANAGEMENT, LabConfig
from fabrics.lab.enter import namespace
from fabrics.model import Fabric
from fabrics.recipes import recipe
from suite import launch, user_settings
from suite.reachable import Reach, check
from suite.survey import Survey, survey
from tests import jobs

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 60
PORT = 5201
PLAN = """
launches = 1
budget_s = 0.05
[latency]
sizes = "8"
[barrier]
ranks = [3]
"""


@dataclass(frozen=True)
class Stage:
    """Labs to plant faults in: a whole one, one whose hosts and DPUs share identity, and one to break."""

    whole: cluster.Lab
    shared: cluster.Lab
    broken: cluster.Lab
    folder: Path


@contextmanager
def stage(name: str, folder: Path) -> Iterator[Stage]:
    """Three labs for the time of the block; eth10g of the third ends before its host h2, and each has a docker0."""
    configs = (
        LabConfig(f"{name}w", dpus=False),
        LabConfig(f"{name}s", shared_identity=True),
        LabConfig(f"{name}b", nodes=3, dpus=False),
    )
    with ExitStack() as stack:
        labs = []
        for config in configs:
            stack.callback(cluster.down, config.name)
            labs.append(cluster.up(config))
        break_route(labs[2], "h2", "eth10g")
        add_docker(labs[2])
        yield Stage(*labs, folder)


def break_route(lab: cluster.Lab, host: str, device: str) -> None:
    """Take a host off a fabric: it keeps its address, and there is no way there or back."""
    _ip(lab, host, "link", "set", device, "down")


def add_docker(lab: cluster.Lab) -> None:
    """Give every host the bridge that docker makes, with the address that it has everywhere."""
    for host in lab.hosts:
        _ip(lab, host, "link", "add", "docker0", "type", "bridge")
        _ip(lab, host, "addr", "add", "172.17.0.1/16", "dev", "docker0")
        _ip(lab, host, "link", "set", "docker0", "up")


def _ip(lab: cluster.Lab, host: str, *words: str) -> None:
    subprocess.run(["ip", "-n", namespace(lab.name, host), *words], check=True, timeout=DEADLINE_S)


def command(lab: cluster.Lab, hosts: tuple[str, ...], program: list[str], **env: str) -> list[str]:
    """The command of a job in a lab, as a run has it."""
    access = launch.Access(tuple(lab.enter(hosts[0], ())), str(lab.agent), MANAGEMENT, one_machine=True)
    given = {**launch.passed(), "PYTHONPATH": str(ROOT), **env}
    return launch.job_command(launch.find_launcher(), hosts, program, given, access)


def on_lab(lab: cluster.Lab, name: str) -> Fabric:
    return next(fabric for fabric in lab_fabrics(lab) if fabric.name == name)


def proved(
    lab: cluster.Lab, name: str, env: Mapping[str, str], hosts: tuple[str, ...] = ("h0", "h1"), payload: int = 0
) -> dict[str, Any]:
    """What a job's proof says of a fabric of the lab, with these variables in place of a recipe's; its time too."""
    program = [sys.executable, str(ROOT / "tests/fabrics/prove_program.py")]
    arguments = [json.dumps(on_lab(lab, name).as_dict()), str(payload)]
    done = jobs.run(command(lab, hosts, [*program, *arguments], **env), DEADLINE_S)
    rows = [json.loads(line) for line in done.out.splitlines() if line.startswith('{"proof"')]
    if len(rows) != 1:
        raise AssertionError(f"no proof was told: exit {done.code}: {done.err[-2000:]}")
    return {**rows[0]["proof"], "took_s": rows[0]["took_s"]}


def recipe_of(lab: cluster.Lab, name: str) -> Mapping[str, str]:
    return recipe(on_lab(lab, name), "mpich").env


@contextmanager
def foreign(lab: cluster.Lab, network: str, bits_per_s: float = 0) -> Iterator[None]:
    """A stream from h0 to h1 beside what happens in the block, at a rate or as fast as it goes."""
    address, program = lab.address("h1", network), [sys.executable, str(ROOT / "tests/fabrics/foreign.py")]
    ends = (("h1", "receive", address, str(PORT)), ("h0", "send", address, str(PORT), str(bits_per_s / 8)))
    running: list[subprocess.Popen[str]] = []
    try:
        for host, *words in ends:
            process = subprocess.Popen(lab.enter(host, [*program, *words]), stdout=subprocess.PIPE, text=True)
            running.append(process)
            if process.stdout is None or process.stdout.readline() != "on\n":
                raise AssertionError(f"{words[0]} did not begin")
        yield
        if any(process.poll() is not None for process in running):
            raise AssertionError("the foreign traffic ended early")
    finally:
        for process in running:
            process.kill()
            process.communicate()


def _verdict(found: Mapping[str, Any], verdict: str, *names: str) -> str:
    """Empty where a proof says what it should, else what it says."""
    whole = found["verdict"] == verdict and all(name in found["detail"] for name in names)
    return "" if whole else f"{found['verdict']}: {found['detail']}"


def _striped(on: Stage) -> str:
    """No setting with two fabrics present."""
    return _verdict(proved(on.whole, "eth10g", {}), "disproved", "eth10g on h", "eth2g5 on h", "striped")


def _same_node(on: Stage) -> str:
    """Two hosts with one boot id: UCX takes them for one node, though a device is named."""
    found = proved(on.shared, "eth10g", {"UCX_NET_DEVICES": "eth10g"}, ("h0", "d0"))
    return _verdict(found, "disproved", "shared memory")


def _management(on: Stage) -> str:
    """All bytes on the management network."""
    found = proved(on.whole, "eth10g", {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": MANAGEMENT})
    return _verdict(found, "disproved", "mgmt on h0 rose", "another path")


def _settings(variables: Mapping[str, str], on: Stage) -> str:
    """A user's own job with settings that lead elsewhere: refused, with the variable's name."""
    done = jobs.mpi(2, "-m", "suite.cli", "bench", "latency", "--sizes", "8", "--seconds", "0.02", env=variables)
    (name,) = variables
    measured = "us" in done.out.split()  # the unit of a column; libraries write there too
    told = done.code == 2 and not measured and f"{name}={variables[name]}: " in done.err
    return "" if told else f"exit {done.code}: {done.out} {done.err}"


def _btl(on: Stage) -> str:
    """Open MPI's list of interfaces with one that is not here."""
    own = {"OMPI_MCA_btl_tcp_if_include": "nope0"}
    lines = user_settings.findings(own, user_settings.stacks_of("Open MPI v5.0.11", own), ["eth0", "lo"])
    return "" if lines and "no such device here" in lines[0] else f"told: {lines}"


def _other_make(on: Stage) -> str:
    """The mpiexec of one MPI, and the library of another."""
    for family, library in (("prrte", "MPICH 5.0.2"), ("hydra", "Open MPI 5.0.11")):
        try:
            launch.check_match(launch.Launcher("/opt/mpi/bin/mpiexec", family, "1"), library)  # type: ignore[arg-type]
        except CannotRun as error:
            if "of another make" in str(error):
                continue
        return f"{family} was taken for the launcher of {library}"
    return ""


def surveyed(lab: cluster.Lab) -> Survey:
    """What every host of the lab has."""
    return survey(partial(_started, lab), lab.config.members)


def reached(lab: cluster.Lab, *fabrics: Fabric, hosts: tuple[str, ...] = ()) -> Reach:
    """Whether the hosts of the lab reach each other over these fabrics."""
    wanted = [(fabric, hosts or lab.hosts) for fabric in fabrics]
    return check(wanted, partial(_started, lab))


def _started(lab: cluster.Lab, hosts: Any, program: Any) -> list[str]:
    return command(lab, tuple(hosts), list(program))


def _docker(on: Stage) -> str:
    """An address that all hosts have: not usable where it is defined, and not reachable."""
    definition = parse('[fabrics.inner]\ncidr = "172.17.0.0/16"', "planted")[0]
    found = defined(definition, on.broken.hosts, surveyed(on.broken).addresses)
    if "h0 and h1 both have 172.17.0.1" not in found.unusable:
        return f"defined: {found}"
    bridges = Fabric("docker0", "tcp", on.broken.hosts, dict.fromkeys(on.broken.hosts, ("docker0",)))
    why = reached(on.broken, bridges).unreachable.get("docker0", "reached")
    return "" if why.startswith("h0 and h1 both have 172.17.0.1") else why


def _not_offered(on: Stage) -> str:
    """The same bridge, as discovery on a host sees it."""
    code = "import json; from fabrics.discover import discover; print(json.dumps([f.as_dict() for f in discover()]))"
    process = subprocess.run(
        on.broken.enter("h1", [sys.executable, "-c", code]),
        capture_output=True, text=True, timeout=DEADLINE_S, check=True, cwd=ROOT,
    )  # fmt: skip
    offered = [fabric for fabric in json.loads(process.stdout) if "docker0" in str(fabric["devices"])]
    return "" if all(fabric["unusable"] for fabric in offered) else f"offered: {offered}"


def _no_route(on: Stage) -> str:
    """One fabric that ends before one of three hosts: it has failed, the other is measured, and the run says so."""
    number = len(list(on.folder.iterdir()))
    plan, folder = on.folder / f"{number}.toml", on.folder / f"run-{number}"
    plan.write_text(PLAN)
    names = ("--fabric", "eth2g5", "--fabric", "eth10g", "--lab", on.broken.name)
    done = jobs.fabricbench("run", "--plan", str(plan), *names, "-o", str(folder))
    if done.code != 4:
        return f"exit {done.code}: {done.err}"
    records = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    found = {(r["benchmark"], r["fabric"]): (r["status"], r["reason"]) for r in records}
    lost = [found.get((name, "eth10g"), ("absent", "")) for name in ("latency", "barrier")]
    kept = [found.get((name, "eth2g5"), ("absent", ""))[0] for name in ("latency", "barrier")]
    reach = json.loads((folder / "run.json").read_text())["reachability"]
    reason = "no route h0 -> h2 on eth10g (connection timed out)"
    whole = all(status == "failed" and why.startswith(reason) for status, why in lost) and kept == ["ok", "ok"]
    return "" if whole and list(reach["unreachable"]) == ["eth10g"] else f"{found} {reach}"


def _beside_a_fifth(on: Stage) -> str:
    """Foreign traffic of a fifth of the rate beside the probe."""
    with foreign(on.whole, "eth2g5", 0.5e9):
        return _verdict(proved(on.whole, "eth2g5", recipe_of(on.whole, "eth2g5")), "proved")


def _drowned(on: Stage) -> str:
    """Foreign traffic that takes all that it gets: nothing can be said, and nothing is disproved."""
    with foreign(on.whole, "eth2g5"):
        found = proved(on.whole, "eth2g5", recipe_of(on.whole, "eth2g5"))
    return _verdict(found, "unknown", "eth2g5 on h")


FAULTS: Mapping[str, Callable[[Stage], str]] = {
    "no setting, two fabrics": _striped,
    "no boot id of its own": _same_node,
    "management": _management,
    "UCX_NET_DEVICES=nope0": partial(_settings, {"UCX_NET_DEVICES": "nope0"}),
    "FI_PROVIDER under ucx": partial(_settings, {"FI_PROVIDER": "tcp"}),
    "btl_tcp_if_include=nope0": _btl,
    "mpiexec of another make": _other_make,
    "docker0 defined": _docker,
    "docker0 discovered": _not_offered,
    "one fabric without a route": _no_route,
    "a fifth of foreign traffic": _beside_a_fifth,
    "a payload below the noise": _drowned,
}
