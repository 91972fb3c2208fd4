"""Small numeric steps that estimators share; every one works along the last axis, for many rows at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def to_simplex(values: ArrayLike) -> Array:
    """Return the nearest frequencies: not negative, adding up to 1 (Duchi et al. 2008).

    >>> to_simplex([0.7, 0.6, -0.3]).round(2).tolist()
    [0.55, 0.45, 0.0]
    """
    raw = np.asarray(values, dtype=np.float64)
    given = raw - raw.max(axis=-1, keepdims=True)  # the nearest stay so, and huge values keep their digits
    falling = -np.sort(-given, axis=-1)
    excess = np.cumsum(falling, axis=-1) - 1
    rank = np.arange(1, given.shape[-1] + 1)
    kept = np.count_nonzero(falling - excess / rank > 0, axis=-1, keepdims=True)
    shift = np.take_along_axis(excess, kept - 1, axis=-1) / kept
    return np.asarray(np.maximum(given - shift, 0.0))
