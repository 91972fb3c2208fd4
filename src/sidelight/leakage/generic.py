"""The generic bound: the most that *any* channel with a given budget on U can say about the secret.

CPL, Algorithm 2. For two rows g = Pr(U | x), h = Pr(U | x') and a = e^-epsilon, the largest likelihood
ratio is the maximum over sets S of (a + (1-a) g(S)) / (a + (1-a) h(S)). It is the root H >= 1 of

    a (1 - H) + (1 - a) sum_u max(g_u - H h_u, 0) = 0,

which one pass over u evaluates: no sorting, and a pair that cannot beat the best ratio so far is rejected by
that one pass. The best set for a given H is {u : g_u > H h_u} (Dinkelbach's iteration).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_SMALL = 1 << 24


@dataclass(frozen=True)
class GenericWorst:
    """The worst ordered pair of rows: ln of the ratio, the two rows, and the favoured set as a mask."""

    value: float
    likelier: int
    unlikelier: int
    favoured: NDArray[np.bool_]


def generic_worst(rows: Array, baseline: float) -> GenericWorst:
    """Return the generic bound over all ordered pairs of rows.

    Args:
        rows: (m, t), Pr(U | secret value), each row summing to 1.
        baseline: e^-epsilon; 0 gives the saturation value, which the bound approaches as epsilon grows.
    """
    m, t = rows.shape
    if m * m * t <= _SMALL:
        ratio, likelier, unlikelier = _search(rows, baseline)
    else:
        ratio, likelier, unlikelier = _compiled_search()(np.ascontiguousarray(rows), baseline)
    favoured = favoured_set(rows[likelier], rows[unlikelier], ratio)
    return GenericWorst(math.log(ratio) if ratio < math.inf else math.inf, likelier, unlikelier, favoured)


def favoured_set(g: Array, h: Array, ratio: float) -> NDArray[np.bool_]:
    """Return the set of values whose reports reach `ratio`, the pair's largest."""
    if ratio == math.inf:
        return np.asarray((g > 0) & (h == 0))
    favoured = g > ratio * h
    if favoured.any():
        return np.asarray(favoured)
    return np.asarray((g >= ratio * (1 - 1e-12) * h) & (g > 0))


def generic_pairs(rows: Array, baseline: float) -> Array:
    """Return ln of the largest ratio for every ordered pair of rows, shape (m, m)."""
    return np.array([climb(row, rows, baseline) for row in rows])


def climb(g: Array, rows: Array, baseline: float) -> Array:
    """Return ln of the largest ratio of g to every row, by Dinkelbach's iteration on all of them at once.

    Neither g nor the rows need to sum to 1.
    """
    ratios = np.ones(len(rows))
    climbing = np.arange(len(rows))
    while len(climbing):
        favoured = g > ratios[climbing, None] * rows[climbing]
        top = baseline + (1 - baseline) * (favoured * g).sum(axis=1)
        bottom = baseline + (1 - baseline) * (favoured * rows[climbing]).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            better = np.where(top > 0, top / bottom, 1.0)
        grown = better > ratios[climbing]
        ratios[climbing[grown]] = better[grown]
        climbing = climbing[grown & np.isfinite(better)]
    return np.log(ratios)


def _search(rows: Array, baseline: float) -> tuple[float, int, int]:
    """Return the largest ratio and the rows that reach it, with numpy."""
    best, likelier, unlikelier = 1.0, 0, 0
    for i, row in enumerate(rows):
        excess = np.maximum(row - best * rows, 0).sum(axis=1)
        for j in np.flatnonzero(baseline * (1 - best) + (1 - baseline) * excess > 0):
            ratio = _dinkelbach(row, rows[j], baseline, best)
            if ratio > best:
                best, likelier, unlikelier = ratio, i, int(j)
            if best == math.inf:
                return best, likelier, unlikelier
    return best, likelier, unlikelier


def _dinkelbach(g: Array, h: Array, baseline: float, start: float) -> float:
    """Climb from `start` to the largest ratio of the pair; returns `start` if the pair does not beat it."""
    ratio = start
    while True:
        favoured = g > ratio * h
        top = baseline + (1 - baseline) * float(g[favoured].sum())
        bottom = baseline + (1 - baseline) * float(h[favoured].sum())
        if bottom == 0:
            return math.inf if top > 0 else ratio
        if not top / bottom > ratio:
            return ratio
        ratio = top / bottom


@cache
def _compiled_search() -> Any:
    """Return `_search` compiled; loaded on first use, since loading the compiler takes a while."""
    from sidelight.leakage.kernels import search_rows

    return search_rows
