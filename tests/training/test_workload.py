from __future__ import annotations

from typing import Any

import pytest

from fabrics.errors import UserError
from training.workload import Workload, parse

SIDES = {"resnet50": 224, "resnet20": 32}


def test_defaults_and_label() -> None:
    assert parse({}, SIDES) == Workload("resnet50", 16, 224)
    assert parse({"model": "resnet20", "batch": 4}, SIDES).label == "resnet20 32px batch 4"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "vgg16"}, "unknown model 'vgg16': one of resnet50, resnet20"),
        ({"bacth": 4}, "unknown option 'bacth': one of model, batch, image_px"),
        ({"batch": 0}, "batch is 0: a positive integer"),
        ({"batch": True}, "batch is True"),
        ({"image_px": "64"}, "image_px is '64'"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse(options, SIDES)


def test_the_table_of_models_is_the_one_that_can_be_built() -> None:
    from training.resnet import MODELS
    from training.workload import IMAGE_PX

    assert dict(IMAGE_PX) == {name: model.image_px for name, model in MODELS.items()}
