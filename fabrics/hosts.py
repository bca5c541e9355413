"""The hosts to measure: a hosts file, or the allocation that Slurm made. Pure, but for reading the file."""

from __future__ import annotations

import ipaddress
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fabrics import textfile
from fabrics.errors import CannotRun, UserError

MOST_HOSTS = 65536
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_TASKS = re.compile(r"(\d+)(?:\(x(\d+)\))?")
_ARCHITECTURES = {"x86_64": "x86_64", "x86-64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}


@dataclass(frozen=True)
class Host:
    """A machine of a run: how many ranks it takes and how to start them; what is empty or 0 is as here.

    ``mpi_prefix`` is where its MPI is installed, ``dpu`` names the DPU on its NIC.
    """

    name: str
    ranks: int = 1
    user: str = ""
    port: int = 0
    python: str = ""
    mpi_prefix: str = ""
    arch: str = ""
    dpu: str = ""


def read(path: Path) -> tuple[Host, ...]:
    """The hosts of a file, in its order; UserError says where it cannot be meant."""
    return parse(textfile.read(path, "hosts file"), str(path))


def parse(text: str, name: str) -> tuple[Host, ...]:
    """The hosts of a text: a name or range such as ``node[01-16]`` a line, then ``key=value`` words.

    UserError names the line, and for a host or DPU that stands twice both lines.
    """
    hosts: list[Host] = []
    seen = _Seen(name)
    for number, line in enumerate(text.splitlines(), start=1):
        words = re.sub(r"(^|\s)#.*", "", line).split()
        if words:
            for host in _line(words, f"hosts file {name}, line {number}"):
                seen.add(host, number)
                hosts.append(host)
    if not hosts:
        raise UserError(f"hosts file {name} names no host: write one a line, such as node[01-16] slots=2")
    for host in hosts:
        if host.dpu in seen.parents:
            raise UserError(
                f"hosts file {name}, line {seen.names[host.name]}: {host.dpu} is a DPU of {host.name} and has a dpu"
            )
    return tuple(hosts)


def split(hosts: Sequence[Host]) -> tuple[tuple[Host, ...], tuple[Host, ...]]:
    """The hosts themselves, and their DPUs in the hosts' order; a DPU without a line of its own is as here."""
    lines = {host.name: host for host in hosts}
    named = [host.dpu for host in hosts if host.dpu]
    return tuple(host for host in hosts if host.name not in named), tuple(lines.get(name, Host(name)) for name in named)


@dataclass
class _Seen:
    """Which line named each host, and which host each DPU belongs to."""

    file: str
    names: dict[str, int] = field(default_factory=dict)
    dpus: dict[str, int] = field(default_factory=dict)
    parents: set[str] = field(default_factory=set)

    def add(self, host: Host, line: int) -> None:
        self._once(self.names, host.name, line, "")
        if host.dpu:
            self._once(self.dpus, host.dpu, line, "dpu ")
            self.parents.add(host.name)
            if host.dpu == host.name:
                raise UserError(f"hosts file {self.file}, line {line}: {host.name} is named as its own dpu")

    def _once(self, lines: dict[str, int], name: str, line: int, what: str) -> None:
        if name in lines:
            where = f"twice on line {line}" if lines[name] == line else f"on line {lines[name]} and on line {line}"
            raise UserError(f"hosts file {self.file}: {what}{name} stands {where}")
        lines[name] = line


def _line(words: Sequence[str], where: str) -> list[Host]:
    names = _names(words[0], where)
    values: dict[str, Any] = {}
    for word in words[1:]:
        key, equals, value = word.partition("=")
        if not equals:
            raise UserError(f"{where}: {word!r}: one host or range a line, then key=value")
        if key not in _KEYS:
            raise UserError(f"{where}: there is no {key!r}: allowed are {', '.join(_KEYS)}")
        attribute, reader, takes = _KEYS[key]
        if attribute in values:
            raise UserError(f"{where}: {key} stands twice" + (", slots and ranks being one" if key in _RANKS else ""))
        try:
            values[attribute] = reader(value)
        except ValueError:
            raise UserError(f"{where}: {word}: {key} takes {takes}") from None
    dpus = _names(values.pop("dpu"), where) if "dpu" in values else ("",) * len(names)
    if len(dpus) != len(names):
        raise UserError(f"{where}: {len(dpus)} DPUs for {len(names)} hosts: give them by a range as well")
    return [Host(name, dpu=dpu, **values) for name, dpu in zip(names, dpus, strict=True)]


def _names(text: str, where: str) -> tuple[str, ...]:
    if _is_address(text):
        return (text,)
    try:
        names = expand(text)
    except ValueError as error:
        raise UserError(f"{where}: {text!r}: {error}") from None
    for name in names:
        if not _NAME.fullmatch(name):
            advice = f": write {name.partition(':')[0]} slots={name.partition(':')[2]}" if ":" in name else ""
            raise UserError(f"{where}: {name!r} is no host name or address{advice}")
    return names


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def expand(text: str) -> tuple[str, ...]:
    """The names that Slurm's bracket grammar stands for, in its order; padding with zeros is kept.

    ``a[1-2,4],b[01-02]x[1,3]`` are a1 a2 a4 b01x1 b01x3 b02x1 b02x3; lists may nest. ValueError says what is wrong.
    """
    names: list[str] = []
    for term in _split(text):
        names += itertools.islice(_term(term), MOST_HOSTS + 1)
        if len(names) > MOST_HOSTS:
            raise ValueError(f"more than {MOST_HOSTS} hosts")
    return tuple(names)


def _split(text: str) -> list[str]:
    """The parts between commas outside brackets."""
    parts, depth, start = [], 0, 0
    for position, letter in enumerate(f"{text},"):
        depth += (letter == "[") - (letter == "]")
        if depth < 0:
            raise ValueError("a ] without its [")
        if letter == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    if depth:
        raise ValueError("a [ without its ]")
    if not all(parts):
        raise ValueError("an empty name")
    return parts


def _term(term: str) -> itertools.chain[str]:
    """The names of one term: the product of its literal texts and bracketed lists."""
    choices: list[Sequence[str]] = []
    depth, start = 0, 0
    for position, letter in enumerate(term):
        if letter == "[":
            if depth == 0:
                choices.append([term[start:position]])
                start = position + 1
            depth += 1
        elif letter == "]":
            depth -= 1
            if depth == 0:
                choices.append(_choices(term[start:position]))
                start = position + 1
    choices.append([term[start:]])
    return itertools.chain("".join(parts) for parts in itertools.product(*choices))


def _choices(text: str) -> list[str]:
    """What a bracket holds: numbers, ranges of them, or names with brackets of their own."""
    found: list[str] = []
    for item in _split(text):
        match = _RANGE.fullmatch(item)
        if match:
            found += _numbers(match[1], match[2] or match[1])
        elif item[0] in "-0123456789":
            raise ValueError(f"range {item!r}: two whole numbers, such as 01-16")
        else:
            found += expand(item)
    return found


def _numbers(first: str, last: str) -> list[str]:
    if int(last) < int(first):
        raise ValueError(f"range {first}-{last} runs backwards")
    if int(last) - int(first) >= MOST_HOSTS:
        raise ValueError(f"more than {MOST_HOSTS} hosts")
    return [f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1)]


def allocation(environment: Mapping[str, str]) -> tuple[Host, ...] | None:
    """The hosts and tasks per host of Slurm's allocation, None outside one; CannotRun where it cannot be read."""
    nodes = environment.get("SLURM_JOB_NODELIST") or environment.get("SLURM_NODELIST")
    if not nodes:
        return None
    tasks = environment.get("SLURM_TASKS_PER_NODE", "")
    try:
        names = expand(nodes)
        ranks = _tasks(tasks) if tasks else [1] * len(names)
    except ValueError as error:
        raise CannotRun(f"Slurm's allocation {nodes} with tasks {tasks or 'not told'}: {error}") from None
    if len(ranks) != len(names):
        raise CannotRun(
            f"Slurm's allocation {nodes} has {len(names)} nodes, and SLURM_TASKS_PER_NODE={tasks} {len(ranks)}"
        )
    return tuple(Host(name, count) for name, count in zip(names, ranks, strict=True))


def _tasks(text: str) -> list[int]:
    """Tasks of each node of ``2(x3),1``."""
    counts: list[int] = []
    for part in text.split(","):
        match = _TASKS.fullmatch(part)
        if not match or int(match[2] or 1) > MOST_HOSTS:
            raise ValueError(f"{part!r}: a count, or one and how many nodes have it, such as 2(x3)")
        counts += [int(match[1])] * int(match[2] or 1)
    return counts


def _whole(most: int) -> Callable[[str], int]:
    def reader(text: str) -> int:
        if not text.isdecimal() or not 1 <= int(text) <= most:
            raise ValueError(text)
        return int(text)

    return reader


def _word(text: str) -> str:
    if not text:
        raise ValueError(text)
    return text


def _folder(text: str) -> str:
    if not text.startswith("/"):
        raise ValueError(text)
    return text


def _arch(text: str) -> str:
    if text not in _ARCHITECTURES:
        raise ValueError(text)
    return _ARCHITECTURES[text]


_RANKS = ("slots", "ranks")
_RANK_READER = ("ranks", _whole(4096), "a whole number from 1 to 4096")
_KEYS: dict[str, tuple[str, Callable[[str], Any], str]] = {
    "slots": _RANK_READER,
    "ranks": _RANK_READER,
    "user": ("user", _word, "a name"),
    "port": ("port", _whole(65535), "a whole number from 1 to 65535"),
    "python": ("python", _word, "a program, such as /opt/python/bin/python3"),
    "mpi": ("mpi_prefix", _folder, "the folder where MPI is installed, such as /opt/mpich"),
    "arch": ("arch", _arch, f"one of {', '.join(_ARCHITECTURES)}"),
    "dpu": ("dpu", _word, "the name of the DPU, or as many as hosts: node[01-16]-bf"),
}
