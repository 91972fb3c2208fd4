"""The step of protocols with fakes as a compiled loop; `fake_data` has it in numpy, with the same bits."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sidelight.foundation.arrays import AnyCodes, Positions, Whole, Words
from sidelight.protocols.fake_data import WHOLE, FakeTables

_HALF = np.uint64(32)
_AT_ONCE = 1024
"""So many people's words stay in the nearest cache while they are compared with every weight."""


@njit(cache=True)
def fill(
    codes: AnyCodes, chosen: NDArray[np.uint32], words: Words, fakes: Words, tables: FakeTables,
    out: NDArray[np.uint16],
) -> None:  # fmt: skip
    """Write the columns of one group: the chosen attribute's randomised response, and fakes of the others.

    `codes` are true values, (people, members); `chosen` is which member is reported, (people,). One word a
    person is for the response, and (members, people) are for the fakes, like `out`.
    """
    said, rows = np.empty(len(words), dtype=np.uint16), np.empty(len(words), dtype=np.int64)
    for i in range(len(words)):
        j = chosen[i]
        code = np.uint64(codes[i, j])
        if words[i] >= tables.truth[j]:
            other = (words[i] - tables.truth[j]) // tables.other[j]
            code = other + np.uint64(other >= code)
        said[i], rows[i] = code, tables.base[j] + np.int64(code)
    for member in range(len(tables.sizes)):
        ends, size = tables.ends[tables.starts[member] :], tables.sizes[member]
        if tables.common[member]:
            _place_by_one(fakes[member], ends, size, out[member])
        else:
            _place_by_rows(fakes[member], ends, rows, size, out[member])
        for i in range(len(words)):
            if chosen[i] == member:
                out[member, i] = said[i]


@njit(cache=True)
def _place_by_one(words: Words, ends: Whole, size: int, out: NDArray[np.uint16]) -> None:
    """Write where the words' upper halves fall between these running weights.

    All people are compared with one weight after the other, several of them in one step.
    """
    for first in range(0, len(words), _AT_ONCE):
        part, said = words[first : first + _AT_ONCE], out[first : first + _AT_ONCE]
        said[:] = 0
        for step in range(size - 1):
            if ends[step] >= WHOLE:  # as are those behind it; no word's upper half reaches that
                break
            end = np.uint64(ends[step]) << _HALF
            for i in range(len(part)):
                said[i] += part[i] >= end


@njit(cache=True)
def _place_by_rows(words: Words, ends: Whole, rows: Positions, size: int, out: NDArray[np.uint16]) -> None:
    """Write where each word's upper half falls between the running weights of its row."""
    for i in range(len(words)):
        word, first = np.int64(words[i] >> _HALF), rows[i] * size
        value = np.int64(0)
        for step in range(size - 1):
            value += np.int64(word >= ends[first + step])
        out[i] = value
