"""The message rate in chapter 3, and what it must not disturb."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from microbench.record import Metric
from reports.load import RunData
from reports.marks import above_declared
from reports.render import render
from reports.summary import Summary, summarise
from reports.units import MMSG_PER_S
from reports.view import links, view
from tests.reports.folder import Folder, lab_run, metric

FOUR = ("h0", "h0", "h1", "h1")


def plant(f: Folder, fabric: str, nbytes: int, rate: float, ranks: int = 2, makespan: float | None = None) -> None:
    """So many messages/s of ``ranks`` / 2 pairs; the make-span's rate may be unknown."""
    why = "n/a: the clocks moved apart while it ran"
    spans = Metric(None, "messages/s", 100, better="higher", note=why) if makespan is None else (
        metric(makespan, "messages/s", 100, better="higher"))  # fmt: skip
    carried = metric(rate * nbytes, "bytes/s", 100, better="higher") if nbytes else (
        Metric(None, "bytes/s", 100, better="higher", note="0 B carry no bandwidth"))  # fmt: skip
    numbers = {"message_rate": metric(rate, "messages/s", 100, better="higher"), "message_rate_makespan": spans,
               "bandwidth": carried, "time": metric(64 * ranks / 2 / rate, n=100)}  # fmt: skip
    hosts: dict[str, Any] = {"hosts": FOUR} if ranks == 4 else {}
    f.add("message_rate", fabric, nbytes, ranks=ranks, direction="uni", dtype="int8", algorithm="library",
          metrics=numbers, **hosts)  # fmt: skip


def planted() -> Folder:
    f = Folder()
    for fabric, rate in (("eth2g5", 1.5e6), ("eth10g", 3e6)):
        plant(f, fabric, 0, 1.1 * rate, makespan=rate)
        plant(f, fabric, 8, rate, makespan=0.9 * rate)
        plant(f, fabric, 65536, rate / 400)
        plant(f, fabric, 8, 1.5 * rate, ranks=4, makespan=1.4 * rate)
    return f


def chapter_3(text: str) -> str:
    return text.split("\n3 Point to point")[1].split("\n4 Allreduce", maxsplit=1)[0]


def test_a_table_per_number_of_ranks(tmp_path: Path) -> None:
    text = chapter_3(render(planted().write(tmp_path)))
    assert re.findall(r"^Message rate of all pairs at once: (\w+, \d ranks)", text, re.MULTILINE) == [
        "uni, 2 ranks", "uni, 4 ranks"]  # fmt: skip
    row = next(line for line in text.splitlines() if line.lstrip().startswith("8 B"))
    assert row.split() == ["8", "B", "eth2g5", "1.500", "[1.485,", "1.515]", "1.350", "12.000", "42.67", "100", "1.00x",
                           "EMULATED"]  # fmt: skip
    below = text.splitlines()[text.splitlines().index(row) + 1]
    assert below.split()[:2] + below.split()[-2:] == ["eth10g", "3.000", "2.00x", "EMULATED"]
    assert text.count("from the first rank's start to the last one's end") == 1
    why = "n/a: 0 B carry no bandwidth (0 B); the clocks moved apart while it ran (64 KiB)"
    assert why in " ".join(text.split())


def test_alone_it_makes_no_glance_and_no_allreduce_table(tmp_path: Path) -> None:
    text = render(planted().write(tmp_path))
    assert "At a glance" not in chapter_3(text)
    assert "no such case on disk" in text.split("\n4 Allreduce")[1].split("\n5 ")[0]
    told = " ".join(text.split("1 System and method")[0].split())
    assert "- (3) eth2g5 (EMULATED): 2.250 [2.228, 2.272] Mmsg/s (n 100) at 8 B, 2 pairs." in told


def test_glance_and_chapter_7_stay_as_they_were(tmp_path: Path) -> None:
    before = render(lab_run().write(tmp_path / "before"))
    f = lab_run()
    f.records += planted().records
    after = render(f.write(tmp_path / "after"))

    def glance(text: str) -> str:
        return chapter_3(text).split("Latency (half round trip)")[0]

    def seven(text: str) -> str:
        return text.split("\n7 Does the fabric matter?")[1].split("\n8 ", maxsplit=1)[0]

    assert glance(after) == glance(before)
    assert seven(after) == seven(before)
    told = " ".join(after.split("1 System and method")[0].split())
    assert re.search(r"us \(n 1000\) at 8 B; 2.250 \[2.228, 2.272\] Mmsg/s", told)


def test_the_finding_has_its_numbers(tmp_path: Path) -> None:
    found = json.loads(render(planted().write(tmp_path), "json"))["findings"]
    values = next(x["values"] for x in found if x["values"].get("fabric") == "eth10g" and x["chapter"] == 3)
    assert (values["message_rate"], values["message_nbytes"], values["message_ranks"]) == (4.5e6, 8, 4)


@pytest.mark.parametrize(
    ("rate", "told"),
    [(1.5e6, "1.500"), (4424.0, "0.004424"), (250_000.0, "0.2500"), (999_990.0, "1.0000"), (128e6, "128.0"),
     (0.0, "0.000")],
)  # fmt: skip
def test_small_rates_keep_four_digits(rate: float, told: str) -> None:
    assert MMSG_PER_S.text(rate) == told


def _case(hosts: tuple[str, ...], bits_per_s: float, benchmark: str = "message_rate") -> Summary:
    f = Folder()
    got = {"bandwidth": metric(bits_per_s / 8, "bytes/s", better="higher")}
    f.add(benchmark, "eth2g5", 8, ranks=len(hosts), hosts=hosts, metrics=got)
    return summarise(f.records)[0]


@pytest.mark.parametrize(
    ("hosts", "number"),
    [(("h0", "h1"), 1), (FOUR, 1), (("a", "b", "c", "d"), 2), (("a", "b", "c", "c"), 1), (("a", "b", "a", "b"), 1),
     (("a", "a"), 1)],
)  # fmt: skip
def test_pairs_on_several_hosts_have_a_link_each(hosts: tuple[str, ...], number: int) -> None:
    assert links(_case(hosts, 1e9)) == number
    assert links(_case(hosts, 1e9, "allreduce")) == 1


@pytest.mark.parametrize(("hosts", "above"), [(("a", "b", "c", "d"), False), (FOUR, True)])
def test_two_links_may_carry_twice_the_declared_rate(hosts: tuple[str, ...], above: bool) -> None:
    fabrics = [{"name": "eth2g5", "rate_bits_per_s": 2.5e9}]
    assert above_declared(view(RunData({"fabrics": fabrics}, ())), _case(hosts, 4.8e9)) is above
