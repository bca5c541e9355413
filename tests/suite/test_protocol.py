"""Events survive a noisy pipe; damage is noticed."""

from __future__ import annotations

import numpy as np

from suite.protocol import encode, pack, unpack
from suite.wire import Stream, unseal


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


def test_an_event_inside_another_ones_line_harms_neither() -> None:
    long, short = {"event": "record", "data": "x" * 1000}, {"event": "died", "rank": 1}
    line = encode(long)
    for cut in (1, 5, 13, 500, len(line) - 2):
        stream = Stream()
        got = stream.feed(b"\n" + line[:cut]) + stream.feed(b"\n" + encode(short)) + stream.feed(line[cut:])
        assert [item for item in got if isinstance(item, dict)] == [short, long], cut
    stream = Stream()
    got = stream.feed(line[:100] + b"\n" + encode(short) + line[100:200] + b"\n" + encode(short) + line[200:])
    assert [item for item in got if isinstance(item, dict)] == [short, short, long]


def test_a_stream_gives_whole_lines_and_at_its_end_the_rest() -> None:
    stream = Stream()
    assert stream.feed(b"one\ntw") == [b"one"]
    assert stream.feed(b"o\n\nthree") == [b"two"]
    assert stream.feed(b"") == [b"three"]
    assert stream.feed(b"") == []
