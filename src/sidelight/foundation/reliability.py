"""Whether probabilities are what they claim to be: of the people with 30 %, do 30 % have the value?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sidelight.foundation.arrays import Array
from sidelight.foundation.intervals import Interval, normal_quantile
from sidelight.foundation.ranking import Ranking

BINS = 15
"""Of a reliability diagram, with about as many people each."""


@dataclass(frozen=True, eq=False)
class Reliability:
    """Predicted and true shares of one value, by groups of people with similar predictions.

    Attributes:
        people: (bins,) how many each has; `predicted` and `found` are the mean probability and the share.
        deviation: (bins,) the standard deviation of the share if every probability were right.
    """

    value: str
    people: Array
    predicted: Array
    found: Array
    deviation: Array

    @classmethod
    def of(cls, value: str, ranking: Ranking, bins: int = BINS) -> Reliability:
        """Cut people into bins by their score; tied people stay together."""
        middle = np.cumsum(ranking.people) - ranking.people / 2
        place = bins - 1 - np.minimum((middle * (bins / ranking.total)).astype(np.intp), bins - 1)
        kept = np.bincount(place, minlength=bins) > 0

        def summed(parts: Array) -> Array:
            return np.asarray(np.bincount(place, weights=parts, minlength=bins)[kept])

        people = summed(ranking.people)
        chance = np.clip(ranking.scores, 0.0, 1.0)
        variance = summed(ranking.people * chance * (1 - chance)) / people**2
        predicted, found = summed(ranking.people * ranking.scores), summed(ranking.hits)
        return cls(value, people, predicted / people, found / people, np.sqrt(variance))

    @property
    def error(self) -> float:
        """The expected calibration error (Naeini, Cooper and Hauskrecht 2015): the mean gap."""
        return float(self.people @ np.abs(self.predicted - self.found)) / float(self.people.sum())


@dataclass(frozen=True, eq=False)
class Calibration:
    """Whether probabilities are what they claim to be.

    Attributes:
        error: the expected calibration error, the mean over all values; its interval takes the bins as they
            are.
        chance: what it is on average where every probability is right: so many people in so many bins.
        bins: the reliability of each value.
    """

    error: Interval
    chance: float
    bins: tuple[Reliability, ...]


def calibration_of(rankings: Mapping[str, Ranking], confidence: float) -> Calibration:
    """Return the expected calibration error, the mean over the values.

    The gap of a bin differs from its true one by noise whose sum over the bins bounds the error of the mean
    gap: |sum of |gap| - sum of |true gap|| is at most the sum of |noise|.
    """
    bins = tuple(Reliability.of(value, ranking) for value, ranking in rankings.items())
    if not bins:
        return Calibration(Interval.exactly(0.0), 0.0, ())
    error = float(np.mean([part.error for part in bins]))
    chance, reach = [], []
    for part in bins:
        weight = part.people / part.people.sum()
        noise = np.sqrt(part.found * (1 - part.found) / part.people + 1 / part.people**2)
        spread = math.sqrt(float((1 - 2 / math.pi) * (weight**2 @ noise**2)))
        mean = math.sqrt(2 / math.pi)  # of the absolute value of a standard normal number
        chance.append(mean * float(weight @ part.deviation))
        reach.append(mean * float(weight @ noise) + normal_quantile(confidence) * spread)
    half = float(np.mean(reach))
    interval = Interval(error, max(error - half, 0.0), min(error + half, 1.0))
    return Calibration(interval, float(np.mean(chance)), bins)
