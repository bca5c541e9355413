"""Images to train on and to validate with: made up, CIFAR-10's or a folder's; in shards, and how long they kept a step.

torch is imported when a batch is asked for, Pillow when a folder of images is opened.
"""

from __future__ import annotations

from training.data.choice import Data, opened, opened_by_all, parse
from training.data.loader import Loader
from training.data.source import Source
from training.data.validation import Validation

__all__ = ["Data", "Loader", "Source", "Validation", "opened", "opened_by_all", "parse"]
