"""Whether a process is in a lab host: what mounts tell, in words and in a lab."""

from __future__ import annotations

import sys

import pytest

from fabrics.lab import inside
from fabrics.lab.cluster import Lab
from tests.fabrics.conftest import run_in

ROOT = "23 1 254:0 / / rw - ext4 /dev/root rw\n30 23 0:5 / /proc rw - proc proc rw\n"
HOME = "90 23 0:{n} / /run/fabricbench/{lab} rw shared:7 - tmpfs fabricbench rw,mode=755\n"
OVER = "9{n} 30 0:{n} /{host}/boot_id /proc/sys/kernel/random/boot_id rw - tmpfs fabricbench rw,mode=755\n"


@pytest.mark.parametrize(
    ("mounts", "host"),
    [
        ("", ""),
        (ROOT, ""),
        (ROOT + HOME.format(n=61, lab="x"), ""),  # a machine with a lab is no host of it
        (ROOT + HOME.format(n=61, lab="x") + OVER.format(n=61, host="h1"), "x/h1"),
        (ROOT + OVER.format(n=61, host="d0"), "/d0"),  # whose lab has gone
        (
            ROOT + HOME.format(n=61, lab="x") + HOME.format(n=62, lab="y")
            + OVER.format(n=62, host="h0") + OVER.format(n=61, host="h3"),
            "x/h3",
        ),
        (ROOT + OVER.format(n=61, host="h0").replace("fabricbench", "container"), ""),
    ],
)  # fmt: skip
def test_mounts_tell(mounts: str, host: str) -> None:
    assert inside.lab_host(mounts) == host


def test_in_a_lab_and_outside(lab: Lab) -> None:
    code = "from fabrics.lab import inside; print(inside.lab_host())"
    assert inside.lab_host() == ""
    assert run_in(lab, "d1", sys.executable, "-c", code).stdout == f"{lab.name}/d1\n"
    bare = run_in(lab, "h0", str(lab.agent), "h1", f"{sys.executable} -c '{code}'")
    assert bare.stdout == f"{lab.name}/h1\n"
