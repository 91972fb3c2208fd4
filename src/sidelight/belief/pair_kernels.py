"""Compiled counts of pairs of values among people who belong to a class in part."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Counts = NDArray[np.float64]


@njit(cache=True, nogil=True)
def count_pairs(codes: NDArray[np.int64], parts: NDArray[np.float32], least: float, counts: Counts) -> None:
    """Add the part of every person to the counts of all pairs of that person's values.

    Args:
        codes: (people, attributes), numbered so that no two attributes share a number.
        parts: (people,) how much of each person belongs to the class.
        least: people with no larger part are left out.
        counts: (values, values), symmetric.
    """
    for person in range(codes.shape[0]):
        part = parts[person]
        if part > least:
            for one in range(codes.shape[1]):
                row = codes[person, one]
                for other in range(one + 1):
                    counts[row, codes[person, other]] += part
    for row in range(counts.shape[0]):
        for column in range(row):
            both = counts[row, column] + counts[column, row]
            counts[row, column], counts[column, row] = both, both
