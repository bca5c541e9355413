"""What the DPUs are: hosts and DPUs side by side, the links between them, and what can hide behind a host's compute."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reports import cells, tables
from reports.claims import not_dpus
from reports.load import mappings
from reports.marks import marks
from reports.summary import Summary
from reports.units import GBIT_PER_S, MIB_PER_S, PERCENT, PLAIN, Unit, unit_for
from reports.view import DPU, Finding, View, setup_text

ROLES = ("host", "dpu")
RATIO, HIDE = "ratio", "hide"
LINKS = {"host_host": "host - host", "host_dpu": "host - DPU", "dpu_dpu": "DPU - DPU"}
GB_PER_S, GIB_PER_S, MEGA_PER_S = Unit("GB/s", 1e-9), Unit("GiB/s", 2.0**-30), Unit("1e6/s", 1e-6)
HELP = (
    "The same kernels on hosts and DPUs in turns: one core of each, or all (all). The ratio is the DPU's speed over "
    "the host's."
)
EMULATED = "EMULATED: DPUs are this machine's own cores"
NEVER = "Take mechanisms from their numbers, never the speed of a DPU that is sold."


def blocks(v: View) -> list[str]:
    """What is known of the DPUs of each fabric; nothing where none were characterized."""
    return [block for s in v.of(DPU) if s.metrics for block in _known(v, s)]


def findings(v: View) -> Iterator[Finding]:
    """For each fabric with DPUs of their own how fast these are beside their hosts: the slowest and fastest kernel."""
    for s in v.of(DPU):
        if not_dpus(v.launches(s)):
            continue
        ratios = {name: value for name in _names(s, RATIO) if (value := s.value(f"{RATIO}.{name}")) is not None}
        if not ratios:
            continue
        ends = [choose(ratios, key=lambda name: ratios[name]) for choose in (min, max)]
        told = [f"{cells.with_unit(s, f'{RATIO}.{name}', PERCENT)} ({name})" for name in dict.fromkeys(ends)]
        mark = "EMULATED DPUs" if _emulated(v, s) else "DPUs"
        text = f"{mark} on {s.fabric} run what their hosts run at {' to '.join(told)} of their speed."
        yield Finding(5, text, {"fabric": s.fabric, "ratios": ratios})


def _known(v: View, s: Summary) -> list[str]:
    noted = marks(v, s)
    title = f"What the DPUs are, on {s.fabric}{f' ({noted})' if noted else ''}: {setup_text(s)}. {HELP}"
    what = f" {s.method.get('emulation') or EMULATED}. {NEVER}" if _emulated(v, s) else ""
    none = not_dpus(v.launches(s))
    what += f" {none}; nothing follows for what can hide." if none else ""
    parts = [tables.prose(title + what), _speeds(v, s), _links(v, s), "" if none else _hiding(s)]
    others = _others(v, s)
    return ["\n\n".join(part for part in [*parts, others] if part)]


def _emulated(v: View, s: Summary) -> bool:
    return s.emulated or s.fabric in v.emulated


def _names(s: Summary, prefix: str) -> list[str]:
    """What was measured of something: the second parts of its metrics' names."""
    return [name.partition(".")[2] for name in s.metrics if name.partition(".")[0] == prefix]


def _mixed(s: Summary, names: Sequence[str]) -> bool:
    return len(cells.launch_counts((s, name) for name in names)) > 1


def _speeds(v: View, s: Summary) -> str:
    """A kernel a line: host, DPU, ratio."""
    names = list(dict.fromkeys(name for prefix in (*ROLES, RATIO) for name in _names(s, prefix)))
    mixed, rows = _mixed(s, list(s.metrics)), []
    for name in names:
        there = [f"{role}.{name}" for role in ROLES if f"{role}.{name}" in s.metrics]
        unit = _speed_unit(v, s.metrics[there[0]].unit) if there else PLAIN
        speeds = [cells.together(f"{role}.{name}", unit, mixed)(s) for role in ROLES]
        rows.append([name.replace("_", " "), unit.name, *speeds, cells.together(f"{RATIO}.{name}", PERCENT, mixed)(s)])
    heads = ["kernel", "unit", "host", "DPU", f"ratio %{' EMULATED' if _emulated(v, s) else ''}"]
    return tables.table(heads, rows, ["left", "left", "right", "right", "right"]) if names else ""


def _speed_unit(v: View, base: str) -> Unit:
    """GB/s of memory, or GiB/s where rates are binary, and millions of plain steps: so that columns stay narrow."""
    if base == "bytes/s":
        return GIB_PER_S if v.byte_rate == MIB_PER_S else GB_PER_S
    return MEGA_PER_S if base == "1/s" else unit_for(base)


def _links(v: View, s: Summary) -> str:
    """A pair of roles a line, with what was measured between them."""
    there = {link: _names(s, link) for link in LINKS}
    names = list(dict.fromkeys(name for found in there.values() for name in found))
    mixed = _mixed(s, list(s.metrics))
    units = {name: unit_for(next(m.unit for key, m in s.metrics.items() if key.endswith(f".{name}") and
                                 key.partition(".")[0] in LINKS), v.byte_rate) for name in names}  # fmt: skip
    units = {name: GBIT_PER_S if unit == v.byte_rate else unit for name, unit in units.items()}
    rows = [[LINKS[link], *(cells.together(f"{link}.{name}", units[name], mixed)(s) for name in names)]
            for link, found in there.items() if found]  # fmt: skip
    heads = ["link", *(f"{name.replace('_', ' ')} {units[name].name}" for name in names)]
    return tables.table(heads, rows, ["left", *["right"] * len(names)]) if rows else ""


def _hiding(s: Summary) -> str:
    """Which collectives and phases the DPUs could hide, as the benchmark found."""
    told = [str(each["words"]) for each in mappings(s.method.get("findings")) if each.get("words")]
    return "What can hide\n" + "\n".join(map(tables.bullet, told)) if told else ""


def _others(v: View, s: Summary) -> str:
    """Whatever else was measured, a line each."""
    known = (*ROLES, RATIO, HIDE, *LINKS)
    rows = []
    for name, metric in s.metrics.items():
        if name.partition(".")[0] not in known:
            unit = unit_for(metric.unit, v.byte_rate)
            rows.append([name, cells.together(name, unit)(s), unit.name])
    return tables.table(["measured", "value", "unit"], rows, ["left", "right", "left"]) if rows else ""
