"""Channels that add noise to a number."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from sidelight.foundation.arrays import Array, Positions
from sidelight.foundation.errors import InputError, check_number
from sidelight.mechanisms.channel.channel import Channel, check_delta
from sidelight.mechanisms.channel.sets import SetChannel
from sidelight.mechanisms.exact import store
from sidelight.schema import Attribute


@dataclass(frozen=True, eq=False)
class ContinuousChannel(Channel):
    """Noise added to a number: a point stands for each value, shape (size,).

    The scale is Laplace's, or the Gaussian standard deviation; the budget is that of any two numbers within
    the bounds, and fails with probability delta.
    """

    points: Array
    scale: float
    epsilon: float
    delta: float = 0.0
    size: int = field(init=False, repr=False)
    method = "noise on the values' points"
    is_listable = False

    def __post_init__(self) -> None:
        points = np.asarray(self.points, dtype=np.float64)
        if points.ndim != 1 or not points.size or not np.isfinite(points).all():
            raise InputError("`points` must be finite numbers, one for each value; some are not.")
        scale = check_number("scale", self.scale, above=0)
        epsilon = check_number("epsilon", self.epsilon, at_least=0, infinite=True)
        delta = check_delta(self.delta)
        store(self, points=points, size=len(points), scale=scale, epsilon=epsilon, delta=delta)

    @abstractmethod
    def log_density(self, reports: ArrayLike) -> Array:
        """Return ln of the density of each report given each value, shape (reports, size)."""

    def likelihood(self, report: float) -> Array:
        """Return the density of a report for every value, up to a common factor, shape (size,)."""
        logs = self.log_density([report])[0]
        return np.asarray(np.exp(logs - logs.max()))

    def matrix(self) -> Array:
        """Refuse: there are infinitely many reports."""
        raise InputError("the reports of this channel are numbers; it has a density, not a matrix.")

    def _distances(self, reports: ArrayLike) -> Array:
        return np.abs(np.asarray(reports, dtype=np.float64)[:, None] - self.points) / self.scale


@dataclass(frozen=True, eq=False)
class LaplaceChannel(ContinuousChannel):
    """Laplace noise added to a number.

    Between two neighbouring points the ratio of two mixtures of Laplace densities is monotone in the report,
    so it is largest at a point or at one end of the line. `all_columns` lists those reports: first the points
    in their order, then the ends far below and far above all of them.
    """

    claim = "exact"

    def log_density(self, reports: ArrayLike) -> Array:
        """Return ln of the density of each report given each value, shape (reports, size)."""
        return np.asarray(-self._distances(reports) - math.log(2 * self.scale))

    def count_reports(self) -> float:
        """Return how many reports can be worst."""
        return float(self.size + 2)

    def all_columns(self) -> Array:
        """Return the likelihoods of the reports that can be worst, shape (size, size + 2)."""
        return np.exp(self.all_logs())

    def all_logs(self) -> Array:
        """Return the logarithms of `all_columns`, also of likelihoods too small for doubles."""
        points = self.points / self.scale
        # Far out all likelihoods vanish; what stays is their ratios, so each end is scaled to its largest.
        ends = np.stack([-points + points.min(), points - points.max()], axis=1)
        return np.concatenate([-np.abs(points[:, None] - points), ends], axis=1)

    def describe(self, attribute: Attribute, named: Positions) -> str:
        """Say where on the line the report lies."""
        report = int(named[0])
        if report < self.size:
            return f"{attribute.name} reported at {attribute.values[report]}"
        return f"{attribute.name} reported far {'below' if report == self.size else 'above'} all values"

    @property
    def _most(self) -> float:
        return self.epsilon


@dataclass(frozen=True, eq=False)
class GaussianChannel(ContinuousChannel, SetChannel):
    """Gaussian noise added to a number; of its law leakage uses epsilon and delta only.

    Its ratios are unbounded, so figures are those of the worst channel of this budget, and fail with
    probability delta.
    """

    favours_every_set = False  # its reports are numbers: sets only bound what they can say

    def log_density(self, reports: ArrayLike) -> Array:
        """Return ln of the density of each report given each value, shape (reports, size)."""
        lost = math.log(self.scale * math.sqrt(2 * math.pi))
        return np.asarray(-(self._distances(reports) ** 2) / 2 - lost)

    stacked_worst = Channel.stacked_worst
