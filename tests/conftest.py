"""What tests leave behind is a fault, or is removed here: jobs that are killed on purpose leave shared memory."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator

import pytest

from suite import leftovers


@pytest.fixture(scope="session", autouse=True)
def no_shared_memory_left() -> Iterator[None]:
    before = leftovers.present()
    yield
    leftovers.remove_new(before)


@pytest.fixture(scope="session", autouse=True)
def temporary_files_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Runs notice each other by a file there: those of other users of this machine are none of the tests' business."""
    tmp_path_factory.getbasetemp()  # stays where pytest has it
    made = tempfile.mkdtemp(prefix="fb-")  # short, since names of sockets are
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", made)
        patch.setattr(tempfile, "tempdir", None)
        yield
    shutil.rmtree(made, ignore_errors=True)
