"""A mean with its confidence interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

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


def check_confidence(confidence: float) -> float:
    """Return the confidence after checking that it lies strictly between 0 and 1."""
    return check_number("confidence", confidence, above=0, below=1)


def mean_interval(values: ArrayLike, confidence: float = 0.95) -> Interval:
    """Return the mean of independent values with its interval.

    Zeros and ones get Wilson's interval (1927), which stays within 0 and 1 and has a width where all are
    alike; other numbers the normal one.

    >>> mean_interval([0, 1, 1, 1])
    Interval(value=0.75, lower=0.300641842582402, upper=0.9544127391902995)
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array):
        raise InputError("a mean needs at least one value in one dimension.")
    z = NormalDist().inv_cdf((1 + check_confidence(confidence)) / 2)
    mean, count = float(array.mean()), len(array)
    if ((array == 0) | (array == 1)).all():
        return _wilson(mean, count, z)
    error = z * float(array.std(ddof=1)) / math.sqrt(count) if count > 1 else math.inf
    return Interval(mean, mean - error, mean + error)


def _wilson(share: float, count: int, z: float) -> Interval:
    weight = z * z / count
    centre = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * math.sqrt(share * (1 - share) / count + weight / (4 * count))
    return Interval(share, max(centre - half, 0.0), min(centre + half, 1.0))
