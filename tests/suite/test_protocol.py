"""Events survive a noisy pipe; damage is noticed."""

from __future__ import annotations

import numpy as np

from suite.protocol import encode, pack, unpack
from suite.wire import unseal


def test_round_trip() -> None:
    event = {"event": "record", "x": [1, 2.5, None, "ä"], "nan": float("nan")}
    assert unseal(encode(event)) == {**event, "nan": None}


def test_log_and_damage_are_no_events() -> None:
    line = encode({"event": "start", "case": 1})
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    for damaged in (b"hello", b"", line[:-5], line.replace(b"1", b"2"), b"x" + line, b"@fb 00000000 {}", b"@fb "):
        assert unseal(damaged) is None


def test_samples_keep_shape_and_type() -> None:
    samples = {"time": np.arange(6, dtype="i8").reshape(2, 3), "none": np.zeros((0, 4)), "s": np.array([1.5])}
    back = unpack(pack(samples))
    for name, array in samples.items():
        assert back[name].dtype == array.dtype
        assert np.array_equal(back[name], array)
