"""Compiled messages along a tree, from the leaves to the root, of 64 releases at once."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sidelight.belief.kernels import LANES, put_columns

Single = NDArray[np.float32]


@njit(cache=True, fastmath={"contract"})
def _carry(rows: Single, said: Single, messages: Single) -> None:
    """Write the sums of what is said about a child's values, weighted by their chances, (rows, lanes).

    Two rows of chances and four values in one expression: what is loaded once serves several products.
    """
    count, size = rows.shape
    messages[:count] = 0.0
    for row in range(0, count, 2):
        # of an odd number the last row is carried twice, the second time in vain
        other = min(row + 1, count - 1)
        one, two = messages[row], messages[len(messages) - 1] if other == row else messages[other]
        for value in range(0, size - size % 4, 4):
            a, b, c, d = rows[row, value], rows[row, value + 1], rows[row, value + 2], rows[row, value + 3]
            e, f = rows[other, value], rows[other, value + 1]
            g, h = rows[other, value + 2], rows[other, value + 3]
            for lane in range(LANES):
                p, q = said[value, lane], said[value + 1, lane]
                r, s = said[value + 2, lane], said[value + 3, lane]
                one[lane] += (a * p + b * q) + (c * r + d * s)
                two[lane] += (e * p + f * q) + (g * r + h * s)
        for value in range(size - size % 4, size):
            a, e = rows[row, value], rows[other, value]
            for lane in range(LANES):
                one[lane] += a * said[value, lane]
                two[lane] += e * said[value, lane]


@njit(cache=True, nogil=True, fastmath={"contract"})
def pass_messages(
    likelihoods: Single, edges: NDArray[np.int64], chances: Single, out: Single, first: int, last: int
) -> None:
    """Write what all reports say about the root's values.

    Args:
        likelihoods: (values of all attributes that are released, releases).
        edges: (edges, 6), children before their parents: the first row and the number of values of a child,
            the same of its parent (rows beyond those of the likelihoods are of what is not released), where
            the child's chances begin, and whether the parent has been told anything before.
        chances: of all children's values given each value of their parents, in one line.
        out: (values of the root, releases); the root is the parent of the last edge.
        first: of the releases to write.
        last: the one after the last of them.
    """
    root = edges[-1, 2]
    said = np.empty((max(likelihoods.shape[0], (edges[:, 2] + edges[:, 3]).max()), LANES), np.float32)
    messages = np.empty((edges[:, 3].max() + 1, LANES), np.float32)
    for start in range(first, last, LANES):
        put_columns(likelihoods, start, said)
        for edge in range(len(edges)):
            child, size, parent, above, at, is_told = edges[edge]
            rows = chances[at : at + above * size].reshape(above, size)
            _carry(rows, said[child : child + size], messages)
            if is_told:
                for value in range(above):
                    for lane in range(LANES):
                        said[parent + value, lane] *= messages[value, lane]
            else:
                said[parent : parent + above] = messages[:above]
        for value in range(len(out)):
            for lane in range(min(LANES, last - start)):
                out[value, start + lane] = said[root + value, lane]
