from __future__ import annotations

from typing import Any

import pytest

from fabrics.errors import UserError
from training.models import MODELS
from training.workload import Workload, parse


def test_defaults_and_label() -> None:
    assert parse({}) == Workload("resnet50", 16, 224)
    assert parse({"model": "resnet20", "batch": 4}).label == "resnet20 32px batch 4"
    assert parse({"model": "inception_v3"}).image_px == 299


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "vgg"}, "unknown model 'vgg': one of resnet18, .*, vgg16, alexnet, inception_v3, inception_v3_aux$"),
        ({"bacth": 4}, "unknown option 'bacth': one of model, batch, image_px, dropout$"),
        ({"batch": 0}, "batch is 0: a positive integer"),
        ({"batch": True}, "batch is True"),
        ({"batch": 2**63}, "batch is '9223372036854775808': at most 16777216$"),
        ({"image_px": 10**400}, "image_px is '10+\\.\\.\\.': at most 16384$"),
        ({"image_px": "64"}, "image_px is '64'"),
        ({"model": "vgg16", "image_px": 31}, "image_px is 31: vgg16 needs images of at least 32 px$"),
        ({"model": "alexnet", "image_px": 62}, "alexnet needs images of at least 63 px"),
        ({"model": "inception_v3", "image_px": 74}, "inception_v3 needs images of at least 75 px"),
        ({"model": "inception_v3_aux", "image_px": 298}, "inception_v3_aux needs images of at least 299 px"),
        ({"dropout": 0.5}, "dropout is 0.5: resnet50 has no dropout"),
        ({"model": "vgg16", "dropout": 1}, "dropout is 1: a share from 0 to below 1"),
        ({"model": "vgg16", "dropout": True}, "dropout is True"),
        ({"model": "vgg16", "dropout": "none"}, "dropout is 'none'"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse(options)


@pytest.mark.parametrize("name", MODELS)
def test_every_model_takes_its_least_image_and_says_its_options(name: str) -> None:
    options = {"model": name, "batch": 2, "image_px": MODELS[name].least_px}
    workload = parse(options)
    assert workload.options == options
    assert parse(workload.options) == workload == Workload(**options)


def test_dropout_other_than_the_usual_is_part_of_the_label() -> None:
    off = parse({"model": "vgg16", "image_px": 32, "dropout": 0})
    assert off.label == "vgg16 32px batch 16 dropout 0"
    assert parse(off.options) == off
    usual = parse({"model": "vgg16", "dropout": 0.5})
    assert usual == parse({"model": "vgg16"})
    assert parse({"model": "resnet20", "dropout": 0.0}) == parse({"model": "resnet20"})
