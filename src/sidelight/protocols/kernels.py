"""The step of hidden choices as a compiled loop; `hidden` has the same step in numpy, with the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Words = NDArray[np.uint64]
Whole = NDArray[np.int64]

_HALF = np.uint64(32)
_ZERO = np.uint64(0)


@njit(cache=True)
def fill(
    codes: NDArray[np.unsignedinteger[Any]],
    chosen: NDArray[np.uint32],
    words: Words,
    truth: Words,
    other: Words,
    fakes: Words,
    ends: Whole,
    starts: Whole,
    base: Whole,
    sizes: Whole,
    out: NDArray[np.uint16],
) -> None:
    """Write the columns of one group: the chosen attribute's randomised response, and fakes of the others.

    Args:
        codes: (people, members) true values.
        chosen: (people,) which member is reported.
        words: (people,) for the randomised response.
        truth: (members,) how many words keep the true value.
        other: (members,) how many words report a particular other value.
        fakes: (members, people) words for the fakes.
        ends: the running weights of every member's fakes, flat.
        starts: (members,) where a member's weights begin in `ends`.
        base: (members,) the row of a chosen member's first value; 0 where reports do not matter.
        sizes: (members,) numbers of values.
        out: (members, people).
    """
    members = len(sizes)
    for i in range(len(words)):
        j = chosen[i]
        code = np.uint64(codes[i, j])
        said = code
        if words[i] >= truth[j]:
            said = (words[i] - truth[j]) // other[j]
            said += np.uint64(said >= code)
        row = base[j] + np.int64(said)
        for other_member in range(members):
            if other_member == j:
                out[other_member, i] = said
                continue
            word = np.int64(fakes[other_member, i] >> _HALF)
            size = sizes[other_member]
            first = starts[other_member] + row * size
            value = np.int64(0)
            for step in range(size - 1):
                value += np.int64(word >= ends[first + step])
            out[other_member, i] = value
