"""Compiled inner loops of the totals: over a tree, and over large tables of two values on every axis."""

from __future__ import annotations

import numpy as np
from numba import njit

from sidelight.foundation.arrays import Array, Positions
from sidelight.mechanisms.channel.generic import STEP
from sidelight.mechanisms.channel.kernels import gain

_TILE = 16
"""So many columns of a table are worked on at a time: two cache lines."""
_RUN = 1 << 13
"""So many cells in a row are worked on at a time: what the nearest cache holds beside a little more."""
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
def mix_axes(cells: Array, columns: Array) -> None:
    """Do what `mix_in_place` does of the last axes of a flat table, (axes, 2, 2).

    Runs of cells go through all axes at once that lie within them: they stay in the processor's cache.
    """
    count = columns.shape[0]
    run = min(cells.shape[0], _RUN)
    strides = [1 << (count - 1 - axis) for axis in range(count)]
    inner = 0
    while inner < count and 2 * strides[inner] > run:
        mix_in_place(cells, strides[inner], columns[inner])
        inner += 1
    single = count - 2 * (count - inner >= 2)
    for start in range(0, cells.shape[0], run):
        part = cells[start : start + run]
        for axis in range(inner, single):
            mix_in_place(part, strides[axis], columns[axis])
        if single < count:
            _mix_last(part, columns[single], columns[single + 1])


@njit(cache=True)
def lone_extremes(
    table: Array, first: Array, second: Array, steps: Positions, found: Array, where: Positions
) -> None:
    """Find the largest and the smallest ratio of the two values on some axes, in turn the only one not mixed.

    The table has two values on every axis. The axes in question are among those of its rows; those of its
    columns are mixed once. Then a few columns at a time go through all steps: they stay in the processor's
    cache, where whole tables would not. Both ends go first, as the extremes of many tables are there.

    Args:
        table: (2^axes, 2^others), mixed in place.
        first: (axes, 2, 2) the likelihoods of each axis of the rows.
        second: (others, 2, 2) those of each axis of the columns.
        steps: (steps, 4) from which table of the room to which an axis is mixed; -1 in the first place asks
            for the ratios of an axis, and of another one behind it, if that is not -1.
        found: (axes, 2) the largest and the smallest ratio of the first value to the second.
        where: (axes, 2) the cell of the first value at which each is.
    """
    rows, columns = table.shape
    mix_axes(table.reshape(-1), second)
    width = min(_TILE, columns)
    strides = np.array([(rows >> (axis + 1)) * width for axis in range(first.shape[0])])
    room = np.empty((steps[:, 1].max() + 2, rows * width))
    found[:, 0], found[:, 1] = 0.0, np.inf
    for turn in range(columns // width):
        tile = columns - width if turn == 1 else max(turn - 1, 0) * width
        for row in range(rows):
            for column in range(width):
                room[0, row * width + column] = table[row, tile + column]
        for source, target, axis, other in steps:
            if source < 0:
                grown = _note_axes(room[target:], strides, axis, other, first, found)
                for place in range(grown.shape[0]):
                    for side in range(2):
                        cell = grown[place, side]
                        if cell >= 0:
                            at = cell // width * columns + tile + cell % width
                            where[axis if place == 0 else other, side] = at
            elif source == target:
                mix_in_place(room[target], strides[axis], first[axis])
            else:
                mix_pairs(room[source], room[target], strides[axis], first[axis])


@njit(cache=True)
def _note_axes(
    room: Array, strides: Positions, axis: int, other: int, columns: Array, found: Array
) -> Positions:
    """Widen the extreme ratios on the axes of the first table that are not mixed: one, or two in turn.

    Two are looked at together first, which mostly is enough. Returns the cells where ratios grew, a row for
    each of the two axes; see `_note_extremes`.
    """
    grown = np.full((2, 2), -1)
    if other < 0:
        grown[0] = _note_extremes(room[0], strides[axis], found[axis])
    elif not (
        _is_finite(found[axis])
        and _is_finite(found[other])
        and not _is_pair_beyond(
            room[0], strides[axis], strides[other], columns[axis], columns[other], found[axis], found[other]
        )
    ):
        mix_pairs(room[0], room[1], strides[other], columns[other])
        grown[0] = _note_extremes(room[1], strides[axis], found[axis])
        mix_pairs(room[0], room[1], strides[axis], columns[axis])
        grown[1] = _note_extremes(room[1], strides[other], found[other])
    return grown


@njit(cache=True)
def _is_finite(found: Array) -> bool:
    """Whether some ratio was found, and none is infinite."""
    return bool(found[1] <= found[0] < np.inf)  # at first, the smallest is infinite


@njit(cache=True, fastmath={"nnan", "nsz", "contract"})
def _is_outside(low: float, high: float, most: float, least: float) -> bool:
    """Whether the ratio of two numbers is above the most or below the least, both finite, without dividing.

    So it is, too, where the first is so small that a product beside it may have been rounded to 0. There
    are no branches, so the processor takes several numbers in one step.
    """
    tiny = _TINY if least > 0.0 else -1.0
    return bool((low > most * high) | (low < least * high) | ((low < tiny) & (high > 0.0)))


@njit(cache=True, fastmath={"nnan", "nsz", "contract"})
def _is_beyond(cells: Array, stride: int, extremes: Array) -> bool:
    """Whether the ratio of the two values on an axis is anywhere outside; see `_is_outside`."""
    outside, (most, least) = np.int64(0), extremes
    for start in range(0, cells.shape[0], 2 * stride):
        low, high = cells[start : start + stride], cells[start + stride : start + 2 * stride]
        for i in range(stride):
            outside |= np.int64(_is_outside(low[i], high[i], most, least))
    return bool(outside != 0)


@njit(cache=True, fastmath={"nnan", "nsz", "contract"})
def _is_pair_beyond(
    cells: Array, wide: int, narrow: int, wide_columns: Array, narrow_columns: Array,
    wide_extremes: Array, narrow_extremes: Array,
) -> bool:  # fmt: skip
    """Whether a ratio on one of two axes is anywhere outside where the other one is mixed.

    `wide` and `narrow` are the strides of the two axes; the first one is the larger.
    """
    outside = np.int64(0)
    (wide_most, wide_least), (narrow_most, narrow_least) = wide_extremes, narrow_extremes
    for block in range(0, cells.shape[0], 2 * wide):
        for start in range(block, block + wide, 2 * narrow):
            below = start + wide
            cells_00, cells_01 = cells[start : start + narrow], cells[start + narrow : start + 2 * narrow]
            cells_10, cells_11 = cells[below : below + narrow], cells[below + narrow : below + 2 * narrow]
            for i in range(narrow):
                x00, x01, x10, x11 = cells_00[i], cells_01[i], cells_10[i], cells_11[i]
                for report in range(2):
                    low = narrow_columns[0, report] * x00 + narrow_columns[1, report] * x01
                    high = narrow_columns[0, report] * x10 + narrow_columns[1, report] * x11
                    outside |= np.int64(_is_outside(low, high, wide_most, wide_least))
                    low = wide_columns[0, report] * x00 + wide_columns[1, report] * x10
                    high = wide_columns[0, report] * x01 + wide_columns[1, report] * x11
                    outside |= np.int64(_is_outside(low, high, narrow_most, narrow_least))
    return bool(outside != 0)


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
    if _is_finite(found) and not _is_beyond(cells, stride, found):
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
