"""Projection to the simplex: from unbiased estimates, which may be negative, to frequencies."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sidelight.foundation.arrays import Array


def to_simplex(values: ArrayLike, total: float = 1.0, *, shift: bool = True) -> Array:
    """Return the nearest numbers that are not negative and add up to the total (Duchi et al. 2008).

    It works along the last axis, for many rows at once.

    >>> to_simplex([0.7, 0.6, -0.3]).round(2).tolist()
    [0.55, 0.45, 0.0]

    Args:
        values: the estimates.
        total: what the result adds up to.
        shift: whether the largest value is subtracted first. It changes only the last bits, but these decide
            between splits of a decision tree that are equally good: there the values stay as they are, so
            that the same answers give the same tree as in earlier versions.
    """
    raw = np.asarray(values, dtype=np.float64)
    # A common shift does not change what is nearest, and without the largest, huge values keep their digits.
    given = raw - raw.max(axis=-1, keepdims=True) if shift else raw
    falling = -np.sort(-given, axis=-1)
    excess = np.cumsum(falling, axis=-1) - total
    rank = np.arange(1, given.shape[-1] + 1)
    kept = np.count_nonzero(falling - excess / rank > 0, axis=-1, keepdims=True)
    if not kept.all():  # the values are so large that doubles lose the total beside them
        return to_simplex(raw, total)
    least = np.take_along_axis(excess, kept - 1, axis=-1) / kept
    return np.asarray(np.maximum(given - least, 0.0))
