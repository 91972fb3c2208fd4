"""The leakage at delta that holds for every belief: privacy losses added up over all reports.

Whatever the attributes have to do with each other, two records differ in at most all of them. The loss of a
release is then the sum of its reports' losses, which are independent given the record. Each report's loss is
dominated by a law on a few points: three for randomised response over k values (Kairouz, Oh, Viswanath 2015
for two), two for any other report of the same budget (binary randomised response dominates it), with the
report's own delta at infinity. Laws are added on a grid with every loss rounded up, so the result is never
too low (Meiser, Mohammadi 2018; Koskela, Jaelkoe, Honkela 2020).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidelight.leakage.totals.certificate import leakage_of

Array = NDArray[np.float64]
_CELLS = 1 << 17
_ROUNDING = 1e-9
"""A loss this share of a cell above a grid point counts as on it; what that hides is added at the end."""


@dataclass(frozen=True)
class LossLaw:
    """How often a report has a loss of +epsilon, -epsilon, 0 and infinity, at worst.

    Attributes:
        epsilon: the budget of the report.
        gain: the probability of the loss +epsilon.
        none: the probability of the loss 0.
        lost: the probability of an infinite loss.
    """

    epsilon: float
    gain: float
    none: float = 0.0
    lost: float = 0.0

    @classmethod
    def of_response(cls, epsilon: float, size: int) -> LossLaw:
        """Return the loss of randomised response over so many values.

        >>> LossLaw.of_response(1.0, 4).none
        0.3496...
        """
        total = math.exp(epsilon) + size - 1
        return cls(epsilon, math.exp(epsilon) / total, (size - 2) / total)

    @classmethod
    def of_any(cls, epsilon: float, delta: float = 0.0) -> LossLaw:
        """Return a law that dominates the loss of every report of this budget."""
        if math.isinf(epsilon):
            return cls(0.0, 0.0, 0.0, 1.0)
        return cls(epsilon, (1 - delta) / (1 + math.exp(-epsilon)), 0.0, delta)


def composed_leakage(laws: Sequence[LossLaw], delta: float) -> float:
    """Return the leakage at delta of reports with these losses, for every belief.

    >>> round(composed_leakage([LossLaw.of_any(1.0)], 0.0), 9)
    1.0
    """
    lost = -math.expm1(sum(math.log1p(-law.lost) if law.lost < 1 else -math.inf for law in laws))
    if lost > delta:
        return math.inf
    spending = [law for law in laws if law.epsilon > 0]
    budget = sum(law.epsilon for law in spending)
    if not spending:
        return 0.0
    step = _step(spending, budget)
    mass = _added(spending, step)
    losses = step * (np.arange(len(mass)) - len(mass) // 2)
    slack = step * _ROUNDING * len(spending)
    return min(budget, leakage_of(losses, mass, delta - lost) + slack)


def _step(laws: Sequence[LossLaw], budget: float) -> float:
    """Return the width of a cell: the budget itself where all are equal, for then nothing is rounded."""
    budgets = {law.epsilon for law in laws}
    return budgets.pop() if len(budgets) == 1 else 2 * budget / _CELLS


def _added(laws: Sequence[LossLaw], step: float) -> Array:
    """Return the law of the sum, finite losses only, on a grid centred at 0."""
    up = [math.ceil(law.epsilon / step - _ROUNDING) for law in laws]
    down = [math.floor(law.epsilon / step + _ROUNDING) for law in laws]
    half = sum(up)
    mass = np.zeros(2 * half + 1)
    mass[half] = 1.0
    for law, rise, fall in zip(laws, up, down, strict=True):
        rest = max(0.0, 1 - law.gain - law.none - law.lost)
        moved = law.none * mass
        moved[rise:] += law.gain * mass[: len(mass) - rise]
        moved[: len(mass) - fall] += rest * mass[fall:]
        mass = moved
    return mass
