"""The compiled form of `generic`'s search."""

from __future__ import annotations

import numpy as np
from numba import njit

from sidelight.foundation.arrays import Array
from sidelight.mechanisms.channel.generic import SLACK, STEP


@njit(cache=True)
def gain(g: float, h: float, ratio: float) -> float:
    """Return g - ratio h, or a little more: rounded down, it would hide a value that weighs much."""
    difference = g - ratio * h
    return difference + SLACK * g if ratio > 1.0 else difference  # at 1 its sign is right as it is


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def _excess(g: Array, h: Array, ratio: float) -> float:
    total = 0.0
    for u in range(g.shape[0]):
        total += max(gain(g[u], h[u], ratio), 0.0)
    return total


@njit(cache=True)
def search_rows(rows: Array, baseline: float) -> tuple[float, int, int]:
    """Return the largest generic ratio over ordered pairs of rows, and the two rows that reach it."""
    best, likelier, unlikelier = 1.0, 0, 0
    for i in range(rows.shape[0]):
        for j in range(rows.shape[0]):
            probe = best
            while baseline * (1.0 - probe) + (1.0 - baseline) * _excess(rows[i], rows[j], probe) > 0.0:
                top, bottom = baseline, baseline
                for u in range(rows.shape[1]):
                    if rows[i, u] > probe * rows[j, u]:
                        top += (1.0 - baseline) * rows[i, u]
                        bottom += (1.0 - baseline) * rows[j, u]
                if top == 0.0:
                    break
                if bottom == 0.0:
                    return np.inf, i, j
                if top / bottom > probe:
                    best, likelier, unlikelier = top / bottom, i, j
                    probe = best
                else:
                    probe *= 1.0 + STEP
    return best, likelier, unlikelier
