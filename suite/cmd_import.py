"""``fabricbench import``: other suites' output as records, which report, accept and compare then read like a run's."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fabrics.errors import CannotRun, UserError
from fabrics.lab.config import parse_rate
from fabrics.model import Fabric
from microbench.record import Record
from reports.load import RunData, mappings
from reports.units import count as counted
from suite import arguments, environment, store
from suite.imported import records
from suite.imported.formats import FORMATS, read
from suite.imported.model import Log, Trouble
from suite.imported.records import Told

LARGEST_BYTES = 64 << 20
_SHOWN = 20  # lines that are named on standard error; run.json has all
AGAIN = "the same content was imported already, so it is no further launch"


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    known = "\n".join(f"  {name:9} {f.what}" for name, f in FORMATS.items())
    parser = commands.add_parser(
        "import",
        help="other suites' output (OSU, IMB, nccl-tests, ...) as records",
        description="Make records of other suites' output. They carry no proof, no samples and no interval, and say so."
        " A folder that import made takes more files; the same case again is another launch of it.",
        epilog=f"formats:\n{known}\n\nexample: fabricbench import osu_*.txt --ranks 4 --fabric eth0 --out runs/osu",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a log; - is standard input")
    parser.add_argument("--out", "-o", type=arguments.folder, required=True, metavar="DIR", help="the run's folder")
    parser.add_argument("--as", dest="kind", choices=FORMATS, help="take the files for this (default: by content)")
    group = parser.add_argument_group("what a log does not tell", "taken where it does not; else unknown")
    group.add_argument("--fabric", default=records.FABRIC, metavar="NAME", help=f"default: {records.FABRIC}")
    group.add_argument("--rate", metavar="R", help="what the fabric declares, such as 100gbit")
    group.add_argument("--ranks", type=arguments.count, default=0, metavar="N", help="how many ranks ran it")
    group.add_argument("--hosts", default="", metavar="H,H,...", help="each rank's host; h0:4,h1:4 are four ranks each")
    group.add_argument("--mpi", default="", metavar="NAME", help="the MPI library, such as 'Open MPI 5.0.11'")
    group.add_argument("--benchmark", default="", metavar="NAME", help="which collective nccl-tests ran")
    group.add_argument("--emulated", action="store_true", help="the fabric is emulated")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Read the files, append their records, and tell what was not understood."""
    told = _told(args)
    before = _before(args.out)
    launches = Counter(record.id for record in before.records) if before else Counter[str]()
    seen = {(str(f.get("sha256")), str(f.get("fabric"))) for f in (_imported(before) if before else ())}
    texts = {name: _text(name) for name in dict.fromkeys(args.files)}
    made: list[Record] = []
    entries: list[dict[str, Any]] = []
    for name, data in texts.items():
        digest = hashlib.sha256(data).hexdigest()
        logs: tuple[Log, ...] = ()
        new: tuple[Record, ...] = ()
        left: tuple[Trouble, ...] = (Trouble(1, AGAIN),)
        if (digest, told.fabric) not in seen:
            logs = read(data.decode("utf-8", errors="replace"), args.kind or "", args.benchmark)
            new, left = records.records(Path(name).name, logs, told, launches)
        seen.add((digest, told.fabric))
        made += new
        entries.append({**records.summary(name, logs, new, left), "fabric": told.fabric, "sha256": digest})
        _tell(name, logs, new, left)
    if not made:
        raise CannotRun(f"nothing was imported: no result was understood in {', '.join(texts)}")
    _write(args, told, before, made, entries)
    print(f"{counted(len(made), 'record')} in {args.out}: see fabricbench report {args.out}")
    return CannotRun.exit_code if any(entry["not_understood"] for entry in entries) else 0


def _told(args: argparse.Namespace) -> Told:
    hosts = _hosts(args.hosts)
    if hosts and args.ranks and len(hosts) != args.ranks:
        raise UserError(f"--hosts has {len(hosts)} ranks and --ranks {args.ranks}: name the host of each rank")
    if not args.fabric.strip():
        raise UserError("the fabric's name is empty")
    return Told(args.fabric, args.ranks or len(hosts), hosts, args.mpi, args.emulated)


def _hosts(text: str) -> tuple[str, ...]:
    """The host of each rank, of ``h0,h1`` or ``h0:4,h1:4``."""
    found: list[str] = []
    for part in text.split(",") if text else ():
        name, _, times = part.strip().partition(":")
        if not name or (times and not (times.isascii() and times.isdigit() and 0 < int(times) <= 100_000)):
            raise UserError(f"--hosts {part!r}: a host's name, or NAME:N for N ranks of it")
        found += [name] * int(times or 1)
    return tuple(found)


def _text(name: str) -> bytes:
    try:
        if name == "-":
            data = sys.stdin.buffer.read(LARGEST_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise UserError(f"{name}: cannot be read: {error.strerror}") from None
    if len(data) > LARGEST_BYTES:
        raise UserError(f"{name}: beyond {LARGEST_BYTES >> 20} MiB: no log of a suite that is read here")
    return data


def _before(directory: Path) -> RunData | None:
    """What was imported into the folder before; None where there is no run. UserError for a run that was measured."""
    if not store.holds_run(directory):
        return None
    found = store.stored(directory)
    if not _imported(found):
        raise UserError(f"{directory} holds a run that was measured: import into another folder")
    return found


def _imported(data: RunData) -> tuple[Mapping[str, Any], ...]:
    return mappings(data.run.get("imported"))


def _tell(name: str, logs: Sequence[Log], made: Sequence[Record], left: Sequence[Trouble]) -> None:
    """One line of what the file gave, on standard output, and each thing not understood on standard error."""
    suites = ", ".join(dict.fromkeys(log.suite for log in logs if log.suite)) or "no suite recognised"
    print(f"{name}: {suites}: {counted(len(made), 'record')}", flush=True)
    for trouble in left[:_SHOWN]:
        print(f"{name}: {trouble.where}: {trouble.why}", file=sys.stderr)
    if len(left) > _SHOWN:
        print(f"{name}: and {len(left) - _SHOWN} more, in run.json", file=sys.stderr)
    sys.stderr.flush()


def _write(
    args: argparse.Namespace, told: Told, before: RunData | None, made: Sequence[Record], entries: list[dict[str, Any]]
) -> None:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    run: dict[str, Any] = dict(before.run) if before else {
        "schema": 1, "fabricbench": environment.version(), "id": str(uuid.uuid4()), "started": now,
        "command": ["fabricbench", "import"], "plan": {}, "environment": {}, "jobs": [],
    }  # fmt: skip
    fabrics = {str(f.get("name")): dict(f) for f in (before.fabrics if before else ())}
    fabrics[told.fabric] = _fabric(args, told, made, fabrics.get(told.fabric))
    files = [*(_imported(before) if before else ()), *entries]
    run |= {"finished": now, "fabrics": list(fabrics.values()), "imported": files, "warnings": _warnings(files)}
    with store.RunFolder(args.out, resume=before is not None) as folder:
        folder.mend()
        folder.write_run(run)
        for record in made:
            folder.add(record, {}, job=0)


def _fabric(args: argparse.Namespace, told: Told, made: Sequence[Record], known: Mapping[str, Any] | None) -> Any:
    """The fabric as far as it is told: its kind is not, and it has no devices whose counters could be read."""
    hosts = tuple(dict.fromkeys(host for record in made for host in record.hosts))
    rate = None if args.rate is None else parse_rate(args.rate)
    plain = Fabric(told.fabric, "tcp", hosts, rate_bits_per_s=rate, emulated=told.emulated,
                   note="told by whoever imported the logs")  # fmt: skip
    data = {**plain.as_dict(), "kind": "not told"}
    if known:
        merged = list(dict.fromkeys([*(known.get("hosts") or ()), *hosts]))
        data |= {"hosts": merged, "rate_bits_per_s": rate or known.get("rate_bits_per_s"),
                 "emulated": told.emulated or bool(known.get("emulated"))}  # fmt: skip
    return json.loads(json.dumps(data))


def _warnings(files: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the report says of each file that was not understood as a whole."""
    found = []
    for entry in files:
        if left := mappings(entry.get("not_understood")):
            first = left[0]
            more = f" and {len(left) - 1} more" if len(left) > 1 else ""
            found.append(
                f"{entry.get('file')} was not understood as a whole: line {first['line']}: {first['why']}{more}"
            )
    return found
