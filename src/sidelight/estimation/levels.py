"""Estimates from people who chose different levels of privacy: one estimate for each level, then their mean.

Weights 1/v_l have the least variance, but estimate everybody only if level and value are independent. If not,
as where the careful have more to hide, each level must count by its people, n_l/n; that is the default.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sidelight.estimation.averaging import average
from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError, invalid
from sidelight.mechanisms import Aggregate, Mechanism


@dataclass(frozen=True, eq=False)
class LevelEstimates:
    """Unbiased frequencies over all levels.

    Attributes:
        frequencies: (values,)
        standard_errors: (values,) about those who reported; about their population where levels are taken
            for independent of values, for only then do the levels estimate the same.
        weights: (levels,) how much each level counts.
        by_level: (levels, values) the estimates of each.
        adds_up: whether every level's estimates add up to 1 by themselves.
    """

    frequencies: Array
    standard_errors: Array
    weights: Array
    by_level: Array
    adds_up: bool = True

    @property
    def posterior_means(self) -> Array:
        """The frequencies with the least error to expect, on the simplex; they are not unbiased."""
        return average(self.frequencies, self.standard_errors**2, adds_up=self.adds_up)


def combine_levels(
    levels: Sequence[tuple[Mechanism, Aggregate]], *, independent: bool = False
) -> LevelEstimates:
    """Return the frequencies over people of several levels.

    Args:
        levels: the mechanism of each level, and the sums of its people's reports.
        independent: whether a person's level says nothing about the value; if it does, the estimates are
            biased towards the levels with less noise.
    """
    sizes = {mechanism.size for mechanism, _ in levels}
    if len(sizes) != 1:
        raise invalid("levels", "at least one, all over the same values", [m.size for m, _ in levels])
    if any(aggregate.reports < 1 for _, aggregate in levels):
        raise InputError("a level has no reports; leave it out.")
    by_level = np.array([mechanism.estimate(aggregate) for mechanism, aggregate in levels])
    people = np.array([aggregate.reports for _, aggregate in levels], dtype=np.float64)
    weights = _least_variance(levels) if independent else people / people.sum()
    frequencies = weights @ by_level
    likely = np.clip(frequencies, 0.0, 1.0)
    variances = np.array([mechanism.variance(part.reports, likely) for mechanism, part in levels])
    if independent:  # each level is a sample of its own
        variances += likely * (1 - likely) / people[:, None]
    adds_up = all(mechanism.adds_up for mechanism, _ in levels)
    return LevelEstimates(frequencies, np.sqrt(weights**2 @ variances), weights, by_level, adds_up)


def _least_variance(levels: Sequence[tuple[Mechanism, Aggregate]]) -> Array:
    """Return weights in proportion to 1/v_l, v_l the noise of a rare value: they depend on no report."""
    rare = [mechanism.variance(part.reports, np.zeros(mechanism.size)).mean() for mechanism, part in levels]
    weights = 1 / np.asarray(rare, dtype=np.float64)
    return np.asarray(weights / weights.sum())
