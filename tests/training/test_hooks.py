from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from training.exchange import ways
from training.exchange.progress import completed
from training.hooks import SwitchedHook


def bucket(values: list[float]) -> Any:
    gradients = torch.tensor(values)
    return SimpleNamespace(buffer=lambda: gradients, parameters=lambda: [gradients, gradients], index=lambda: 3)


class TenTimes:
    def start(self, gradients: torch.Tensor, index: int) -> Any:
        return completed(gradients * 10 + index)

    def method(self) -> dict[str, Any]:
        return {}


def test_switch_chooses_between_exchange_and_untouched() -> None:
    switch = SwitchedHook()
    switch.clear(TenTimes())
    assert switch.hook(None, bucket([1.0, 2.0])).wait().tolist() == [13.0, 23.0]
    switch.clear(None)
    untouched = bucket([1.0, 2.0])
    future = switch.hook(None, untouched)
    assert future.done()
    assert future.wait() is untouched.buffer()


def test_what_is_ready_is_noted_with_its_time() -> None:
    switch = SwitchedHook()
    switch.hook(None, bucket([1.0, 2.0]))
    switch.hook(None, bucket([1.0]))
    assert switch.sizes == [(2, 2), (1, 2)]
    assert switch.ready_ns[0] < switch.ready_ns[1]
    switch.clear(None)
    assert switch.ready_ns == []


def test_average_is_the_sum_of_shares_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    shares_of_others = torch.tensor([2.0, 4.0]) / 4

    def all_reduce(tensor: torch.Tensor, async_op: bool) -> Any:
        assert async_op
        tensor += shares_of_others
        return SimpleNamespace(get_future=lambda: completed([tensor]))

    monkeypatch.setattr(ways, "dist", SimpleNamespace(get_world_size=lambda: 4, all_reduce=all_reduce))
    gradients = torch.tensor([2.0, 8.0])
    assert ways.average_over_ranks(gradients).wait() is gradients
    assert gradients.tolist() == [1.0, 3.0]


def test_rank_outside_the_group_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    outside = SimpleNamespace(get_world_size=lambda: 2, all_reduce=lambda tensor, async_op: None)
    monkeypatch.setattr(ways, "dist", outside)
    with pytest.raises(RuntimeError, match="is this rank in the group"):
        ways.average_over_ranks(torch.ones(2))
