"""Compiled inner loops of the totals: over a tree, and over large tables of two values on every axis."""

from __future__ import annotations

import numpy as np
from numba import njit

from sidelight.foundation.arrays import Array, Positions
from sidelight.mechanisms.channel.generic import STEP
from sidelight.mechanisms.channel.kernels import gain

_TILE = 8
"""So many columns of a table are worked on at a time: a cache line."""
_TINY = 1e-290


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def _boxed_excess(g: Array, h: Array, low: Array, high: Array, ratio: float) -> float:
    """Return the largest (g - ratio h).v over the messages v between `low` and `high`."""
    total = 0.0
    for u in range(g.shape[0]):
        more = gain(g[u], h[u], ratio)
        total += max(more, 0.0) * high[u] + min(more, 0.0) * low[u]
    return total


@njit(cache=True)
def _climb_box(g: Array, h: Array, low: Array, high: Array, start: float) -> float:
    """Return the largest g.v / h.v over the box by Dinkelbach's iteration, or `start` if that is larger.

    One heavy value can round g.v / h.v to its own g / h, however much the others add, so the climb ends only
    where no message is left that does better than a ratio a hair above.
    """
    ratio = probe = start
    while probe < np.inf and _boxed_excess(g, h, low, high, probe) > 0.0:
        top, bottom = 0.0, 0.0
        for u in range(g.shape[0]):
            value = high[u] if g[u] > probe * h[u] else low[u]
            top += g[u] * value
            bottom += h[u] * value
        if top == 0.0:
            break
        if bottom == 0.0:
            return np.inf
        if top / bottom > probe:
            ratio = probe = top / bottom
        else:
            probe *= 1.0 + STEP
    return ratio


@njit(cache=True)
def _most_telling(tops: Array, bottoms: Array) -> int:
    """Return the report whose ratio is the largest before any message is known."""
    found, best = 0, 0.0
    for y in range(tops.shape[0]):
        if tops[y] > best * bottoms[y]:
            found, best = y, (tops[y] / bottoms[y] if bottoms[y] > 0.0 else np.inf)
    return found


@njit(cache=True)
def box_ratios(weighted: Array, masses: Array, lows: Array, highs: Array) -> Array:
    """Return, for every ordered pair of rows, the largest over reports of the least over boxes of the ratio.

    Every box holds all messages and so proves a bound: a report is done with as soon as one box shows that it
    cannot beat the reports before it. So the report goes first that tells the rows apart best by itself, and
    so does the box that was the last to decide.

    Args:
        weighted: (reports, m, t), Pr(value | x) Pr(report | value) up to a factor for each report.
        masses: (m, reports), the sums over the values.
        lows: (boxes, t), the least message of each box.
        highs: (boxes, t), the largest message of each box.
    """
    count = masses.shape[0]
    found = np.ones((count, count))
    decisive = 0
    for i, j in np.ndindex((count, count)):
        best, first = 1.0, _most_telling(masses[i], masses[j])
        for step in range(weighted.shape[0]):
            y = (first + step) % weighted.shape[0]
            g, h = weighted[y, i], weighted[y, j]
            least = _climb_box(g, h, lows[decisive], highs[decisive], best)
            for b in range(lows.shape[0]):
                if least <= best:
                    break
                if least == np.inf or _boxed_excess(g, h, lows[b], highs[b], least) < 0.0:
                    value = _climb_box(g, h, lows[b], highs[b], best)
                    if value < least:
                        least, decisive = value, b
            best = max(best, least)
        found[i, j] = best
    return found


@njit(cache=True)
def mix_pairs(cells: Array, out: Array, stride: int, columns: Array) -> None:
    """Replace the two values on an axis of a flat table by the two reports of its channel, in `out`."""
    keep, lie = columns[0, 0], columns[1, 0]
    other, kept = columns[0, 1], columns[1, 1]
    for start in range(0, cells.shape[0], 2 * stride):
        low, high = cells[start : start + stride], cells[start + stride : start + 2 * stride]
        first, second = out[start : start + stride], out[start + stride : start + 2 * stride]
        for i in range(stride):
            x, y = low[i], high[i]
            first[i] = keep * x + lie * y
            second[i] = other * x + kept * y


@njit(cache=True)
def mix_in_place(cells: Array, stride: int, columns: Array) -> None:
    """Do what `mix_pairs` does, in place: the processor must know that there is one table."""
    keep, lie = columns[0, 0], columns[1, 0]
    other, kept = columns[0, 1], columns[1, 1]
    for start in range(0, cells.shape[0], 2 * stride):
        low, high = cells[start : start + stride], cells[start + stride : start + 2 * stride]
        for i in range(stride):
            x, y = low[i], high[i]
            low[i] = keep * x + lie * y
            high[i] = other * x + kept * y


@njit(cache=True)
def _mix_last(cells: Array, outer: Array, inner: Array) -> None:
    """Do what `mix_in_place` does of the last two axes at once: alone, they are too short to be fast."""
    for i in range(0, cells.shape[0], 4):
        a, b, c, d = cells[i], cells[i + 1], cells[i + 2], cells[i + 3]
        first, second = inner[0, 0] * a + inner[1, 0] * b, inner[0, 1] * a + inner[1, 1] * b
        third, fourth = inner[0, 0] * c + inner[1, 0] * d, inner[0, 1] * c + inner[1, 1] * d
        cells[i], cells[i + 1] = (
            outer[0, 0] * first + outer[1, 0] * third,
            outer[0, 0] * second + outer[1, 0] * fourth,
        )
        cells[i + 2], cells[i + 3] = (
            outer[0, 1] * first + outer[1, 1] * third,
            outer[0, 1] * second + outer[1, 1] * fourth,
        )


@njit(cache=True)
def lone_extremes(
    table: Array, first: Array, second: Array, steps: Positions, found: Array, where: Positions
) -> None:
    """Find the largest and the smallest ratio of the two values on some axes, in turn the only one not mixed.

    The table has two values on every axis. The axes in question are among those of its rows; those of its
    columns are mixed once. Then a few columns at a time go through all steps: they stay in the processor's
    cache, where whole tables would not.

    Args:
        table: (2^axes, 2^others), mixed in place.
        first: (axes, 2, 2) the likelihoods of each axis of the rows.
        second: (others, 2, 2) those of each axis of the columns.
        steps: (steps, 3) from which table of the room to which an axis is mixed; -1 in the first place asks
            for the ratios of an axis.
        found: (axes, 2) the largest and the smallest ratio of the first value to the second.
        where: (axes, 2) the cell of the first value at which each is.
    """
    rows, columns = table.shape
    single = second.shape[0] - 2 * (second.shape[0] >= 2)
    for row in range(rows):
        for axis in range(single):
            mix_in_place(table[row], columns >> (axis + 1), second[axis])
        if single < second.shape[0]:
            _mix_last(table[row], second[single], second[single + 1])
    width = min(_TILE, columns)
    room = np.empty((steps[:, 1].max() + 1, rows * width))
    found[:, 0], found[:, 1] = 0.0, np.inf
    for tile in range(0, columns, width):
        for row in range(rows):
            for column in range(width):
                room[0, row * width + column] = table[row, tile + column]
        for source, target, axis in steps:
            stride = (rows >> (axis + 1)) * width
            if source < 0:
                cells = _note_extremes(room[target], stride, found[axis])
                for side in range(2):
                    if cells[side] >= 0:
                        where[axis, side] = cells[side] // width * columns + tile + cells[side] % width
            elif source == target:
                mix_in_place(room[target], stride, first[axis])
            else:
                mix_pairs(room[source], room[target], stride, first[axis])


@njit(cache=True, fastmath={"nnan", "nsz", "contract"})
def _is_beyond(cells: Array, stride: int, most: float, least: float) -> bool:
    """Whether some ratio is above the most or below the least, both finite, without dividing.

    So it is, too, where a cell is so small that a product beside it may have been rounded to 0.
    """
    above, below = 0.0, 0.0
    tiny = _TINY if least > 0.0 else -1.0
    for start in range(0, cells.shape[0], 2 * stride):
        low, high = cells[start : start + stride], cells[start + stride : start + 2 * stride]
        for i in range(stride):
            above = max(above, low[i] - most * high[i])
            below = max(below, high[i] if low[i] < tiny else least * high[i] - low[i])
    return above > 0.0 or below > 0.0


@njit(cache=True, error_model="numpy", fastmath={"nnan", "nsz"})
def _plain_extremes(cells: Array, stride: int) -> tuple[float, float, float]:
    """Return the largest and the smallest ratio, which count if the least cell, the third, is not 0.

    Then no ratio can be "not a number", so several are worked out at a time.
    """
    most, least, cell = 0.0, np.inf, np.inf
    for start in range(0, cells.shape[0], 2 * stride):
        low, high = cells[start : start + stride], cells[start + stride : start + 2 * stride]
        for i in range(stride):
            cell = min(cell, low[i], high[i])
            ratio = low[i] / high[i]
            most = max(most, ratio)
            least = min(least, ratio)
    return most, least, cell


@njit(cache=True)
def _extremes(cells: Array, stride: int) -> tuple[float, float]:
    """Return the largest and the smallest ratio, leaving out reports that neither value sends."""
    most, least = 0.0, np.inf
    for start in range(0, cells.shape[0], 2 * stride):
        low, high = cells[start : start + stride], cells[start + stride : start + 2 * stride]
        for i in range(stride):
            if high[i] > 0.0:
                ratio = low[i] / high[i]
                most = max(most, ratio)
                least = min(least, ratio)
            elif low[i] > 0.0:
                most = np.inf
    return most, least


@njit(cache=True)
def _note_extremes(cells: Array, stride: int, found: Array) -> tuple[int, int]:
    """Widen the largest and smallest ratio of the two values on an axis; return the cells where they grew.

    Reports that neither value sends are left out; -1 is for no cell.
    """
    is_finite = found[1] <= found[0] < np.inf  # at first, the smallest is infinite
    if is_finite and not _is_beyond(cells, stride, found[0], found[1]):
        return -1, -1
    most, least, cell = _plain_extremes(cells, stride)
    if not cell > 0.0:
        most, least = _extremes(cells, stride)
    grown, shrunk = most > found[0], least < found[1]
    if not (grown or shrunk):
        return -1, -1
    at_most = at_least = -1
    for start in range(0, cells.shape[0], 2 * stride):
        for i in range(start, start + stride):
            low_cell, high_cell = cells[i], cells[i + stride]
            if low_cell > 0.0 or high_cell > 0.0:
                ratio = low_cell / high_cell if high_cell > 0.0 else np.inf
                if grown and ratio == most:
                    at_most = i
                if shrunk and ratio == least:
                    at_least = i
    found[0], found[1] = max(found[0], most), min(found[1], least)
    return at_most, at_least
