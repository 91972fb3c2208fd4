"""Figures that rest on few records, replaced by what group privacy alone says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sidelight.knowledge.adversary import Adversary
from sidelight.knowledge.noise import NoiseChoice
from sidelight.leakage.bounds import Bound

SUPPRESSED = "group privacy alone; the figure rests on too few records to show"


def shown(bound: Bound, group: Bound, min_support: int) -> Bound:
    """Return a figure, or the group bound unless the figure is known to rest on enough records."""
    return replace(group, method=SUPPRESSED) if _is_hidden(bound, min_support) else bound


def shown_noise(noise: NoiseChoice, targets: Sequence[str], min_support: int) -> NoiseChoice:
    """Return the least noise, or what group privacy takes where the worst figure rests on too few records."""
    if not _is_hidden(noise.leakage, min_support):
        return noise
    bound = Bound(noise.limit, "certified", SUPPRESSED)
    return replace(noise, scale=noise.group_scale, adversary=Adversary(targets[0]), leakage=bound)


def _is_hidden(bound: Bound, min_support: int) -> bool:
    return min_support > 0 and (bound.support is None or bound.support < min_support)
