"""What the tests' own helper tells of a job that overruns."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import jobs

BODY = """
import sys, time
from mpi4py import MPI
def waits_for_ever():
    print("rank", MPI.COMM_WORLD.Get_rank(), flush=True)
    time.sleep(600)
waits_for_ever()
"""


def test_every_rank_of_a_job_that_overruns_tells_its_stack(tmp_path: Path) -> None:
    program = tmp_path / "hangs.py"
    program.write_text(BODY)
    with pytest.raises(AssertionError, match=r"took over 3 s") as caught:
        jobs.mpi(3, str(program), timeout_s=3)
    assert str(caught.value).count("in waits_for_ever") == 3
    assert str(caught.value).count("was sleeping: ") >= 3
