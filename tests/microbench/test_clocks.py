"""Clock models on planted clocks: known offsets, drifts and ping-pongs give back the truth within their bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from microbench.clocks import (
    IDENTITY,
    ClockModel,
    Point,
    fit,
    hca3_rounds,
    joined,
    model_of,
    observe,
    offset_bounds,
    remembered,
    timeline,
    why_not,
)

START = 5_000_000_000_000  # true ns
SECOND = 1_000_000_000


@dataclass(frozen=True)
class Clock:
    """A fake clock that is ``ahead_ns`` ahead at START and gains ``drift`` s/s."""

    ahead_ns: int = 0
    drift: float = 0.0

    def at(self, true: np.ndarray) -> np.ndarray:
        return true + self.ahead_ns + np.rint(self.drift * (true - START)).astype("i8")

    def model(self) -> ClockModel:
        """The exact model."""
        return ClockModel(START + self.ahead_ns, self.ahead_ns, self.drift / (1 + self.drift), 0.0)


FAST = Clock(5 * SECOND, 1e-4)


def pingpongs(
    rng: np.random.Generator, client: Clock, server: Clock, begin: int, n: int = 100
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sent and received on the client's clock, in between on the server's: ways of at least 1 us, each of its own."""
    there, back = (1000 + rng.exponential(500, n).astype("i8") for _ in range(2))
    sent = begin + np.cumsum(there + back + 3000)
    return client.at(sent), server.at(sent + there), client.at(sent + there + back)


def learn(rng: np.random.Generator, clock: Clock, server: Clock, teacher: ClockModel, begin: int) -> ClockModel:
    """What a rank learns from five points, 25 ms apart, of a teacher that knows the global time by ``teacher``."""
    points: list[Point] = []
    for k in range(5):
        sent, reference, received = pingpongs(rng, clock, server, begin + k * 25_000_000)
        seen = observe(IDENTITY, sent, teacher.to_global(reference), received)
        points.append(Point(seen.at_local_ns, seen.offset_ns, seen.bound_ns + teacher.bound_ns))
    return model_of(points, points)


def test_bounds_are_the_tightest_of_all_pingpongs() -> None:
    sent, reference, received = np.array([0, 100]), np.array([-80, 30]), np.array([40, 140])
    assert offset_bounds(sent, reference, received) == (80, 110)


@pytest.mark.parametrize("ahead_ns", [0, 5 * SECOND, -7 * SECOND, 3 * 10**17 + 1])
def test_a_planted_offset_is_within_its_bound(ahead_ns: int) -> None:
    rng = np.random.default_rng(1)
    seen = observe(IDENTITY, *pingpongs(rng, Clock(ahead_ns), Clock(), START))
    assert abs(seen.offset_ns - ahead_ns) <= seen.bound_ns
    assert 1000 <= seen.bound_ns < 1200  # the ways there and back are 1 us at least


def test_a_known_drift_does_not_blur_the_bounds() -> None:
    rng = np.random.default_rng(2)
    clock = Clock(0, 1e-3)  # 100 ping-pongs of 6 us: the offset moves by 0.6 us meanwhile
    pings = pingpongs(rng, clock, Clock(), START)
    blurred, sharp = observe(IDENTITY, *pings), observe(clock.model(), *pings)
    truth = clock.model().ahead(sharp.at_local_ns)
    assert abs(sharp.offset_ns - truth) <= sharp.bound_ns
    assert 1000 <= sharp.bound_ns < 1200
    assert blurred.bound_ns < 950  # too good to be true


def test_a_model_maps_there_and_back_to_the_ns() -> None:
    true = START + np.arange(0, 100 * SECOND, SECOND // 3)
    for clock in (FAST, Clock(-(10**16) - 1, -2e-5), Clock()):
        assert np.abs(clock.model().to_global(clock.at(true)) - true).max() <= 1


def test_the_words_of_the_loop_lead_from_global_to_local_time() -> None:
    true = START + 50 * SECOND
    for clock in (FAST, Clock(-(10**16), 3e-5), Clock()):
        words = clock.model().words()
        assert (words.dtype, words.nbytes) == (np.dtype("i8"), 24)
        epoch, offset, drift = int(words[0]), int(words[1]), float(words.view("f8")[2])
        assert abs(true + offset + int(drift * (true - epoch)) - int(clock.at(np.array(true)))) <= 2


def test_a_moved_model_keeps_its_drift() -> None:
    moved = FAST.model().moved(7, 99, 3.0)
    assert moved == ClockModel(99, 7, FAST.model().drift, 3.0)
    assert moved.ahead(99) == 7


def line(span_ns: int, n: int, drift: float, bound_ns: float, noise_ns: float = 0.0) -> tuple[float, float]:
    at = START + np.linspace(0, span_ns, n).astype("i8")
    offsets = (5 * SECOND + np.rint(drift * (at - START) + np.random.default_rng(3).normal(0, noise_ns, n))).astype(
        "i8"
    )
    return fit(at, offsets, np.full(n, bound_ns))


def test_a_drift_is_fitted() -> None:
    drift, error = line(100 * SECOND, 20, 1e-4, 1000.0)
    assert drift == pytest.approx(1e-4, abs=1e-9)
    assert error < 1e-8


def test_points_too_close_in_time_for_their_bounds_tell_no_drift() -> None:
    assert line(SECOND // 1000, 4, 1e-4, 1000.0)[0] == 0.0
    assert line(SECOND, 4, 1e-4, 1000.0)[0] == pytest.approx(1e-4, rel=0.01)
    assert fit(np.array([START]), np.array([7]), np.array([1.0])) == (0.0, np.inf)
    assert fit(np.array([START, START]), np.array([7, 9]), np.array([1.0, 1.0])) == (0.0, np.inf)


def test_points_that_agree_better_than_their_bounds_tell_a_drift_sooner() -> None:
    assert line(SECOND // 10, 5, 1e-5, 10_000.0, noise_ns=50)[0] == pytest.approx(1e-5, rel=0.2)
    assert line(SECOND // 10, 4, 1e-5, 10_000.0, noise_ns=50)[0] == 0.0  # too few to tell how well they agree
    assert line(SECOND // 10, 5, 1e-7, 10_000.0, noise_ns=50)[0] == 0.0


def test_noise_is_seldom_taken_for_a_drift() -> None:
    rng = np.random.default_rng(4)
    at = START + np.arange(20) * SECOND
    drifts = [fit(at, rng.normal(0, 100, 20).astype("i8"), np.full(20, 5000.0))[0] for _ in range(400)]
    assert np.count_nonzero(drifts) <= 12
    assert np.abs(drifts).max() < 2e-8


def test_a_worse_point_counts_less() -> None:
    at, offsets = START + np.array([0, 1, 2]) * SECOND, np.array([0, 100_000, 900_000])
    assert fit(at, offsets, np.array([10.0, 10.0, 1e6]))[0] == pytest.approx(1e-4, rel=0.01)


def test_what_is_remembered_is_recent_and_not_too_much() -> None:
    points = [Point(START + k * SECOND // 10, 0, 1.0) for k in range(51)]
    kept = remembered(points)
    assert (len(kept), kept[0], kept[-1]) == (26, points[0], points[-1])
    assert remembered(points[:50]) == points[:50]
    old = [Point(START - 61 * SECOND, 0, 1.0)]
    assert remembered([*old, points[0]]) == points[:1]


@pytest.mark.parametrize("n", range(1, 66))
def test_everyone_learns_once_and_from_one_that_knows(n: int) -> None:
    knows, rounds = {0}, hca3_rounds(n)
    for pairs in rounds:
        busy = [rank for pair in pairs for rank in pair]
        assert len(busy) == len(set(busy))  # a round's pairs talk at the same time
        assert {teacher for teacher, _ in pairs} <= knows
        learners = {learner for _, learner in pairs}
        assert not learners & knows
        knows |= learners
    assert knows == set(range(n))
    assert len(rounds) == (n - 1).bit_length()


def test_the_order_is_hca3s() -> None:
    assert hca3_rounds(1) == ()
    assert hca3_rounds(6) == (((0, 2),), ((0, 1), (2, 3)), ((0, 4), (1, 5)))


@pytest.mark.parametrize("ranks", [2, 3, 5, 8])
def test_models_learned_over_the_tree_are_within_their_bounds(ranks: int) -> None:
    rng = np.random.default_rng(ranks)
    clocks = [Clock(), *(Clock(int(rng.normal(0, 1e10)), rng.normal(0, 5e-5)) for _ in range(ranks - 1))]
    models = {0: IDENTITY}
    for k, pairs in enumerate(hca3_rounds(ranks)):
        for teacher, rank in pairs:
            begin = START + k * SECOND // 4
            models[rank] = learn(rng, clocks[rank], clocks[teacher], models[teacher], begin)
    true = START + np.arange(1_000_000_000, 2_000_000_000, SECOND // 10)
    for rank, model in models.items():
        off = model.to_global(clocks[rank].at(true)) - true
        assert np.abs(off).max() <= model.bound_ns + 4000  # and 4 us of what a drift within its error does in 2 s
        assert model.bound_ns < 1300 * len(hca3_rounds(ranks))
        assert model.drift == pytest.approx(clocks[rank].drift, abs=3e-6)


def planted(n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """True starts and ends of two ranks: rank 1 begins 2 ms after rank 0, both end 3 ms after rank 0's start."""
    begin = START + SECOND + np.arange(n) * 10_000_000
    starts = np.array([begin, begin + 2_000_000])
    return starts, np.array([begin + 3_000_000, begin + 2_990_000])


def test_a_clock_5_s_ahead_and_100_ppm_fast_leaves_the_timeline_unchanged() -> None:
    rng = np.random.default_rng(6)
    model = learn(rng, FAST, Clock(), IDENTITY, START)
    model = model.moved(*_anchored(rng, model, START + SECOND))
    starts, ends = planted()
    want = timeline(starts, ends, [IDENTITY, IDENTITY])
    got = timeline(*(np.array([x[0], FAST.at(x[1])]) for x in (starts, ends)), [IDENTITY, model])
    for name in ("makespan_ns", "last_exit_ns", "entry_skew_ns", "starts"):
        off = np.abs(getattr(got, name) - getattr(want, name)).max()
        assert off <= model.bound_ns + 5000, name  # of 2 s that follow, at a drift known to some ppm
    assert got.starts.argmax(axis=0).tolist() == [1] * 200  # and the skew is rank 1's


def _anchored(rng: np.random.Generator, model: ClockModel, begin: int) -> tuple[int, int, float]:
    seen = observe(model, *pingpongs(rng, FAST, Clock(), begin, 20))
    assert abs(seen.offset_ns - model.ahead(seen.at_local_ns)) < 5000  # 1 s later the prediction still holds
    return seen.offset_ns, seen.at_local_ns, seen.bound_ns


def test_what_the_timeline_tells() -> None:
    line = timeline(*planted(), [IDENTITY, IDENTITY])
    assert set(line.makespan_ns.tolist()) == {3_000_000}
    assert set(line.last_exit_ns.tolist()) == {1_000_000}
    assert set(line.entry_skew_ns.tolist()) == {2_000_000}
    twice = joined([line, line])
    assert (twice.makespan_ns.shape, twice.starts.shape) == ((400,), (2, 400))
    assert np.array_equal(twice.starts[:, 200:], line.starts)


def test_drift_is_refined_over_a_run() -> None:
    rng = np.random.default_rng(8)
    points, model, errors = [], IDENTITY, []
    for k in range(30):
        seen = observe(model, *pingpongs(rng, FAST, Clock(), START + k * SECOND, 20))
        errors.append(abs(seen.offset_ns - model.ahead(seen.at_local_ns)))
        points = remembered([*points, seen])
        model = model_of(points, [seen], model if k else None)
    assert model.drift == pytest.approx(FAST.model().drift, abs=1e-8)
    assert max(errors[3:]) < 1000  # of 100 us that the clock gains from one to the next


def test_a_disturbed_point_is_no_anchor() -> None:
    points = [Point(START + k * SECOND // 4, 0, 1000.0) for k in range(8)]
    before = model_of(points, points[-1:])
    at = points[-1].at_local_ns + SECOND
    bad, good = Point(at, 7000, 9000.0), Point(at, 300, 1500.0)
    kept = model_of([*points, bad], [bad], before)
    assert (kept.epoch_ns, kept.ahead(at)) == (at, 0)
    assert 2000 <= kept.bound_ns < 9000  # a second older: 1 us wider at least
    assert model_of([*points, good], [good], before).ahead(at) == 300
    assert model_of([*points, bad], [bad]).ahead(at) == 7000  # nothing else is known


@pytest.mark.parametrize(
    ("discrepancy_ns", "median_ns", "said"),
    [
        (1200.0, 3000.0, "n/a: clocks moved 1.2 us, above 10 % of the median 3.0 us"),
        (-80.0, 400.0, "n/a: clocks moved 0.080 us, above 10 % of the median 0.400 us"),
        (300.0, 3000.0, ""),
        (0.0, 0.0, ""),
    ],
)
def test_why_a_global_clock_is_not_used(discrepancy_ns: float, median_ns: float, said: str) -> None:
    assert why_not(discrepancy_ns, median_ns) == said
