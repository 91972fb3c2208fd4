"""Densities of a noisy answer, in logarithms so that no tail is lost.

The answer's density is a mixture of Laplace densities, one at each possible sum. Between two neighbouring
sums the ratio of two such mixtures is (a z + b) / (c z + d) with z = e^(2r/lambda), which is monotone, and
beyond the outermost sums it is constant: the largest ratio is reached at one of the sums. The same holds for
each coordinate of a vector, so there the grid of all coordinates' values is enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sidelight.foundation.arrays import Array, Positions


@dataclass(frozen=True)
class Spread:
    """The largest log-ratio within a group of laws, its two rows, and the place on the (flattened) grid."""

    value: float
    likelier: int
    unlikelier: int
    point: int


def smooth(masses: Array, places: Array, axis: int = -1) -> Array:
    """Return the log-densities at the places of the masses, up to a common constant.

    Masses are ln of the probabilities of each place along `axis`; places increase, in units of the scale.
    """
    rows = np.moveaxis(masses, axis, -1)
    # What lies before a place decays towards it from the left, what lies after it from the right; a mass at
    # the place itself is counted once, with what lies before.
    before = np.logaddexp.accumulate(rows + places, axis=-1) - places
    after = np.full_like(before, -np.inf)
    reached = np.logaddexp.accumulate((rows - places)[..., ::-1], axis=-1)[..., ::-1]
    after[..., :-1] = reached[..., 1:] + places[:-1]
    return np.moveaxis(np.logaddexp(before, after), -1, axis)


def normalised(masses: Array) -> Array:
    """Return each row of log-masses as a law, rows without mass unchanged; the first axis counts rows."""
    flat = masses.reshape(len(masses), -1)
    total = np.logaddexp.reduce(flat, axis=1)
    usable = np.where(np.isfinite(total), total, 0.0)
    return np.asarray((flat - usable[:, None]).reshape(masses.shape))


def widest(densities: Array, starts: Positions) -> Spread:
    """Return the largest log-ratio between two rows of one group, from log-densities (rows, points).

    Groups are contiguous, `starts` is the first row of each.
    """
    gaps = np.maximum.reduceat(densities, starts) - np.minimum.reduceat(densities, starts)
    group, point = divmod(int(gaps.argmax()), gaps.shape[1])
    stop = starts[group + 1] if group + 1 < len(starts) else len(densities)
    first, value = int(starts[group]), float(gaps[group, point])
    column = densities[first:stop, point]
    if math.isnan(value):
        raise ArithmeticError("the laws of the answer have no ratio at some point")
    return Spread(max(0.0, value), first + int(column.argmax()), first + int(column.argmin()), point)
