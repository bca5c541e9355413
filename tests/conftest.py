"""What tests leave behind is a fault, or is removed here: jobs that are killed on purpose leave shared memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from suite import leftovers


@pytest.fixture(scope="session", autouse=True)
def no_shared_memory_left() -> Iterator[None]:
    before = leftovers.present()
    yield
    leftovers.remove_new(before)
