"""Synthetic run folders with planted numbers."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from microbench.record import Metric, Record

MIB = 1 << 20
RATES = {"eth2g5": 2.5e9, "eth10g": 10e9}
LAB_HOSTS = ("h0", "h1")
ENVIRONMENT = {
    "hostname": "node1", "kernel": "Linux 6.18.0", "cpu": "Example CPU (R) 2.0 GHz", "cores": 2,
    "memory_bytes": 8 * 2**30, "python": "3.11.4", "mpi": "MPICH 5.0.2", "mpiexec": "/usr/bin/mpiexec",
    "packages": {"numpy": "2.4.6", "mpi4py": "4.1.2"}, "load_average": [0.1, 0.2, 0.3],
    "removed_variables": {"UCX_TLS": "all"},
}  # fmt: skip
METHOD = {"sync": "barrier", "pages": "small", "clock": "CLOCK_MONOTONIC", "stop_reason": "count", "seed": 1}


def metric(value: float | None, unit: str = "s", n: int = 1000, half: float | None = 0.01, **more: Any) -> Metric:
    """A metric with an interval of +-``half`` of its value."""
    known = value is not None and half is not None
    low, high = (value * (1 - half), value * (1 + half)) if known else (None, None)
    return Metric(value, unit, n, low, high, **more)


def fabrics() -> list[dict[str, Any]]:
    """Shared memory, loopback, the two emulated networks, and one that is unusable."""
    plain = {"devices": {}, "rate_bits_per_s": None, "emulated": False, "lab": "", "note": "", "unusable": ""}
    shm = {"name": "shm", "kind": "shm", "hosts": ["localhost"], **plain}
    loopback = {"name": "tcp-lo", "kind": "tcp", "hosts": ["localhost"], **plain, "devices": {"localhost": ["lo"]}}
    lab = [{"name": name, "kind": "tcp", "hosts": [*LAB_HOSTS, "d0", "d1"], **plain, "rate_bits_per_s": rate,
            "devices": {host: [name] for host in (*LAB_HOSTS, "d0", "d1")}, "emulated": True, "lab": "lab",
            "note": "tbf, burst 312 KiB"} for name, rate in RATES.items()]  # fmt: skip
    roce = {"name": "roce", "kind": "tcp", "hosts": [], **plain, "unusable": "no RDMA device"}
    return [shm, loopback, *lab, roce]


def proof(fabric: str, verdict: str = "proved", detail: str = "") -> dict[str, Any]:
    """A probe of 64 MiB from h0 to h1; if disproved, the bytes were on the management network."""
    used = fabric if verdict == "proved" else "mgmt"
    deltas = {"h0": {"mgmt": [900, 1200], "eth2g5": [0, 0], "eth10g": [0, 0], used: [410_000, 67_900_000]},
              "h1": {"mgmt": [1200, 900], "eth2g5": [0, 0], "eth10g": [0, 0], used: [67_900_000, 410_000]}}  # fmt: skip
    said = detail or ("the payload crossed the fabric's devices" if verdict == "proved" else "mgmt rose instead")
    return {"verdict": verdict, "detail": said, "payload_bytes": 64 * MIB, "deltas": deltas, "background": {}}


@dataclass
class Folder:
    """A run to be written; ``records`` and ``run`` may be changed before."""

    launches: int = 1
    records: list[Record] = field(default_factory=list)
    jobs: list[dict[str, Any]] = field(default_factory=list)
    run: dict[str, Any] = field(default_factory=dict)
    tail: bytes = b""

    def add(self, benchmark: str, fabric: str, nbytes: int | None = None, *, launch: int = 1, ranks: int = 2,
            status: str = "ok", **more: Any) -> Record:  # fmt: skip
        """Add one record; its id is that of a case."""
        more.setdefault("backend", "mpi")
        more.setdefault("recipe", "pure")
        more.setdefault("proof", "unknown" if fabric == "tcp-lo" else "proved")
        more.setdefault("hosts", LAB_HOSTS if fabric in RATES else ("localhost",) * ranks)
        more.setdefault("method", METHOD)
        size = "" if nbytes is None else f"{nbytes}B"
        parts = (benchmark, fabric, more["recipe"], more["backend"], more.get("algorithm", ""), more.get("mode", ""),
                 more.get("workload", ""), more.get("dtype", ""), size, f"{ranks}r")  # fmt: skip
        record = Record("/".join(p for p in parts if p), benchmark, fabric, status, nbytes=nbytes, ranks=ranks,
                        launch=launch, emulated=fabric in RATES, mpi="MPICH 5.0.2", thread_level="single",
                        **more)  # type: ignore[arg-type]  # fmt: skip
        self.records.append(record)
        return record

    def job(self, fabric: str, launch: int = 1, **more: Any) -> None:
        """Add one MPI job with its proof."""
        base = {"job": len(self.jobs) + 1, "launch": launch, "fabric": fabric, "hosts": list(LAB_HOSTS),
                "recipe": {"flavour": "pure", "backend": "mpich", "env": {"UCX_NET_DEVICES": fabric}},
                "roles": ["host", "host"], "cpus": [[0], [1]], "thread_level": "single", "mpi": "MPICH 5.0.2",
                "proof": proof(fabric), "status": "ok", "reason": ""}  # fmt: skip
        self.jobs.append(base | more)

    def description(self) -> dict[str, Any]:
        """What goes into ``run.json``."""
        return {"schema": 1, "fabricbench": "0.1.0", "id": "6f1c0000-0000-4000-8000-000000000001",
                "started": "2026-03-01T10:00:00+00:00", "finished": "2026-03-01T10:12:03+00:00",
                "command": ["fabricbench", "run", "--quick"],
                "plan": {"tier": "quick", "launches": self.launches, "jobs": []}, "environment": ENVIRONMENT,
                "fabrics": fabrics(), "jobs": self.jobs, **self.run}  # fmt: skip

    def write(self, directory: Path) -> Path:
        """Write the folder; ``tail`` is appended to the records as it is."""
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "run.json").write_text(json.dumps(self.description()), "utf-8")
        lines = "".join(record.to_json() + "\n" for record in self.records)
        (directory / "records.jsonl").write_bytes(lines.encode() + self.tail)
        return directory


SIZES = (0, 8, 64 * 1024, 4 * MIB)
ALPHA_S = {"shm": 0.4e-6, "tcp-lo": 9e-6, "eth2g5": 62e-6, "eth10g": 58e-6}
WIRE = {"shm": 9e9, "tcp-lo": 3e9, "eth2g5": 290e6, "eth10g": 1148e6}
MODELS = {"resnet50 64px batch 16": ([8_200_000, 31_500_000, 26_300_000, 26_600_000, 9_628_128], 0.850),
          "resnet20 32px batch 32": ([1_078_888], 0.110)}  # fmt: skip
STEP_S = {("resnet50 64px batch 16", "eth2g5"): 1.130, ("resnet50 64px batch 16", "eth10g"): 1.000,
          ("resnet20 32px batch 32", "eth2g5"): 0.1210, ("resnet20 32px batch 32", "eth10g"): 0.1206}  # fmt: skip


def point_to_point(f: Folder, fabric: str, launch: int, drift: float = 1.0) -> None:
    """Latency, bandwidth and bibw after t = alpha + m / r."""
    for m in SIZES:
        t = (ALPHA_S[fabric] + m / WIRE[fabric]) * drift
        f.add("latency", fabric, m, launch=launch, dtype="int8", direction="ping-pong",
              metrics={"time": metric(t), "time_p99": metric(1.4 * t, half=0.05)})  # fmt: skip
        for benchmark, ways in (("bandwidth", 1), ("bibw", 2)):
            window = 64 * m / WIRE[fabric] * drift + ALPHA_S[fabric]
            got = (metric(ways * 64 * m / window, "bytes/s", 100, better="higher") if m else
                   metric(None, "bytes/s", 100, None, better="higher", note="0 B carry no bandwidth"))  # fmt: skip
            f.add(benchmark, fabric, m, launch=launch, dtype="int8", direction="uni" if ways == 1 else "bi",
                  metrics={"bandwidth": got, "time": metric(window, n=100)})  # fmt: skip


def collectives(f: Folder, fabric: str, launch: int, drift: float = 1.0) -> None:
    """Allreduce and broadcast at some sizes, and a barrier."""
    for ranks in (2,) if fabric in RATES else (2, 3):
        for m in (8, 64 * 1024, 4 * MIB, 64 * MIB):
            t = (2 * ALPHA_S[fabric] + 1.1 * m / WIRE[fabric]) * drift
            n = 1000 if m < MIB else 200
            tail = metric(1.6 * t, n=n) if n >= 368 else metric(None, "s", n, None, note="n=200 < 368")
            busbw = metric(2 * (ranks - 1) / ranks * m / t, "bytes/s", n, better="higher")
            f.add("allreduce", fabric, m, launch=launch, ranks=ranks, dtype="float32",
                  oversubscribed=ranks > 2, reported_ranks=tuple(range(ranks)),
                  metrics={"time": metric(t, n=n), "time_p99": tail, "busbw": busbw})  # fmt: skip
        both = {"time": metric(3 * ALPHA_S[fabric] * drift), "time_p99": metric(5 * ALPHA_S[fabric])}
        f.add("barrier", fabric, launch=launch, ranks=ranks, oversubscribed=ranks > 2, metrics=both)


def training(f: Folder, launch: int, drift: float = 1.0) -> None:
    """Two models on the two networks; none over shared memory."""
    for model, (buckets, noop) in MODELS.items():
        for fabric in RATES:
            step = STEP_S[model, fabric] * drift
            exposed = step - noop
            f.add("train", fabric, launch=launch, backend="gloo", workload=model, algorithm="ddp",
                  method={"sync": "MPI barrier before each step", "bucket_bytes": buckets, "stop_reason": "time"},
                  counters=proof(fabric, detail="an allreduce of 64 MiB crossed the fabric's devices"),
                  metrics={"step": metric(step, n=30, half=0.015), "step_noop": metric(noop * drift, n=30),
                           "exposed": metric(exposed, n=30, half=0.06),
                           "exposed_fraction": metric(exposed / step, "1", 30, 0.06),
                           "images_per_s": metric(32 / step, "images/s", 30, 0.015, better="higher")})  # fmt: skip
        f.add("train", "shm", launch=launch, backend="gloo", workload=model, algorithm="ddp", proof="unknown",
              status="unsupported", reason="gloo has no shared-memory transport")  # fmt: skip


def offload(f: Folder, launch: int, drift: float = 1.0) -> None:
    """Two sizes on both networks: a gain at 4 MiB, a loss at 64 KiB."""
    hosts, roles = ("h0", "h1", "d0", "d1"), ("host", "host", "dpu", "dpu")
    for fabric in RATES:
        for m, gain in ((64 * 1024, -0.2), (4 * MIB, 0.24)):
            pure = (ALPHA_S[fabric] * 4 + 2 * m / WIRE[fabric]) * drift
            modes = {"host": (pure, 0.28), "probes16": (pure, 0.44), "staged": (1.1 * pure, 0.92)}
            metrics = {"compute": metric(pure, n=30), "blocking.overall": metric(2 * pure, n=30)}
            for mode, (alone, hidden) in modes.items():
                exposed = alone * (1 - hidden)
                metrics |= {f"{mode}.pure": metric(alone, n=30), f"{mode}.overall": metric(pure + exposed, n=30),
                            f"{mode}.overlap": metric(hidden, "1", 30, 0.05),
                            f"{mode}.exposed": metric(exposed, n=30)}  # fmt: skip
            metrics["staged.dilation"] = metric(0.05, "1", 30, 0.2)
            metrics["staged.net_gain"] = metric(gain, "1", 30, 0.1 if gain > 0 else -0.1)
            where = {"hosts": hosts, "roles": roles, "placement": "split h0:0 h1:1 d0:1 d1:1", "reported_ranks": (0,)}
            f.add("offload_allreduce", fabric, m, launch=launch, ranks=4, dtype="float32", metrics=metrics, **where)


def lab_run(launches: int = 1) -> Folder:
    """A whole run over shared memory, loopback and the two emulated networks."""
    f = Folder(launches)
    for launch in range(1, launches + 1):
        drift = 1 + 0.01 * (launch - 1)
        for fabric in ALPHA_S:
            local = {} if fabric in RATES else {"hosts": ["localhost"] * 2, "proof": {
                "verdict": "proved" if fabric == "shm" else "unknown", "payload_bytes": 64 * MIB,
                "detail": "no interface rose" if fabric == "shm" else "no counters", "deltas": {
                    "localhost": {"lo": [0, 0], "eth0": [2_000, 3_000]}} if fabric == "shm" else {}}}  # fmt: skip
            f.job(fabric, launch, **local)
            point_to_point(f, fabric, launch, drift)
            collectives(f, fabric, launch, drift)
        for fabric in RATES:
            f.job(fabric, launch, hosts=["h0", "h1", "d0", "d1"], roles=["host", "host", "dpu", "dpu"],
                  cpus=[[0], [1], [1], [1]])  # fmt: skip
        training(f, launch, drift)
        offload(f, launch, drift)
    return f
