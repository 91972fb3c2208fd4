"""The largest likelihood ratio that a report which favours a set of values can reach.

For two rows g = Pr(U | x), h = Pr(U | x') and a report that makes the values of a set S likelier than the
others by the factor 1/a, the ratio is (a + (1-a) g(S)) / (a + (1-a) h(S)). Its maximum over all sets S is
what *any* channel with budget epsilon = -ln a on U can reach (CPL, Algorithm 2). It is the root H >= 1 of

    a (1 - H) + (1 - a) sum over S of (g_u - H h_u) = 0,   S the best set for H,

which one pass over u evaluates: no sorting, and a pair of rows that cannot beat the best ratio so far is
rejected by that one pass. The best set for a given H is {u : g_u > H h_u}, or, where reports favour exactly w
values, the w largest g_u - H h_u, negative ones included. Climbing from H to the ratio of its best set is
Dinkelbach's iteration.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from sidelight.foundation.arrays import Array, Mask, Positions
from sidelight.mechanisms.channel.logs import log_spans, logs_of

SMALL_SEARCH = 1 << 22
"""Searches over so many cells are done with numpy, larger ones compiled."""
_LARGEST_STACK = 1 << 24
"""Pairs climb together up to so many cells."""
LEAST_BASELINE = 1e-300
SLACK = 1e-15
"""Above the rounding of g - ratio h where the two nearly cancel, as a share of g."""
STEP = 4e-15
"""How far past a ratio the climb looks, above the slack, so that a value that reached the ratio lets go."""


@dataclass(frozen=True)
class Worst:
    """The largest log-ratio between two rows: the one under which a report is likelier, and the other one.

    `report` is what names that report: the values it favours (see `Channel.named`).
    """

    value: float
    likelier: int
    unlikelier: int
    report: Positions


def worst_column(logs: Array) -> Worst:
    """Return the largest difference within a column, the two rows that it lies between, and the column."""
    spans = log_spans(logs)
    report = int(spans.argmax())
    column = logs[:, report]
    return Worst(float(spans[report]), int(column.argmax()), int(column.argmin()), np.array([report]))


def baseline_at(budget: float) -> float:
    """Return e^-budget; 0, which can only raise a figure, where doubles would lose its digits."""
    baseline = math.exp(-budget)
    return baseline if baseline > LEAST_BASELINE else 0.0


def all_sets(size: int) -> Array:
    """Return every set of values as a column of 0 and 1, shape (size, 2^size)."""
    return ((np.arange(1 << size) >> np.arange(size)[:, None]) & 1).astype(np.float64)


def generic_worst(rows: Array, baseline: float, width: int | None = None) -> Worst:
    """Return the largest ratio over all ordered pairs of rows and all favoured sets.

    Args:
        rows: (m, t), Pr(U | secret value), each row summing to 1.
        baseline: e^-epsilon; 0 gives the saturation value, which the figure approaches as epsilon grows.
        width: how many values a report favours; any number if None.
    """
    m, t = rows.shape
    if width is None and baseline == 0:
        return _saturated(rows)
    if width is None and m * m * t > SMALL_SEARCH:
        from sidelight.mechanisms.channel.kernels import search_rows  # loading the compiler takes a while

        ratio, likelier, unlikelier = search_rows(np.ascontiguousarray(rows), baseline)
    else:
        ratio, likelier, unlikelier = _search(rows, baseline, width)
    favoured = np.flatnonzero(favoured_set(rows[likelier], rows[unlikelier], ratio, width))
    return Worst(math.log(ratio) if ratio < math.inf else math.inf, likelier, unlikelier, favoured)


def _saturated(rows: Array) -> Worst:
    """Return the largest ratio where a report may rule values out.

    Then the ratio of a set is at most that of one of its values, and logarithms hold what doubles do not.
    """
    worst = worst_column(logs_of(rows))
    with np.errstate(over="ignore"):
        favoured = favoured_set(rows[worst.likelier], rows[worst.unlikelier], float(np.exp(worst.value)))
    return replace(worst, report=np.flatnonzero(favoured))


def generic_pairs(rows: Array, baseline: float, width: int | None = None) -> Array:
    """Return ln of the largest ratio for every ordered pair of rows, shape (m, m)."""
    m, t = rows.shape
    some = max(1, _LARGEST_STACK // (m * t))
    parts = [climb(rows[i : i + some, None], rows[None], baseline, width) for i in range(0, m, some)]
    return np.concatenate(parts)


def climb(g: Array, h: Array, baseline: float | Array, width: int | None = None) -> Array:
    """Return ln of the largest ratio of every row of g to the row of h beside it.

    `g` and `h` broadcast against each other, values on the last axis; `baseline` broadcasts against the rest.
    All pairs climb together, each until no set does better than a ratio a hair above.
    """
    if width is None and not np.any(baseline):
        g, h = logs_of(g), logs_of(h)
        gains = np.subtract(g, h, where=g > -math.inf, out=np.zeros(np.broadcast_shapes(g.shape, h.shape)))
        return np.asarray(np.maximum(gains.max(axis=-1), 0.0))
    ratios = np.ones(np.broadcast_shapes(g.shape, h.shape)[:-1])
    probes = ratios
    while True:
        finite = np.where(np.isfinite(probes), probes, 0.0)
        gains = g - finite[..., None] * h
        favoured = _best_set(gains, width)
        top = baseline + (1 - baseline) * (favoured * g).sum(axis=-1)
        bottom = baseline + (1 - baseline) * (favoured * h).sum(axis=-1)
        left = np.isfinite(probes) & (top > 0) & (_excess(gains, g, baseline, finite, width) > 0)
        if not left.any():
            return np.log(ratios)
        with np.errstate(divide="ignore", invalid="ignore"):
            better = top / bottom  # 0 / 0 compares as false below and so never counts as growth
        grown = left & (better > probes)
        ratios = np.where(grown, better, ratios)
        # Where the sum found a better set but its ratio rounds to the same number, look a hair further:
        # otherwise the loop would never end, or would end below the truth.
        probes = np.where(grown, better, np.where(left, probes * (1 + STEP), probes))


def favoured_set(g: Array, h: Array, ratio: float, width: int | None = None) -> Mask:
    """Return the set of values whose reports reach `ratio`, the pair's largest."""
    if ratio == math.inf:
        certain = (g > 0) & (h == 0)
        if not certain.any():  # finite, but too large for doubles
            certain = np.arange(len(g)) == np.argmax(logs_of(g) - np.where(g > 0, logs_of(h), 0.0))
        return certain if width is None else _largest(np.where(h == 0, g, -h), width)
    if width is not None:
        return _largest(g - ratio * h, width)
    favoured = g > ratio * h
    if favoured.any():
        return np.asarray(favoured)
    # The ratio was rounded itself, so its set is sought a hair below.
    return np.asarray((g >= ratio * (1 - 1e-12) * h) & (g > 0))


def _best_set(gains: Array, width: int | None) -> Mask:
    return np.asarray(gains > 0) if width is None else _largest(gains, width)


def _excess(
    gains: Array, g: Array, baseline: float | Array, ratios: Array | float, width: int | None
) -> Array:
    """Return a (1 - H) + (1 - a) times the gains g - H h of the best set for each H, and never less."""
    # Rounded down, the gain of a heavy value could hide behind its own rounding error and end the climb
    # early. At a ratio of 1 the difference g - h is exact enough for its sign to be right.
    gains = gains + np.where(np.greater(ratios, 1), SLACK, 0.0)[..., None] * g
    if width is None:
        sums = np.maximum(gains, 0).sum(axis=-1)
    else:
        sums = np.where(_largest(gains, width), gains, 0.0).sum(axis=-1)
    return np.asarray(baseline * (1 - ratios) + (1 - baseline) * sums)


def _largest(gains: Array, width: int) -> Mask:
    """Mark the `width` largest of the last axis."""
    chosen = np.zeros(gains.shape, dtype=np.bool_)
    if width >= gains.shape[-1]:
        return ~chosen
    places = np.argpartition(-gains, width - 1, axis=-1)[..., :width]
    np.put_along_axis(chosen, places, True, axis=-1)
    return chosen


def _search(rows: Array, baseline: float, width: int | None) -> tuple[float, int, int]:
    """Return the largest ratio and the rows that reach it, with numpy."""
    best, likelier, unlikelier = 1.0, 0, 0
    for i, row in enumerate(rows):
        for j in np.flatnonzero(_excess(row - best * rows, row, baseline, best, width) > 0):
            ratio = _dinkelbach(row, rows[j], baseline, best, width)
            if ratio > best:
                best, likelier, unlikelier = ratio, i, int(j)
            if best == math.inf:
                return best, likelier, unlikelier
    return best, likelier, unlikelier


def _dinkelbach(g: Array, h: Array, baseline: float, start: float, width: int | None) -> float:
    """Climb from `start` to the largest ratio of the pair; returns `start` if the pair does not beat it."""
    ratio = probe = start  # `climb` for one pair, in half its time: most rows have few pairs left to try
    while _excess(gains := g - probe * h, g, baseline, probe, width) > 0:
        favoured = _best_set(gains, width)
        top = baseline + (1 - baseline) * float(g[favoured].sum())
        bottom = baseline + (1 - baseline) * float(h[favoured].sum())
        if bottom == 0:
            return math.inf if top > 0 else ratio
        if top / bottom > probe:
            ratio = probe = top / bottom
        else:
            probe *= 1 + STEP
    return ratio
