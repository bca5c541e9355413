"""What may be claimed of an offload: one rule for tables, findings and ``fabricbench bench``. Pure.

A net gain counts where DPUs carried bytes that took a time which the timer can tell, where the hosts had their chance,
and where the compute that all is measured against was not disturbed. Nothing hides more than all, so that no overall
time is shorter than the compute alone, and a net gain at most 1 - compute / (the best host mode's overall). What goes
beyond that, a compute that got shorter beside a collective, or one far from its calibrated time tell a baseline that
something else slowed. All steps of a case are interleaved, so that a little drift meets them alike: hence the margins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from microbench.record import Metric, Record, shared_machines, shared_words
from reports.load import mapping
from reports.modes import NOT_USED, best_host, modes, offloaded, unused_launches
from reports.summary import too_few

if TYPE_CHECKING:
    from reports.summary import Summary
    from reports.view import View

GAINS, LOSES, UNDECIDED, NOT_JUDGED = "gains", "loses", "undecided", "not judged"
NOTHING = "nothing was offloaded"
DISTURBED = "the compute baseline was disturbed"
NOBODY, HOSTS, DPUS = "nobody", "hosts", "DPUs"
_BEYOND = 0.01  # of the compute: less is what medians of one launch differ by
_OFF_CALIBRATION = 1.25
_FAMILIES = ("host", "probes", "thread", "gloo")
_NEEDED = _FAMILIES[:2]  # what any program can do: without them a gain is over a baseline chosen to lose
_ACCEL = "accel"  # the placement in which nobody computes

Ends = Callable[[str], tuple[float, float] | None]


@dataclass(frozen=True)
class Claim:
    """What is said of one offload mode: on which side it is, why no other, and that in a word or two for a table."""

    side: str
    why: str = ""
    mark: str = ""


@dataclass(frozen=True)
class Trial:
    """A case as it is judged: its metrics, the ends of their intervals, and the records behind it, one a launch."""

    metrics: Mapping[str, Metric]
    ends: Ends
    records: Sequence[Record]

    @classmethod
    def of(cls, v: View, s: Summary) -> Trial:
        """A summary's, over its launches."""
        return cls(s.metrics, s.ends, v.launches(s))

    @classmethod
    def of_record(cls, record: Record) -> Trial:
        """One launch's."""
        return cls(record.metrics, _within(record.metrics), (record,))

    def value(self, name: str) -> float | None:
        """A metric's value, or None."""
        found = self.metrics.get(name)
        return None if found is None else found.value

    @property
    def ceiling(self) -> float | None:
        """The largest net gain that there can be: that of an offload that hides all."""
        compute, best = self.value("compute"), self.value(f"{best_host(self.metrics)}.overall")
        return None if compute is None or not best else 1 - compute / best

    def empty(self, mode: str) -> bool:
        """Whether the mode had no bytes to carry."""
        cut = [mapping(mapping(record.method.get("modes")).get(mode)).get("pieces") for record in self.records]
        return any(record.nbytes == 0 for record in self.records) or 0 in cut

    def carrier(self, mode: str) -> str:
        """Who did a mode's collective: of an offload what the DPUs' own tally says."""
        if not offloaded(mode):
            return HOSTS
        if self.empty(mode):
            return NOBODY
        idle = unused_launches(self.records, mode)
        among = f" in {idle} of {len(self.records)} launches" if idle < len(self.records) else ""
        return f"{NOT_USED}{among}" if idle else DPUS

    def claim(self, mode: str) -> Claim:
        """On which side an offload mode is, of its net gain's whole interval."""
        if why := self._why_not(mode):
            return Claim(NOT_JUDGED, *why)
        if disturbed := self.disturbance(mode):
            return Claim(UNDECIDED, f"{DISTURBED}: {disturbed}", "disturbed")
        if few := too_few(len(self.records)):
            return Claim(UNDECIDED, few, "few launches")
        ends = self.ends(f"{mode}.net_gain")
        if ends is None or ends[0] <= 0 <= ends[1]:
            return Claim(UNDECIDED)
        if ends[1] < 0:
            return Claim(LOSES)
        return Claim(UNDECIDED, self.baseline, "weak baseline") if self._lacking(_NEEDED) else Claim(GAINS)

    def _why_not(self, mode: str) -> tuple[str, str] | None:
        """Why there is no net gain to judge, at length and in a word or two."""
        gain = self.metrics.get(f"{mode}.net_gain")
        if self.empty(mode):
            return NOTHING, "nothing offloaded"
        if unused_launches(self.records, mode):
            return NOT_USED, "not used"
        if shared := not_dpus(self.records):
            return shared, "not a DPU"
        if gain is None or gain.value is None:
            return (gain.note.removeprefix("n/a: ") if gain and gain.note else "no net gain"), "n/a"
        noise_s = max((_number(record.method.get("timer_noise_s")) for record in self.records), default=0.0)
        short = [name for name in (f"{mode}.pure", "host.pure") if (self.value(name) or noise_s) < noise_s]
        return (f"{short[0]} is below the timer's noise", "below noise") if short else None

    def disturbance(self, mode: str) -> str:
        """What says that the compute alone took longer than it should have, or nothing."""
        compute = self.value("compute")
        if compute is None:
            return ""
        if (ratio := median([*map(_off_calibration, self.records)] or [1.0])) > _OFF_CALIBRATION:
            return f"compute took {ratio:.2f} times its calibrated time"
        for name in dict.fromkeys((mode, best_host(self.metrics))):
            overall = self.value(f"{name}.overall")
            if overall is not None and overall < (1 - _BEYOND) * compute:
                return f"{name} with compute took {100 * (1 - overall / compute):.1f} % less than compute alone"
        gain, most = self.value(f"{mode}.net_gain"), self.ceiling
        if gain is not None and most is not None and gain > most + _BEYOND:
            return f"hiding all would gain {100 * most:.1f} %"
        dilation = self.ends(f"{mode}.dilation")
        return "compute was faster beside the collective" if dilation and dilation[1] < -_BEYOND else ""

    @property
    def against(self) -> str:
        """What the net gain is against: by name where that is less than an offload must be set against."""
        if not self._lacking(_NEEDED):
            return "against the best host mode"
        measured = [mode for mode in modes(self.metrics) if not offloaded(mode) and self._timed(mode)]
        return f"against {' and '.join(filter(None, (', '.join(measured[:-1]), *measured[-1:])))} alone"

    @property
    def absent(self) -> str:
        """Which of the hosts' ways were not measured; nothing where all were."""
        lacking = self._lacking(_FAMILIES)
        return f"{', '.join(lacking)} not measured" if lacking else ""

    @property
    def baseline(self) -> str:
        """What the net gain is against, and what was not measured."""
        return ": ".join(filter(None, (self.against, self.absent)))

    def _lacking(self, families: Sequence[str]) -> list[str]:
        there = [mode for mode in modes(self.metrics) if self._timed(mode)]
        return [family for family in families if not any(mode.startswith(family) for mode in there)]

    def _timed(self, mode: str) -> bool:
        return self.value(f"{mode}.overall") is not None


def not_dpus(records: Sequence[Record]) -> str:
    """Why what is called a DPU is none, or nothing: no emulation keeps its ranks from the machine of hosts."""
    shared = dict.fromkeys(machine for record in records for machine in shared_machines(record.hosts, record.roles))
    return shared_words(tuple(shared))


def _within(metrics: Mapping[str, Metric]) -> Ends:
    def ends(name: str) -> tuple[float, float] | None:
        found = metrics.get(name)
        known = found is not None and found.value is not None and found.low is not None and found.high is not None
        return (found.low, found.high) if known else None  # type: ignore[union-attr,return-value]

    return ends


def _off_calibration(record: Record) -> float:
    """How many times its calibrated time the compute took; 1 where the record does not say, or nobody computes."""
    steps, each = _number(record.method.get("compute_steps")), _number(record.method.get("compute_ns_per_step"))
    compute = record.metrics.get("compute")
    if not steps * each or compute is None or compute.value is None or record.method.get("placement") == _ACCEL:
        return 1.0
    return compute.value / (steps * each * 1e-9)


def _number(data: object) -> float:
    return float(data) if isinstance(data, int | float) and not isinstance(data, bool) else 0.0
