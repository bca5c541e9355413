"""What is timed, in which order and how often: pure arithmetic.

A round runs every step once, as a block of iterations, so that drift of the machine meets all steps alike. The
first iteration of a block is kept apart: caches, idle connections and waiting ranks are not what they are later.
"""

from __future__ import annotations

from dataclasses import dataclass

PROBES = 16
COMPUTE = "compute"
STEPS = (COMPUTE, "host.pure", "host.overall", "probes16.overall", "staged.pure", "staged.overall")
MODES = ("host", "probes16", "staged")


def mode(step: str) -> str:
    """The mode that a step belongs to: ``staged`` of ``staged.pure``."""
    return step.partition(".")[0]


def overlapped(step: str) -> bool:
    """Whether the step computes while its collective is under way."""
    return step.endswith(".overall")


def offloaded(step: str) -> bool:
    """Whether the DPUs run the step's collective."""
    return mode(step) == "staged"


def probes(step: str) -> int:
    """How many MPI_Test are spread over the step's compute."""
    return PROBES if mode(step) == "probes16" else 0


def chunks(work: int, pieces: int) -> list[int]:
    """``work`` cut into ``pieces`` that differ by at most 1 and add up to it."""
    return [work * (i + 1) // pieces - work * i // pieces for i in range(pieces)]


def work_steps(target_ns: float, ns_per_step: float) -> int:
    """The fixed count of work that takes ``target_ns`` alone; 0 only for no target at all."""
    return max(1, round(target_ns / ns_per_step)) if target_ns > 0 else 0


@dataclass(frozen=True)
class Rounds:
    """``count`` rounds of blocks of ``block`` timed iterations, each after one that is kept apart."""

    count: int
    block: int = 2

    @property
    def iterations(self) -> int:
        """Timed iterations of each step."""
        return self.count * self.block


def plan(set_s: float, budget_s: float, fewest: int, most: int) -> Rounds:
    """Rounds that fit ``budget_s`` when one iteration of all steps takes ``set_s``.

    There are at least ``fewest`` timed iterations, whatever they take, and at most ``most``, both rounded to
    whole rounds: up, and down.
    """
    block = Rounds(1).block
    fit = int(budget_s / max(set_s * (block + 1), 1e-9))
    return Rounds(max(1, -(-fewest // block), min(fit, most // block)))
