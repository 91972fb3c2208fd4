"""Means of attributes that are reported as noisy numbers, straight from the sums of the reports."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sidelight.collection.direct import number_parts
from sidelight.collection.numbers import to_simplex
from sidelight.collection.protocol import Aggregated
from sidelight.collection.unbiased import About, Unbiased
from sidelight.mechanisms.cells import InCells


@dataclass(frozen=True)
class Mean:
    """The mean of one attribute's points, the numbers that stand for its values.

    Attributes:
        attribute: its name.
        mean: of the reports, without bias; it may lie outside the points.
        standard_error: of the mean.
        lower: the interval's lower end, not below the least point.
        upper: its upper end, not above the greatest.
        points: the numbers themselves.
    """

    attribute: str
    mean: float
    standard_error: float
    lower: float
    upper: float
    points: tuple[float, ...]

    def to_data(self) -> dict[str, str | float]:
        """Return the figures as plain data."""
        return {name: value for name, value in vars(self).items() if name != "points"}


def means(
    parts: Sequence[Aggregated], found: Mapping[str, Unbiased], deviations: float, about: About
) -> dict[str, Mean]:
    """Return the mean of every attribute that is reported as a number.

    Args:
        parts: what was reported.
        found: the unbiased frequencies, which say how much people differ.
        deviations: how many standard errors an interval reaches.
        about: whether of the people who reported or of their population.
    """
    people = sum(part.people for part in parts)
    result = {}
    for name, mechanism, sums in number_parts(parts):
        asked = math.inf if about == "population" else people
        error = _standard_error(mechanism, found[name], sums.reports, asked)
        mean = mechanism.mean(sums)
        points = mechanism.noise.support
        ends = np.clip([mean - deviations * error, mean + deviations * error], points.min(), points.max())
        result[name] = Mean(name, mean, error, float(ends[0]), float(ends[1]), tuple(points.tolist()))
    return result


def _standard_error(mechanism: InCells, found: Unbiased, reports: int, people: float) -> float:
    """Return the standard error of the mean of so many reports, about the mean of so many people.

    Noise counts in full; how people differ counts as far as not all of them reported the attribute.
    """
    spread = mechanism.noise.spread(to_simplex(found.estimate))
    noise = mechanism.noise.noise_variance * mechanism.noise.step**2
    return math.sqrt((spread + noise) / reports - spread / people)
