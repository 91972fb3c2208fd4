"""From unbiased estimates, which may be negative, to distributions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def project(cells: Array, total: float = 1.0) -> Array:
    """Return the nearest table of non-negative cells with the given sum (Duchi et al. 2008).

    >>> project(np.array([0.7, 0.5, -0.1])).round(3).tolist()
    [0.6, 0.4, 0.0]
    """
    flat = cells.reshape(-1)
    ranked = -np.sort(-flat)
    excess = (np.cumsum(ranked) - total) / np.arange(1, len(flat) + 1)
    above = np.flatnonzero(ranked > excess)
    if not len(above):  # the cells are so large that doubles lose the total beside them
        return np.where(cells == ranked[0], total / np.count_nonzero(cells == ranked[0]), 0.0)
    return np.asarray(np.maximum(cells - excess[above[-1]], 0.0))


def with_labels(joint: Array, labels: Array) -> Array:
    """Return the nearest joint (values, labels) whose labels have the given frequencies."""
    return np.stack(
        [project(joint[:, i], max(float(weight), 1e-12)) for i, weight in enumerate(labels)], axis=1
    )
