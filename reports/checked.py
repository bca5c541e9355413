"""What records say of their data: which were checked, when, and how near sums came to what is allowed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from microbench.record import Record
from reports.view import number


@dataclass(frozen=True)
class Rounded:
    """The sum of reals that came nearest to its tolerance: both relative to the sum of magnitudes."""

    error: float
    tolerance: float
    dtype: str

    @property
    def text(self) -> str:
        """``float32 sums off by at most 6e-08 of their magnitudes, 1.8e-07 allowed``."""
        return f"{self.dtype} sums off by at most {self.error:.2g} of their magnitudes, {self.tolerance:.2g} allowed"


def checked(records: Iterable[Record]) -> list[Record]:
    """The records whose data was compared with what it had to be, and right."""
    return [r for r in records if r.status == "ok" and r.validation]


def told(records: Iterable[Record]) -> str:
    """That the data of ``records`` was checked, in a few words; empty where none was, as none moved.

    Bytes are those received; what the last timed iteration left is checked where a record says so.
    """
    bytewise = [r for r in checked(records) if number(r.validation.get("checked_bytes")) is not None]
    if not bytewise:
        return ""
    after = sum(number(r.validation.get("checked_after")) is not None for r in bytewise)
    when = "before and after timing" if after == len(bytewise) else "before timing"
    also = f", after it too in {after} of {len(bytewise)} records" if 0 < after < len(bytewise) else ""
    rounded = "".join(f"; {worst.text}" for worst in worst_sums(bytewise))
    return f"every byte of every size, {when}{also}: 0 wrong{rounded}"


def worst_sums(records: Sequence[Record]) -> list[Rounded]:
    """Of each type whose sums round, the record that came nearest to its tolerance."""
    worst: dict[str, Rounded] = {}
    for r in records:
        error, allowed = (number(r.validation.get(name)) for name in ("reals_largest_error", "reals_tolerance"))
        if error is None or not allowed:
            continue
        before = worst.get(r.dtype)
        if before is None or error / allowed > before.error / before.tolerance:
            worst[r.dtype] = Rounded(error, allowed, r.dtype)
    return list(worst.values())
