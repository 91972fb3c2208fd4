"""Confidence intervals of means and shares."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError, check_number


@dataclass(frozen=True)
class Interval:
    """A figure and the ends of its confidence interval; all three are equal where it is known exactly."""

    value: float
    lower: float
    upper: float

    @classmethod
    def exactly(cls, value: float) -> Interval:
        """Return a figure that has no error."""
        return cls(value, value, value)

    def plain(self) -> dict[str, float | None]:
        """Return the figure as JSON can hold it: what is not known, or infinite, is null."""
        return {name: value if math.isfinite(value) else None for name, value in vars(self).items()}


def check_confidence(confidence: float) -> float:
    """Return the confidence after checking that it lies strictly between 0 and 1."""
    return check_number("confidence", confidence, above=0, below=1)


def normal_quantile(confidence: float) -> float:
    """Return how many standard errors a two-sided interval reaches to either side.

    >>> round(normal_quantile(0.95), 4)
    1.96
    """
    return NormalDist().inv_cdf((1 + check_confidence(confidence)) / 2)


def mean_interval(values: ArrayLike, confidence: float = 0.95) -> Interval:
    """Return the mean of independent values with its interval.

    Zeros and ones get Wilson's interval, which stays within 0 and 1 and has a width where all are alike;
    other numbers Student's.

    >>> mean_interval([0, 1, 1, 1])
    Interval(value=0.75, lower=0.300641842582402, upper=0.9544127391902995)
    """
    array = _checked(values)
    if not ((array == 0) | (array == 1)).all():
        return student_interval(array, confidence)
    return wilson_interval(float(array.mean()), len(array), confidence)


def wilson_interval(share: float, count: float, confidence: float = 0.95) -> Interval:
    """Return a share of so many people with its score interval (Wilson 1927).

    The count need not be whole: for a share with a known variance it is the number of people whose
    share would have the same variance.
    """
    z = normal_quantile(confidence)
    weight = z * z / count
    centre = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * math.sqrt(share * (1 - share) / count + weight / (4 * count))
    return Interval(share, max(centre - half, 0.0), min(centre + half, 1.0))


def exact_interval(hits: float, count: int, confidence: float = 0.95) -> Interval:
    """Return the share of hits with its interval (Clopper and Pearson 1934), which is never too narrow.

    Hits that are a mean over tied people need not be whole: they vary less than whole ones.

    >>> exact_interval(0, 10)
    Interval(value=0.0, lower=0.0, upper=0.3084971078187607)
    """
    from scipy.special import betaincinv

    tail = (1 - check_confidence(confidence)) / 2
    lower = float(betaincinv(hits, count - hits + 1, tail)) if hits > 0 else 0.0
    upper = float(betaincinv(hits + 1, count - hits, 1 - tail)) if hits < count else 1.0
    return Interval(hits / count, lower, upper)


def student_interval(values: ArrayLike, confidence: float = 0.95) -> Interval:
    """Return the mean of independent numbers with the interval of Student (1908); of one nothing is known."""
    from scipy.special import stdtrit

    array = _checked(values)
    check_confidence(confidence)
    mean, count = float(array.mean()), len(array)
    if count == 1:
        return Interval(mean, -math.inf, math.inf)
    quantile = float(stdtrit(count - 1, (1 + confidence) / 2))
    error = quantile * float(array.std(ddof=1)) / math.sqrt(count)
    return Interval(mean, mean - error, mean + error)


def paired_interval(differences: ArrayLike, confidence: float = 0.95) -> Interval:
    """Return the mean of differences between paired zeros and ones, each -1, 0 or 1, with its interval.

    Agresti and Min (2005): half a pair is added to each of the four cells, so that a few pairs that all
    agree prove little.

    >>> paired_interval([1, 1])
    Interval(value=1.0, lower=-0.19295191217483876, upper=1.0)
    """
    array = _checked(differences)
    count = len(array) + 2
    centre = float(array.sum()) / count
    spread = float(np.abs(array).sum()) + 1 - count * centre**2
    half = normal_quantile(confidence) * math.sqrt(spread) / count
    return Interval(float(array.mean()), max(centre - half, -1.0), min(centre + half, 1.0))


def _checked(values: ArrayLike) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array):
        raise InputError("a mean needs at least one value in one dimension.")
    return array
