"""Compiled steps of fits to records: what values say is looked up and added, what records say is counted.

A record has few of all values. Products of matrices would mostly multiply zeros.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Counts = NDArray[np.float64]
Single = NDArray[np.float32]
Rows = NDArray[np.uint32]
"""Without a sign, no index has to be checked for counting from the end."""


@njit(cache=True, nogil=True)
def add_values(steps: Rows, codes: Rows, said: Single, out: Single) -> None:
    """Add up what is said of each record's values, for several classes at once.

    Args:
        steps: (rows, 2) how combinations are made: an earlier row and one more value; row 0 has none.
        codes: (records, groups) the row of the record's combination in each group.
        said: (values, classes).
        out: (records, classes), to which it is added.
    """
    classes = said.shape[1]
    table = np.zeros((steps.shape[0], classes), np.float32)
    for row in range(1, steps.shape[0]):
        earlier, value = steps[row, 0], steps[row, 1]
        for one in range(classes):
            table[row, one] = table[earlier, one] + said[value, one]
    for record in range(codes.shape[0]):
        for group in range(codes.shape[1]):
            row = codes[record, group]
            for one in range(classes):
                out[record, one] += table[row, one]


@njit(cache=True, nogil=True)
def count_values(steps: Rows, codes: Rows, parts: Single, counts: Counts) -> None:
    """Add the part of every record in each class, (records, classes), to the counts of all its values.

    The steps and codes are those of `add_values`, taken the other way round; counts are (values, classes).
    """
    classes = parts.shape[1]
    table = np.zeros((steps.shape[0], classes))
    for record in range(codes.shape[0]):
        for group in range(codes.shape[1]):
            row = codes[record, group]
            for one in range(classes):
                table[row, one] += parts[record, one]
    for row in range(steps.shape[0] - 1, 0, -1):
        earlier, value = steps[row, 0], steps[row, 1]
        for one in range(classes):
            counts[value, one] += table[row, one]
            table[earlier, one] += table[row, one]


@njit(cache=True, nogil=True)
def count_pairs(codes: NDArray[np.int64], parts: Single, least: float, counts: Counts) -> None:
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
