"""Means of attributes that are reported as noisy numbers, straight from the sums of the reports."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sidelight.estimation.unbiased import About, Every, Unbiased
from sidelight.mechanisms import Aggregate
from sidelight.mechanisms.binned_numbers import BinnedNumbers
from sidelight.protocols.protocol import Protocol
from sidelight.protocols.records import RecordSums


@dataclass(frozen=True)
class Mean:
    """The mean of one attribute's points, the numbers that stand for its values.

    Attributes:
        attribute: its name.
        mean: of the reports, without bias; it may lie outside the points.
        standard_error: of the mean.
        lower: the interval's lower end, not below the least point unless the mean is.
        upper: its upper end, not above the greatest unless the mean is.
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


def sole_numbers(protocol: Protocol) -> dict[str, BinnedNumbers]:
    """Return the mechanisms of attributes that are reported as a noisy number and in no other way."""
    ways = Counter(name for group in protocol.groups for name in group.names)
    return {
        group.label: group.randomiser.numbers
        for group in protocol.groups
        if group.randomiser.numbers is not None and ways[group.label] == 1
    }


def number_parts(
    parts: Sequence[RecordSums], *, alone: bool = False
) -> list[tuple[str, BinnedNumbers, Aggregate]]:
    """Return the attributes that someone reported as a number (`alone`: only so), with mechanism and sums."""
    numbers = []
    for part in parts:
        sole = sole_numbers(part.protocol)
        for group, sums in zip(part.protocol.groups, part.parts, strict=False):  # sums may be of no group
            if group.randomiser.numbers is not None and sums.reports and (not alone or group.label in sole):
                numbers.append((group.label, group.randomiser.numbers, sums))
    return numbers


def means(parts: Sequence[RecordSums], estimates: Every, deviations: float, about: About) -> dict[str, Mean]:
    """Return the mean of every attribute that is reported as a number.

    The unbiased frequencies say how much people differ; an interval reaches so many standard errors.
    """
    people = math.inf if about == "population" else sum(part.people for part in parts)
    result = {}
    for name, mechanism, sums in number_parts(parts):
        error = _standard_error(mechanism, estimates[name], sums, people)
        mean = mechanism.mean(sums)
        points = mechanism.noise.grid_points
        low, high = _interval(mean, deviations * error, float(points.min()), float(points.max()))
        result[name] = Mean(name, mean, error, low, high, tuple(points.tolist()))
    return result


def _interval(mean: float, reach: float, least: float, most: float) -> tuple[float, float]:
    """Return the interval around a mean, cut to what is possible and widened to hold the mean itself.

    A mean outside the points is first moved to the nearest one, see `Unbiased.interval`.
    """
    near = min(max(mean, least), most)
    return min(max(near - reach, least), mean), max(min(near + reach, most), mean)


def _standard_error(mechanism: BinnedNumbers, item: Unbiased, sums: Aggregate, people: float) -> float:
    """Return the standard error of the mean of the reports, about the mean of so many people.

    Noise counts in full; how people differ counts as far as not all of them reported the attribute. Their
    variance comes from the raw frequencies: projected ones are too even once noise is wide. It is found in
    steps, since squares of the numbers themselves may leave the range of doubles.
    """
    places = mechanism.noise.point_steps
    middle = (places.min() + places.max()) / 2
    mean = sums.sums[-1] / sums.reports - middle
    square = float(item.estimate @ (places - middle) ** 2)
    spread = float(np.clip(square - mean**2, 0.0, (places.max() - places.min()) ** 2 / 4))
    variance = (spread + mechanism.noise.noise_variance) / sums.reports - spread / people
    return math.sqrt(max(variance, 0.0)) * mechanism.noise.step
