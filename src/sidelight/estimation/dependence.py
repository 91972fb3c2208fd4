"""How strongly two attributes depend on each other: Cramer's V, noise taken out, and mutual information.

V^2 = sum of (t - ab)^2 / (ab) over cells, over (values of the shorter side - 1). Squares of noisy estimates
are too large by their variance, which is known and taken off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sidelight.foundation.arrays import Array

_RAREST = 1e-4
"""A cell expected of fewer people than this share counts as one of so many: nothing is known about it."""


@dataclass(frozen=True)
class PairDependence:
    """How two attributes depend on each other.

    Attributes:
        cramers_v: of the estimated table, 0 (independent) to 1 (one tells the other).
        mutual_information: of the estimated table, in nats.
        unbiased: V squared from unbiased estimates, noise taken off; it may be negative.
        standard_error: of that.
        lower: the lower end of the interval of V, at the confidence of the estimates.
        upper: its upper end.
        probability: how likely the evidence makes it that they depend on each other at all.
    """

    cramers_v: float
    mutual_information: float
    unbiased: float
    standard_error: float
    lower: float
    upper: float
    probability: float


def cramers_v(table: Array) -> float:
    """Return Cramer's V of a table of two attributes.

    >>> cramers_v(np.array([[0.5, 0.0], [0.0, 0.5]]))
    1.0
    """
    apart = np.outer(table.sum(axis=1), table.sum(axis=0))
    square = ((table - apart) ** 2 / np.maximum(apart, 1e-300)).sum() / (min(table.shape) - 1)
    return math.sqrt(min(max(float(square), 0.0), 1.0))


def mutual_information(table: Array) -> float:
    """Return the mutual information of a table of two attributes, in nats.

    >>> round(mutual_information(np.array([[0.5, 0.0], [0.0, 0.5]])), 4)
    0.6931
    """
    apart = np.outer(table.sum(axis=1), table.sum(axis=0))
    held = table > 0
    return max(float((table[held] * np.log(table[held] / apart[held])).sum()), 0.0)


def pair_dependence(
    table: Array, unbiased: Array | None, variance: Array, probability: float, deviations: float
) -> PairDependence:
    """Return the dependence of a pair, and the interval of V that reaches so many standard errors.

    The unbiased table is None where nobody reported the two together: then V may be anything. Otherwise its
    marginals must be the estimate's; the variance is that of its cells beside them.
    """
    stated, told = cramers_v(table), mutual_information(table)
    if unbiased is None:
        return PairDependence(stated, told, 0.0, math.inf, 0.0, 1.0, probability)
    apart = np.outer(table.sum(axis=1), table.sum(axis=0))
    square, error = _square(unbiased - apart, variance, apart)
    # Rare values count less below: that makes V smaller and its noise much smaller, so the end still holds.
    some, its_error = _square(unbiased - apart, variance, np.maximum(apart, 1 / table.size))
    low = max(square - deviations * error, some - deviations * its_error, 0.0)
    high = max(square + deviations * error, 0.0)
    lower, upper = (math.sqrt(min(end, 1.0)) for end in (low, high))
    return PairDependence(
        stated, told, square, error, min(lower, stated), max(upper, stated), probability
    )  # fmt: skip


def _square(gap: Array, variance: Array, apart: Array) -> tuple[float, float]:
    """Return V squared from a table's distance from independence, noise taken off, and its standard error.

    The noise of a cell left over beside the marginals is spread over fewer directions than there are cells.
    """
    scale = 1 / (np.maximum(apart, _RAREST) * (min(gap.shape) - 1))
    free = math.prod(size - 1 for size in gap.shape) / gap.size
    # In the direction of the gap the noise is that of a whole cell, as before the marginals were taken out.
    spread = (
        4 * scale**2 * np.maximum(gap**2 - variance, 0.0) * variance + 2 * (scale * variance) ** 2
    ) / free
    return float((scale * (gap**2 - variance)).sum()), math.sqrt(float(spread.sum()))
