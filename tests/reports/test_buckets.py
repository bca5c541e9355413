"""The buckets that the report knows are those that torch makes, and those that the full tier measures."""

from __future__ import annotations

import pytest

from microbench import registry
from reports.buckets import BUCKETS, model_of, note
from suite.planfile import read_tier
from training.models.table import FLOAT32_BYTES, MODELS

NAMES = {"ResNet-50": "resnet50", "VGG-16": "vgg16"}
_CAP_BYTES = 25 << 20  # DDP's default


@pytest.mark.parametrize("model", BUCKETS)
def test_torch_assigns_these_buckets(model: str) -> None:
    """By the function that DDP calls itself, in the order in which backward makes gradients."""
    torch, dist = pytest.importorskip("torch"), pytest.importorskip("torch.distributed")
    with torch.device("meta"):
        network = MODELS[NAMES[model]].build(1)
    tensors = [torch.empty(p.shape) for p in reversed(list(network.parameters()))]
    limits = [dist._DEFAULT_FIRST_BUCKET_BYTES, _CAP_BYTES]
    found, _ = dist._compute_bucket_assignment_by_size(tensors, limits)
    assert [sum(tensors[i].numel() for i in bucket) * FLOAT32_BYTES for bucket in found] == list(BUCKETS[model])


@pytest.mark.parametrize("model", BUCKETS)
def test_the_buckets_hold_all_parameters(model: str) -> None:
    assert sum(BUCKETS[model]) == FLOAT32_BYTES * MODELS[NAMES[model]].parameters


def test_the_full_tier_measures_every_bucket_and_the_default_tier_one() -> None:
    sizes = {tier: {n for s in read_tier(tier, registry.load()).sections if s.benchmark == "allreduce" for n in s.sizes}
             for tier in ("default", "full")}  # fmt: skip
    assert sizes["full"] >= {n for buckets in BUCKETS.values() for n in buckets}
    assert [model_of(n) for n in sizes["default"] if model_of(n)] == ["ResNet-50"]


def test_a_note_names_buckets_and_nothing_else() -> None:
    assert note([8, None, 1 << 20]) == ""
    said = note([8_196_000, 8, 2_221_312, 26_255_360])
    assert said == (
        "Gradient buckets, as torch's DDP exchanges them: 2221312 B of VGG-16; 8196000 B, 25640 KiB of ResNet-50."
    )
