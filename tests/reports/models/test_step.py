"""Steps from planted profiles: worked by hand, against what was published, and against torch's buckets."""

from __future__ import annotations

import numpy as np
import pytest

from reports.models import ddp, published, scaling
from reports.models.curve import Curve
from reports.models.points import Points
from reports.models.scaling import Wire
from reports.models.step import Exchange, Profile, bounds, predict

TWO = Profile(step_s=10.0, before_s=3.0, bucket_bytes=(2.0, 1.0), ready_s=(1.0, 5.0))


def linear(s_per_byte: float, cpu: float = 0.0, **more: float) -> Exchange:
    return Exchange(lambda n: s_per_byte * n, lambda n: cpu * n, **more)


def test_buckets_follow_each_other() -> None:
    """The first takes from 1 to 7, the second from 7 to 10; compute ends at 5."""
    found = predict(TWO, linear(3.0))
    assert (found.step_s, found.exposed_s, found.exchange_s, found.dilation) == (15, 5, 9, 0)
    assert found.hidden_fraction == pytest.approx(4 / 9) and not found.hidden
    early = predict(TWO, linear(0.5))
    assert (early.exposed_s, early.step_s) == (0.5, 10.5) and early.hidden


def test_an_exchange_takes_the_processor_from_compute() -> None:
    """4 s of the exchange of the first bucket need a quarter of the processor: 1 s of compute is late."""
    found = predict(TWO, linear(2.0, cpu=0.5))
    assert found.dilation == pytest.approx(1 / 5)
    assert found.exposed_s == pytest.approx(3.0)  # compute ends at 6, and then the second bucket takes 2
    assert predict(TWO, linear(2.0, cpu=0.5, apart=True)).exposed_s == 2.0


def test_an_exchange_that_needs_all_of_a_processor_shares_it() -> None:
    """2 bytes of 2 s each, all of it processor: beside compute both go at half speed, so it lasts until compute ends.

    Compute from 1 on has 4 s left, and at half speed 8 s: the exchange's 4 s are through at 9, when compute is too.
    """
    found = predict(TWO, linear(2.0, cpu=2.0))
    assert found.dilation == pytest.approx(9 / 5 - 1) and found.exposed_s == pytest.approx(9 + 2 - 5)


def test_what_compute_does_to_buckets_delays_both() -> None:
    found = predict(TWO, linear(0.1, local_s_per_byte=1.0))
    assert found.exposed_s == pytest.approx(3.1) and found.dilation == pytest.approx(3 / 5)


def test_bounds_hold_the_prediction_between_them() -> None:
    exchange = linear(3.0)
    found = bounds(TWO, exchange, ranks=2, bytes_per_s=1.0)
    assert (found.ideal_s, found.serial_s, found.wire_s) == (10, 19, 10)
    assert found.ideal_s <= predict(TWO, exchange).step_s <= found.serial_s
    assert bounds(TWO, exchange, 4, 0.5).wire_s == 10 + (1 + 1.5 * 3 / 0.5 - 5)


def test_resnet_50_is_hidden_as_published_and_vgg_16_is_not() -> None:
    """At 25 Gbit/s on 16 GPUs: 61 ms behind 65 ms of backward, and 332 ms behind at most 246 ms.

    Seven ms were published to show of ResNet-50. At 100 Gbit/s VGG-16 hides only where its backward is longer than the
    wire's time.
    """
    resnet = predict(published.resnet50(), published.ring(25e9))
    assert resnet.exchange_s == pytest.approx(0.061, abs=0.002) and resnet.hidden
    assert resnet.step_s == pytest.approx(published.RESNET50_STEP_16_S, rel=0.05)
    assert predict(published.resnet50(), published.ring(100e9)).exposed_s < 0.25 * resnet.exposed_s + 1e-3
    for times in (1.0, 2.0, published.VGG16_OVER_RESNET50):
        vgg = predict(published.vgg16(times), published.ring(25e9))
        assert vgg.exchange_s == pytest.approx(0.332, abs=0.003) and not vgg.hidden
    assert not predict(published.vgg16(1.0), published.ring(100e9)).hidden
    assert predict(published.vgg16(), published.ring(100e9)).hidden


@pytest.mark.parametrize("cap", [None, 1 << 20, 5 << 20, 64 << 20, 1])
def test_buckets_are_those_of_torch(cap: int | None) -> None:
    torch, dist = pytest.importorskip("torch"), pytest.importorskip("torch.distributed")
    counts = np.random.default_rng(3).integers(1, 3_000_000, 80).tolist()
    tensors = [torch.empty(n, device="meta") for n in counts]
    theirs, _ = dist._compute_bucket_assignment_by_size(tensors, list(ddp.limits(cap)))
    assert ddp.assign([4 * n for n in counts], ddp.limits(cap)) == theirs


def test_rebuilt_buckets_are_in_the_order_of_gradients() -> None:
    nbytes, ready = ddp.rebuilt([10, 20, 30, 40], [4.0, 3.0, 2.0, 1.0], [40, 50])
    assert (nbytes, ready) == ([40, 50, 10], [1.0, 3.0, 4.0])
    assert ddp.rebuilt([10, 20], [1.0, 2.0], ddp.limits(0)) == ([10, 20], [1.0, 2.0])
    with pytest.raises(ValueError, match="1 times given for 2 tensors"):
        ddp.rebuilt([1, 2], [1.0], [1])


def test_a_curve_is_read_between_sizes_and_goes_on_at_its_last_rate() -> None:
    curve = Curve.of(Points(np.array([0.0, 100, 1000, 2000]), np.array([1.0, 1, 10, 20]), np.zeros(4)))
    assert [curve(n) for n in (1, 100, 1000, 2000, 5000)] == pytest.approx([1, 1, 10, 20, 50])
    assert curve(316.2278) == pytest.approx(3.162278)
    assert curve.lacks([100.0, 3000]) == "" == curve.stretched([100.0, 2000])
    assert curve.lacks([50.0, 99, 3000]) == "2 of 3 buckets below 100 B, the smallest size measured"
    assert curve.stretched([3000.0]) == "1 of 1 bucket beyond 2000 B, the largest size measured: at its last rate"
    one = Curve(np.array([10.0]), np.array([2.0]))
    assert one(20) == 4 and one.lacks([10.0]) == ""
    assert one.lacks([10.0, 20.0]) == "only 10 B was measured, and a curve takes two sizes"


def test_more_hosts_expose_more_and_a_faster_wire_less() -> None:
    wire, profile = Wire(20e-6, 1 / 3.125e9), published.resnet50()
    measured = published.ring(25e9, ranks=2, latency_s=20e-6)
    grown = scaling.scale(profile, measured, 2, wire, alone_s=0.097)
    exposed = [s.prediction.exposed_s for s in grown]
    assert exposed == sorted(exposed) and grown[0].ranks == 8 and grown[-1].ranks == 4096
    efficiency = [s.efficiency for s in grown]
    assert efficiency == sorted(efficiency, reverse=True) and 0 < efficiency[-1] < efficiency[0] < 1
    assert scaling.shows_from(grown) == 8
    tiny = Profile(0.1, 0.03, (1000.0,), (0.07,))
    assert scaling.shows_from(scaling.scale(tiny, measured, 2, Wire(1e-6, 1e-12), 0.1)) is None
    faster = scaling.other_rate(measured.time_s, 2, wire, 12.5e9)
    assert faster(1e8) == pytest.approx(measured.time_s(1e8) / 4, rel=0.01)
    assert scaling.at(2, measured.time_s, 2, wire)(1e6) == pytest.approx(measured.time_s(1e6))


def test_a_profile_needs_a_time_for_each_bucket() -> None:
    with pytest.raises(ValueError, match="every bucket"):
        Profile(1.0, 0.5, (1.0, 2.0), (0.1,))
    assert TWO.faster(2.0) == Profile(5.0, 1.5, (2.0, 1.0), (0.5, 2.5))
