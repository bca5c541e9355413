"""What must be read beside a number, in a few words."""

from __future__ import annotations

from microbench.record import shared_machines
from reports.starts import FEW, MOSTLY, in_time, least_in_time, usual_skew_share
from reports.summary import Summary
from reports.units import BITS
from reports.view import View, alone, impossible, links, ways


def marks(v: View, s: Summary) -> str:
    """The marks of a case, as its table's notes have them."""
    named = (("imported", s.imported), ("EMULATED", s.emulated or s.fabric in v.emulated),
             ("unproved", unproved(s)),
             ("DISPROVED", s.proof == "disproved"), ("OVERSUBSCRIBED", s.oversubscribed),
             ("not a DPU", bool(shared_machines(s.hosts, s.roles))),
             ("> declared rate", above_declared(v, s)), ("> any memory", bool(impossible(s.metrics, s.hosts))),
             ("intra-node", s.fabric in v.networks and s.ranks > 1 and len(set(s.hosts)) == 1),
             (f"{s.ranks_per_host} ranks a host", s.ranks_per_host > 1 and len(set(s.hosts)) > 1))  # fmt: skip
    return ", ".join([*(name for name, given in named if given), *_starts(v, s)])


def _starts(v: View, s: Summary) -> list[str]:
    share, worst = usual_skew_share(v, s), least_in_time(v, s)
    punctual = in_time(worst) if worst is not None else None
    told = [f"skew {100 * share:.0f} %"] if share is not None and share >= MOSTLY else []
    return told + ([f"{100 * punctual:.0f} % in time"] if punctual is not None and punctual < FEW else [])


def unproved(s: Summary) -> bool:
    """Whether no counters vouch for the way of its bytes; one rank alone sends none."""
    return s.proof == "unknown" and not alone(s)


def above_declared(v: View, s: Summary) -> bool:
    """Whether a rate exceeds what the fabric declares; two-way traffic may have twice the rate."""
    declared = v.rate(s.fabric)
    rates = [x for name in ("bandwidth", "busbw") if (x := s.value(name)) is not None]
    return declared is not None and any(x * BITS > declared * ways(s) * links(s) for x in rates)
