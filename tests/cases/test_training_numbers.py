"""Numbers of training that mislead: unlike workloads side by side, and a wait that does not wait."""

from __future__ import annotations

import json
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from reports.render import render
from tests.reports import steps
from tests.reports.folder import Folder
from training.setup import Setup

LATE_S = 0.2


def test_other_data_makes_another_workload() -> None:
    """Synthetic images and real ones scaled 1.97 and 1.45 times: a case's key says which it had, and how augmented."""
    options: tuple[dict[str, Any], ...] = ({}, {"data": "cifar10:/data"}, {"data": "folder:/data"}, {"augment": True},
                                           {"dtype": "bfloat16"}, {"scaling": "strong"})  # fmt: skip
    labels = [Setup.of({"model": "resnet20", "batch": 32} | more).label for more in options]
    assert len(set(labels)) == len(labels)
    assert labels[0] == "resnet20 32px batch 32", "synthetic is what nobody has to ask for"


def test_unlike_workloads_are_not_set_beside_each_other(tmp_path: Path) -> None:
    f = Folder()
    steps.add(f, "eth2g5", {"gloo": 1.2}, workload="resnet20 32px batch 32, cifar10")
    steps.add(f, "eth10g", {"gloo": 1.0}, workload="resnet20 32px batch 32")
    text = render(f.write(tmp_path))
    assert "No training ran on both." in text
    assert not [
        x for x in json.loads(render(tmp_path, "json"))["findings"] if x["chapter"] == 7 and "step" in x["values"]
    ]


def test_the_step_waits_for_the_exchange_and_what_came_is_right() -> None:
    """A handle that comes back at once is not the end: over gloo the wait lasts until the latest rank has come.

    Of NCCL it is only the stream that waits, so that a clock around it tells too little; training there is refused.
    """
    import torch
    import torch.distributed as dist

    store, ready = dist.HashStore(), threading.Barrier(2)
    times: dict[str, float] = {}

    def member(rank: int) -> None:
        options = dist.ProcessGroupGloo._Options()
        options._devices = [dist.ProcessGroupGloo.create_device(interface="lo")]
        options._timeout = timedelta(seconds=20)
        group = dist.ProcessGroupGloo(store, rank, 2, options)
        gradients = torch.full((1000,), float(rank + 1))
        ready.wait(20)
        if rank == 1:
            time.sleep(LATE_S)
        start = time.perf_counter()
        future = group.allreduce([gradients]).get_future()
        posted = time.perf_counter()
        future.wait()
        waited = time.perf_counter()
        assert gradients.eq(3.0).all(), "checked where the wait says that it is done"
        times.update({f"post{rank}": posted - start, f"wait{rank}": waited - posted})

    members = [threading.Thread(target=member, args=(rank,), daemon=True) for rank in (0, 1)]
    for each in members:
        each.start()
    for each in members:
        each.join(30)
    assert set(times) == {"post0", "wait0", "post1", "wait1"}
    assert times["post0"] < LATE_S / 2 < times["wait0"], "a clock around the post alone would tell too little"


@pytest.mark.parametrize("exchange", ["nccl", "nccl+64M"])
def test_what_only_a_stream_waits_for_is_timed_once_the_device_has_done_it(
    exchange: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    from training.replica import Replica

    class Waiting:
        _device = Setup.of({"model": "resnet20", "exchanges": [exchange]}).device

    waited: list[str] = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: waited.append(Waiting._device))
    at: Any = Waiting()
    before = time.perf_counter_ns()
    assert Replica._now(at) >= before
    assert waited == ["cuda"]
