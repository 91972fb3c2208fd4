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
_NEVER = 1e-9
"""No cell is expected of fewer people than this share."""


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

    The unbiased table is None where nobody reported the two together: then V may be anything. The variance is
    that of its distance from the product of its own marginals.
    """
    stated, told = cramers_v(table), mutual_information(table)
    if unbiased is None:
        return PairDependence(stated, told, 0.0, math.inf, 0.0, 1.0, probability)
    apart = np.outer(table.sum(axis=1), table.sum(axis=0))
    gap = unbiased - np.outer(unbiased.sum(axis=1), unbiased.sum(axis=0))
    square, error, low, high = _square(gap, variance, np.maximum(apart, _RAREST), deviations)
    # Rare values count less below: that makes V smaller and its noise much smaller, so the end still holds.
    low = max(low, _square(gap, variance, np.maximum(apart, 1 / table.size), deviations)[2])
    whole = _square(gap, variance, np.maximum(apart, _NEVER), deviations)[3]
    high = min(high + _unseen(table, apart), max(whole, high))
    lower, upper = (math.sqrt(min(max(end, 0.0), 1.0)) for end in (low, high))
    return PairDependence(
        stated, told, square, error, min(lower, stated), max(upper, stated), probability
    )  # fmt: skip


def _unseen(table: Array, apart: Array) -> float:
    """Return what cells too rare to count fully may add to V squared: no cell exceeds its row or column."""
    rows, columns = np.broadcast_arrays(table.sum(axis=1)[:, None], table.sum(axis=0))
    most = np.minimum(rows, columns) / np.maximum(np.maximum(rows, columns), _NEVER)
    return float(most[apart < _RAREST].sum() / (min(table.shape) - 1))


def _square(
    gap: Array, variance: Array, apart: Array, deviations: float
) -> tuple[float, float, float, float]:
    """Return V squared from a table's distance from independence, noise off, its error and its interval.

    The noise of a cell left over beside the marginals is spread over fewer directions than there are cells.
    The square before noise is taken off is like noncentral chi-squared; the root of that less half its
    degrees of freedom but one is near normal, with variance 1 wherever the truth lies (Sankaran 1959). So no
    error is taken at an estimate that may have come out small by chance.
    """
    scale = 1 / (apart * (min(gap.shape) - 1))
    free = math.prod(size - 1 for size in gap.shape) / gap.size
    noise, left = scale * variance, scale * np.maximum(gap**2 - variance, 0.0)
    square, first, second = (float(x.sum()) for x in (scale * (gap**2 - variance), noise, noise**2 / free))
    # In the direction of the gap the noise is that of a whole cell, as before the marginals were taken out.
    along = float((left * noise).sum()) / free
    error = math.sqrt(4 * along + 2 * second)
    unit = max(second / first, along / float(left.sum()) if left.any() else 0.0) if first else 0.0
    if not unit:
        return square, error, square, square
    spare = max(first / unit - 1, 0.0) / 2
    root = math.sqrt(max((square + first) / unit - spare, 0.0))
    low, high = (unit * (max(root + sign * deviations, 0.0) ** 2 - spare) for sign in (-1, 1))
    return square, error, low, high
