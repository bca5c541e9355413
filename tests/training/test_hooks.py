from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from training import hooks


def completed(value: Any) -> torch.futures.Future[Any]:
    future: torch.futures.Future[Any] = torch.futures.Future()
    future.set_result(value)
    return future


def bucket(values: list[float]) -> Any:
    gradients = torch.tensor(values)
    return SimpleNamespace(buffer=lambda: gradients)


def test_switch_chooses_between_exchange_and_untouched() -> None:
    switch = hooks.SwitchedHook(lambda gradients: completed(gradients * 10))
    assert switch.hook(None, bucket([1.0, 2.0])).wait().tolist() == [10.0, 20.0]
    switch.exchange = False
    untouched = bucket([1.0, 2.0])
    future = switch.hook(None, untouched)
    assert future.done()
    assert future.wait() is untouched.buffer()


def test_average_is_the_sum_of_shares_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    shares_of_others = torch.tensor([2.0, 4.0]) / 4

    def all_reduce(tensor: torch.Tensor, async_op: bool) -> Any:
        assert async_op
        tensor += shares_of_others
        return SimpleNamespace(get_future=lambda: completed([tensor]))

    monkeypatch.setattr(hooks, "dist", SimpleNamespace(get_world_size=lambda: 4, all_reduce=all_reduce))
    gradients = torch.tensor([2.0, 8.0])
    assert hooks.average_over_ranks(gradients).wait() is gradients
    assert gradients.tolist() == [1.0, 3.0]


def test_rank_outside_the_group_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    outside = SimpleNamespace(get_world_size=lambda: 2, all_reduce=lambda tensor, async_op: None)
    monkeypatch.setattr(hooks, "dist", outside)
    with pytest.raises(RuntimeError, match="is this rank in the group"):
        hooks.average_over_ranks(torch.ones(2))
