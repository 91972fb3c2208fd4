"""Compiled sums over the records of a table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from sidelight.belief.views import CHUNK

Numbers = NDArray[np.floating[Any]]
Rows = NDArray[np.int32]
_LANES = 32


@njit(cache=True, parallel=True, fastmath={"contract"})
def mix_records(
    likelihoods: Numbers,
    members: NDArray[np.int32],
    codes: NDArray[np.int32],
    weights: Numbers,
    starts: NDArray[np.int64],
    out: NDArray[np.float64],
) -> None:
    """Write, for each release and each run of records, the weighted sum of products of likelihoods.

    32 releases are taken at once. The products of each group of attributes are tabled for the combinations
    that occur, so that a record costs one vector product a group and no exponential.

    Args:
        likelihoods: (releases, values of all attributes), in one line, at most 1.
        members: (combinations, attributes) which values a combination has; -1 where it has no more.
        codes: (records, groups) the record's combination in each group; an even number of groups.
        weights: (records,).
        starts: (runs + 1,) where each run of records starts.
        out: (releases, runs).
    """
    releases, values = likelihoods.shape
    groups = codes.shape[1]
    for block in prange((releases + _LANES - 1) // _LANES):
        first = block * _LANES
        columns = np.empty((values, _LANES), likelihoods.dtype)
        for lane in range(_LANES):
            release = min(first + lane, releases - 1)
            for value in range(values):
                columns[value, lane] = likelihoods[release, value]
        table = np.empty((members.shape[0], _LANES), likelihoods.dtype)
        for row in range(members.shape[0]):
            for lane in range(_LANES):
                table[row, lane] = columns[members[row, 0], lane]
            for place in range(1, members.shape[1]):
                value = members[row, place]
                if value >= 0:
                    for lane in range(_LANES):
                        table[row, lane] *= columns[value, lane]
        part = np.empty(_LANES, likelihoods.dtype)
        total = np.empty(_LANES, np.float64)
        for run in range(starts.shape[0] - 1):
            total[:] = 0.0
            for low in range(starts[run], starts[run + 1], CHUNK):
                part[:] = 0.0
                high = min(low + CHUNK, starts[run + 1])
                if groups == 2:
                    _add_two(table, codes, weights, low, high, part)
                elif groups == 4:
                    _add_four(table, codes, weights, low, high, part)
                elif groups == 6:
                    _add_six(table, codes, weights, low, high, part)
                else:
                    _add_many(table, codes, weights, low, high, part)
                for lane in range(_LANES):
                    total[lane] += part[lane]
            for lane in range(min(_LANES, releases - first)):
                out[first + lane, run] = total[lane]


# Products written out in one expression stay in registers, which makes them several times faster.


@njit(cache=True, fastmath={"contract"})
def _add_two(table: Numbers, codes: Rows, weights: Numbers, low: int, high: int, part: Numbers) -> None:
    for record in range(low, high):
        weight, a, b = weights[record], codes[record, 0], codes[record, 1]
        for lane in range(_LANES):
            part[lane] += weight * table[a, lane] * table[b, lane]


@njit(cache=True, fastmath={"contract"})
def _add_four(table: Numbers, codes: Rows, weights: Numbers, low: int, high: int, part: Numbers) -> None:
    for record in range(low, high):
        weight = weights[record]
        a, b, c, d = codes[record, 0], codes[record, 1], codes[record, 2], codes[record, 3]
        for lane in range(_LANES):
            part[lane] += weight * table[a, lane] * table[b, lane] * table[c, lane] * table[d, lane]


@njit(cache=True, fastmath={"contract"})
def _add_six(table: Numbers, codes: Rows, weights: Numbers, low: int, high: int, part: Numbers) -> None:
    for record in range(low, high):
        weight = weights[record]
        a, b, c = codes[record, 0], codes[record, 1], codes[record, 2]
        d, e, f = codes[record, 3], codes[record, 4], codes[record, 5]
        for lane in range(_LANES):
            first = weight * table[a, lane] * table[b, lane] * table[c, lane]
            part[lane] += first * (table[d, lane] * table[e, lane] * table[f, lane])


@njit(cache=True, fastmath={"contract"})
def _add_many(table: Numbers, codes: Rows, weights: Numbers, low: int, high: int, part: Numbers) -> None:
    products = np.empty((CHUNK, _LANES), table.dtype)
    for record in range(low, high):
        row = products[record - low]
        weight, a, b = weights[record], codes[record, 0], codes[record, 1]
        for lane in range(_LANES):
            row[lane] = weight * table[a, lane] * table[b, lane]
    for group in range(2, codes.shape[1], 2):
        for record in range(low, high):
            row = products[record - low]
            a, b = codes[record, group], codes[record, group + 1]
            for lane in range(_LANES):
                row[lane] *= table[a, lane] * table[b, lane]
    for record in range(high - low):
        for lane in range(_LANES):
            part[lane] += products[record, lane]
