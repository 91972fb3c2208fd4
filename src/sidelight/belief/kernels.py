"""Compiled sums over the records of a table.

64 releases are taken at once, so that every step is a vector operation long enough to outweigh its start. The
products of each group of attributes are tabled for the combinations of values that occur; a record then costs
one vector product a group, and no exponential.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sidelight.belief.record_sums import CHUNK

Numbers = NDArray[np.floating[Any]]
Rows = NDArray[np.uint32]
"""Without a sign, no index has to be checked for counting from the end."""
LANES = 64


@njit(cache=True)
def put_columns(likelihoods: Numbers, first: int, columns: Numbers) -> None:
    """Put the likelihoods of 64 releases side by side; the last release stands in for missing ones."""
    for value in range(likelihoods.shape[0]):
        for lane in range(LANES):
            columns[value, lane] = likelihoods[value, min(first + lane, likelihoods.shape[1] - 1)]


@njit(cache=True, nogil=True, fastmath={"contract"})
def mix_records(
    likelihoods: Numbers,
    steps: Rows,
    codes: Rows,
    weights: Numbers,
    starts: NDArray[np.int64],
    out: NDArray[np.float64],
    first: int,
    last: int,
) -> None:
    """Write, for each release and each run of records, the weighted sum of products of likelihoods.

    Args:
        likelihoods: (values of all attributes, releases).
        steps: (rows, 2) how the table of products is made: an earlier row times a value's likelihoods.
        codes: (records, groups) the row of the record's product in each group; 3, 4, 6 or a multiple of 4.
        weights: (records,).
        starts: (runs + 1,) where each run of records starts.
        out: (releases, runs).
        first: of the releases to write.
        last: the one after the last of them.
    """
    columns = np.empty((likelihoods.shape[0], LANES), likelihoods.dtype)
    table = np.ones((steps.shape[0], LANES), likelihoods.dtype)
    products = np.empty((CHUNK, LANES), likelihoods.dtype)
    part, total = np.empty(LANES, likelihoods.dtype), np.empty(LANES, np.float64)
    for start in range(first, last, LANES):
        put_columns(likelihoods, start, columns)
        for row in range(1, steps.shape[0]):
            earlier, value = steps[row, 0], steps[row, 1]
            for lane in range(LANES):
                table[row, lane] = table[earlier, lane] * columns[value, lane]
        for run in range(starts.shape[0] - 1):
            total[:] = 0.0
            for low in range(starts[run], starts[run + 1], CHUNK):
                high = min(low + CHUNK, starts[run + 1])
                part[:] = 0.0
                _add(table, codes[low:high], weights[low:high], products, part)
                for lane in range(LANES):
                    total[lane] += part[lane]
            for lane in range(min(LANES, last - start)):
                out[start + lane, run] = total[lane]


# Products written out in one expression stay in registers, which makes them several times faster.


@njit(cache=True, fastmath={"contract"})
def _add(table: Numbers, codes: Rows, weights: Numbers, products: Numbers, part: Numbers) -> None:
    """Add the weighted products of a chunk of records to `part`."""
    if codes.shape[1] == 3:
        for record in range(len(codes)):
            weight = weights[record]
            a, b, c = codes[record, 0], codes[record, 1], codes[record, 2]
            for lane in range(LANES):
                part[lane] += (weight * table[a, lane]) * (table[b, lane] * table[c, lane])
    elif codes.shape[1] == 4:
        for record in range(len(codes)):
            weight = weights[record]
            a, b, c, d = codes[record, 0], codes[record, 1], codes[record, 2], codes[record, 3]
            for lane in range(LANES):
                part[lane] += (weight * table[a, lane] * table[b, lane]) * (table[c, lane] * table[d, lane])
    elif codes.shape[1] == 6:
        for record in range(len(codes)):
            weight = weights[record]
            a, b, c = codes[record, 0], codes[record, 1], codes[record, 2]
            d, e, f = codes[record, 3], codes[record, 4], codes[record, 5]
            for lane in range(LANES):
                left = weight * table[a, lane] * table[b, lane] * table[c, lane]
                part[lane] += left * (table[d, lane] * table[e, lane] * table[f, lane])
    elif codes.shape[1] == 8:
        for record in range(len(codes)):
            weight = weights[record]
            a, b, c, d = codes[record, 0], codes[record, 1], codes[record, 2], codes[record, 3]
            e, f, g, h = codes[record, 4], codes[record, 5], codes[record, 6], codes[record, 7]
            for lane in range(LANES):
                left = (weight * table[a, lane] * table[b, lane]) * (table[c, lane] * table[d, lane])
                part[lane] += left * ((table[e, lane] * table[f, lane]) * (table[g, lane] * table[h, lane]))
    else:
        _add_many(table, codes, weights, products, part)


@njit(cache=True, fastmath={"contract"})
def _add_many(table: Numbers, codes: Rows, weights: Numbers, products: Numbers, part: Numbers) -> None:
    """Do as `_add` for any multiple of four groups, four at a time; the products so far are kept."""
    last = codes.shape[1] - 4
    for record in range(len(codes)):
        products[record] = weights[record]
    for group in range(0, last, 4):
        for record in range(len(codes)):
            a, b = codes[record, group], codes[record, group + 1]
            c, d = codes[record, group + 2], codes[record, group + 3]
            for lane in range(LANES):
                right = table[c, lane] * table[d, lane]
                products[record, lane] *= (table[a, lane] * table[b, lane]) * right
    for record in range(len(codes)):
        a, b = codes[record, last], codes[record, last + 1]
        c, d = codes[record, last + 2], codes[record, last + 3]
        for lane in range(LANES):
            left = products[record, lane] * table[a, lane] * table[b, lane]
            part[lane] += left * (table[c, lane] * table[d, lane])


@njit(cache=True, nogil=True)
def mix_logarithms(
    likelihoods: NDArray[np.float64],
    steps: Rows,
    codes: Rows,
    weights: NDArray[np.float64],
    starts: NDArray[np.int64],
    out: NDArray[np.float64],
    first: int,
    last: int,
) -> None:
    """Do as `mix_records`, with the logarithms of likelihoods, weights and sums, for products of any size.

    Slower by an exponential for each record and release.
    """
    columns, table = np.empty((likelihoods.shape[0], LANES)), np.zeros((steps.shape[0], LANES))
    logs = np.empty((CHUNK, LANES))
    for start in range(first, last, LANES):
        put_columns(likelihoods, start, columns)
        for row in range(1, steps.shape[0]):
            earlier, value = steps[row, 0], steps[row, 1]
            for lane in range(LANES):
                table[row, lane] = table[earlier, lane] + columns[value, lane]
        for run in range(starts.shape[0] - 1):
            top = np.full(LANES, -np.inf)
            total = np.zeros(LANES)
            for low in range(starts[run], starts[run + 1], CHUNK):
                high = min(low + CHUNK, starts[run + 1])
                for record in range(low, high):
                    logs[record - low] = weights[record]
                    for group in range(codes.shape[1]):
                        row = codes[record, group]
                        for lane in range(LANES):
                            logs[record - low, lane] += table[row, lane]
                _add_exponentials(logs[: high - low], top, total)
            for lane in range(min(LANES, last - start)):
                out[start + lane, run] = top[lane] + np.log(total[lane])


@njit(cache=True)
def _add_exponentials(logs: NDArray[np.float64], top: Numbers, total: Numbers) -> None:
    """Add e^logs to running totals that are kept as multiples of e^top, top being the largest so far."""
    for lane in range(LANES):
        highest = max(top[lane], logs[:, lane].max())
        if highest == -np.inf:
            continue
        total[lane] *= np.exp(top[lane] - highest)
        top[lane] = highest
        for record in range(logs.shape[0]):
            total[lane] += np.exp(logs[record, lane] - highest)
