from __future__ import annotations

import pytest

from microbench.record import Metric, Record
from reports.summary import IDENTITY, basis, summarise
from tests.reports.folder import Folder, metric

US = 1e-6


def _launches(values: list[float | None], **more: object) -> Folder:
    f = Folder()
    for launch, value in enumerate(values, 1):
        f.add("latency", "eth10g", 8, launch=launch, metrics={"time": metric(value, n=100, note="")}, **more)  # type: ignore[arg-type]
    return f


def test_one_launch_keeps_its_own_interval_and_says_so() -> None:
    (s,) = summarise(_launches([10 * US]).records)
    got = s.metrics["time"]
    assert (got.value, got.low, got.high) == pytest.approx((10 * US, 9.9 * US, 10.1 * US))
    assert got.n == 100
    assert got.note == "within one launch"
    assert s.ends("time") == (got.low, got.high)
    assert (s.launches, s.attempted) == (1, 1)


def test_one_launch_without_an_interval_keeps_the_reason() -> None:
    f = Folder()
    f.add("latency", "shm", 8, metrics={"time": Metric(US, "s", 4, note="n=4 < 6"), "x": Metric(1.0, "1", 4)})
    (s,) = summarise(f.records)
    assert s.metrics["time"].note == "n=4 < 6"
    assert s.metrics["x"].note == "no interval"
    assert s.ends("time") is None


@pytest.mark.parametrize("count", [2, 3, 5])
def test_few_launches_have_a_range_and_no_interval(count: int) -> None:
    values = [10 * US, 14 * US, 11 * US, 12 * US, 13 * US][:count]
    (s,) = summarise(_launches(list(values)).records)
    got, spread = s.metrics["time"], s.spread["time"]
    assert (got.low, got.high) == (None, None)
    assert got.note == f"range of {count} launches" == basis(count)
    assert got.n == 100 * count
    assert (spread.low, spread.high, spread.launches) == (10 * US, 14 * US, count)
    assert spread.relative == pytest.approx(4 * US / got.value)
    assert s.ends("time") == (10 * US, 14 * US)


def test_the_value_is_the_median_of_launches_not_of_samples() -> None:
    f = Folder()
    for launch, (value, n) in enumerate([(1.0, 9000), (2.0, 30), (5.0, 30)], 1):
        f.add("latency", "shm", 8, launch=launch, metrics={"time": metric(value, n=n)})
    (s,) = summarise(f.records)
    assert s.value("time") == 2.0


def test_six_launches_have_the_exact_interval() -> None:
    (s,) = summarise(_launches([3.0, 1.0, 6.0, 2.0, 5.0, 4.0]).records)
    got = s.metrics["time"]
    assert (got.value, got.low, got.high) == (3.5, 1.0, 6.0), "n = 6: the 95 % interval is [x(1), x(6)]"
    assert got.note == "over 6 launches"


def test_nine_launches_leave_out_the_extremes() -> None:
    (s,) = summarise(_launches([float(v) for v in range(1, 10)]).records)
    assert (s.metrics["time"].low, s.metrics["time"].high) == (2.0, 8.0)
    assert s.ends("time") == (2.0, 8.0)


def test_a_launch_without_a_value_does_not_count() -> None:
    (s,) = summarise(_launches([1.0, None, 3.0]).records)
    assert s.value("time") == 2.0
    assert s.spread["time"].launches == 2
    assert s.metrics["time"].n == 200


def test_a_percentile_that_some_launches_cannot_tell_is_not_told() -> None:
    f = Folder()
    for launch, p99 in ((1, Metric(3e-6, "s", 1000, 2e-6, 4e-6)), (2, Metric(None, "s", 10, note="n=10 < 368"))):
        f.add("latency", "shm", 8, launch=launch, metrics={"time_p99": p99})
    (s,) = summarise(f.records)
    assert s.value("time_p99") is None
    assert s.metrics["time_p99"].note == "n/a in 1 of 2 launches: n=10 < 368"


def test_no_value_anywhere_keeps_the_reason() -> None:
    f = Folder()
    for launch in (1, 2):
        f.add("latency", "shm", 8, launch=launch, metrics={"time_p99": Metric(None, "s", 200, note="n=200 < 368")})
    (s,) = summarise(f.records)
    assert s.metrics["time_p99"] == Metric(None, "s", 400, note="n=200 < 368")
    assert "time_p99" not in s.spread


def test_ok_if_any_launch_is_and_the_rest_is_counted() -> None:
    f = _launches([1.0, 2.0])
    f.add("latency", "eth10g", 8, launch=3, status="timeout", reason="rank 1 did not arrive")
    (s,) = summarise(f.records)
    assert (s.status, s.reason, s.launches, s.attempted) == ("ok", "", 2, 3)


@pytest.mark.parametrize(
    ("statuses", "told"),
    [(("skipped", "timeout"), "timeout"), (("timeout", "failed"), "failed"), (("failed", "invalid"), "invalid"),
     (("unsupported", "skipped"), "unsupported")],
)  # fmt: skip
def test_the_most_telling_status_stands(statuses: tuple[str, ...], told: str) -> None:
    f = Folder()
    for launch, status in enumerate(statuses, 1):
        f.add("latency", "shm", 8, launch=launch, status=status, reason=f"why {status}")
    (s,) = summarise(f.records)
    assert (s.status, s.reason, s.launches) == (told, f"why {told}", 0)
    assert not s.published


def test_a_resumed_line_replaces_the_earlier_one() -> None:
    f = Folder()
    f.add("latency", "shm", 8, status="timeout", reason="late")
    f.add("latency", "shm", 8, metrics={"time": metric(US)})
    (s,) = summarise(f.records)
    assert (s.status, s.attempted) == ("ok", 1)


def test_disproved_launches_do_not_count_beside_others() -> None:
    f = _launches([1.0, 2.0])
    f.add("latency", "eth10g", 8, launch=3, proof="disproved", metrics={"time": metric(50.0)})
    (s,) = summarise(f.records)
    assert (s.value("time"), s.proof, s.published, s.launches) == (1.5, "proved", True, 2)


def test_disproved_alone_is_kept_and_not_published() -> None:
    (s,) = summarise(_launches([1.0], proof="disproved").records)
    assert (s.value("time"), s.proof, s.published) == (1.0, "disproved", False)


def test_proved_and_unknown_make_unknown() -> None:
    f = _launches([1.0])
    f.add("latency", "eth10g", 8, launch=2, proof="unknown", metrics={"time": metric(2.0)})
    (s,) = summarise(f.records)
    assert s.proof == "unknown"


def test_marks_of_any_launch_stay() -> None:
    f = _launches([1.0, 2.0])
    f.records[1] = Record(**{**vars(f.records[1]), "oversubscribed": True})
    (s,) = summarise(f.records)
    assert s.oversubscribed
    assert s.emulated


def test_every_identifying_field_of_a_record_is_in_its_summary() -> None:
    left_out = {"status", "reason", "launch", "metrics", "method", "validation", "counters", "samples", "schema"}
    assert set(IDENTITY) == set(Record.__dataclass_fields__) - left_out
