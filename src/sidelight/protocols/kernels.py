"""The step of protocols with fakes as a compiled loop; `fake_data` has it in numpy, with the same bits."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sidelight.foundation.arrays import AnyCodes, Words
from sidelight.protocols.fake_data import FakeTables

_HALF = np.uint64(32)


@njit(cache=True)
def fill(
    codes: AnyCodes, chosen: NDArray[np.uint32], words: Words, fakes: Words, tables: FakeTables,
    out: NDArray[np.uint16],
) -> None:  # fmt: skip
    """Write the columns of one group: the chosen attribute's randomised response, and fakes of the others.

    `codes` are true values, (people, members); `chosen` is which member is reported, (people,). One word a
    person is for the response, and (members, people) are for the fakes, like `out`.
    """
    for i in range(len(words)):
        j = chosen[i]
        said = np.uint64(codes[i, j])
        if words[i] >= tables.truth[j]:
            code = said
            said = (words[i] - tables.truth[j]) // tables.other[j]
            said += np.uint64(said >= code)
        row = tables.base[j] + np.int64(said)
        for member in range(len(tables.sizes)):
            if member == j:
                out[member, i] = said
                continue
            word = np.int64(fakes[member, i] >> _HALF)
            size = tables.sizes[member]
            first = tables.starts[member] + row * size
            value = np.int64(0)
            for step in range(size - 1):
                value += np.int64(word >= tables.ends[first + step])
            out[member, i] = value
