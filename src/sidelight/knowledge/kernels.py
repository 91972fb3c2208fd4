"""The compiled inner loop over all adversaries."""

from __future__ import annotations

import numpy as np
from numba import njit

from sidelight.foundation.arrays import Array, Positions


@njit(cache=True)
def largest_ratio(laws: Array, places: Positions, decays: Array) -> float:
    """Return the largest ratio of densities between two target values, over all known values.

    Args:
        laws: (before, values, behind, sums) masses; known values are before and behind the target's axis.
        places: (values, sums) the point at which each mass lies, its target value included.
        decays: e^-distance from each point to the next.
    """
    before, values, behind, sums = laws.shape
    points = len(decays) + 1
    density, after = np.empty(points), np.empty(points)
    high, low = np.empty(points), np.empty(points)
    best = 1.0
    for a in range(before):
        for b in range(behind):
            seen = 0
            for value in range(values):
                mass = 0.0
                for s in range(sums):
                    mass += laws[a, value, b, s]
                if mass <= 0.0:
                    continue
                density[:] = 0.0
                for s in range(sums):
                    density[places[value, s]] = laws[a, value, b, s] / mass
                _smooth(density, after, decays)
                for p in range(points):
                    if seen == 0 or density[p] > high[p]:
                        high[p] = density[p]
                    if seen == 0 or density[p] < low[p]:
                        low[p] = density[p]
                seen += 1
            if seen < 2:
                continue
            for p in range(points):
                if high[p] > best * low[p]:  # dividing only where it is a new best
                    best = high[p] / low[p]
    return best


@njit(cache=True)
def _smooth(density: Array, after: Array, decays: Array) -> None:
    """Turn masses at the points into densities there: what lies before, the mass itself, what lies after."""
    carried = 0.0
    for p in range(len(density) - 1, -1, -1):
        after[p] = carried
        carried += density[p]
        if p > 0:
            carried *= decays[p - 1]
    carried = 0.0
    for p in range(len(density)):
        carried += density[p]
        density[p] = carried + after[p]
        if p < len(decays):
            carried *= decays[p]
