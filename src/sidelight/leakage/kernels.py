"""Compiled inner loops of the leakage figures."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def _excess(g: NDArray[np.float64], h: NDArray[np.float64], ratio: float) -> float:
    total = 0.0
    for u in range(g.shape[0]):
        total += max(g[u] - ratio * h[u], 0.0)
    return total


@njit(cache=True)
def search_rows(rows: NDArray[np.float64], baseline: float) -> tuple[float, int, int]:
    """Return the largest generic ratio over ordered pairs of rows, and the two rows that reach it."""
    best, likelier, unlikelier = 1.0, 0, 0
    for i in range(rows.shape[0]):
        for j in range(rows.shape[0]):
            while baseline * (1.0 - best) + (1.0 - baseline) * _excess(rows[i], rows[j], best) > 0.0:
                top, bottom = baseline, baseline
                for u in range(rows.shape[1]):
                    if rows[i, u] > best * rows[j, u]:
                        top += (1.0 - baseline) * rows[i, u]
                        bottom += (1.0 - baseline) * rows[j, u]
                if top == 0.0:
                    break
                if bottom == 0.0:
                    return np.inf, i, j
                if not top / bottom > best:
                    break
                best, likelier, unlikelier = top / bottom, i, j
    return best, likelier, unlikelier
