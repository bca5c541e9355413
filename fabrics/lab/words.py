"""A lab in words: what is the same for all its members once, what differs by member. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fabrics.lab.config import LabConfig


def by_member(words: Mapping[str, str], all_members: Sequence[str]) -> str:
    """``h0 fast, h1 slow``, or one word alone where it holds for all of ``all_members``."""
    if set(words) == set(all_members) and len(set(words.values())) == 1:
        return next(iter(words.values()))
    return ", ".join(f"{member} {word}" for member, word in words.items())


def shares(parts: Mapping[str, float], config: LabConfig) -> str:
    """Fractions by member as percentages: ``d0 25 %``, or ``25 %`` where all members have it."""
    return by_member({member: f"{100 * part:g} %" for member, part in parts.items()}, config.members)


def quotas(cpus: Mapping[str, float], speeds: Mapping[str, float], config: LabConfig) -> str:
    """Quotas as percentages of a core, with the speed that was measured under each where it was:
    ``d0 26 % (measured speed 25.1 %)``.
    """  # noqa: D205 - what it looks like is one line
    words = {
        member: f"{100 * share:.4g} %" + (f" (measured speed {100 * speeds[member]:.3g} %)" if member in speeds else "")
        for member, share in cpus.items()
    }
    return by_member(words, config.members)


def held_back(
    config: LabConfig, loss: Mapping[str, float], cpus: Mapping[str, float], speeds: Mapping[str, float]
) -> list[str]:
    """What beside its rate holds a fabric's members back: packets lost, quotas in shares of a core."""
    lost = [f"packets lost on arrival: {shares(loss, config)}"] if loss else []
    return lost + ([f"CPU quota: {quotas(cpus, speeds, config)}"] if cpus else [])
