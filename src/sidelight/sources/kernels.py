"""Compiled loops that code columns and count sets of attributes; they run without the interpreter's lock.

`codebook` and `counter` hold the same steps in numpy for small inputs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from sidelight.foundation.arrays import AnyCodes, Array, Whole, Words

_BLOCK = 4096


def _set_bits(typing_context, word):  # type: ignore[no-untyped-def]  # noqa: ARG001
    """Return how many bits of a word are set, by the processor's own instruction."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]  # noqa: ARG001
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


_ones: Any = intrinsic(_set_bits)


@njit(cache=True, nogil=True)
def look_up(column: AnyCodes, table: NDArray[np.int32], out: AnyCodes) -> bool:
    """Write `table[value]` for each value of a column; return whether all of them are codes."""
    fine = True
    for i in range(column.shape[0]):
        code = table[column[i]]
        fine &= code >= 0
        out[i] = code
    return fine


@njit(cache=True, nogil=True)
def place(values: Array, edges: Array, out: AnyCodes) -> int:
    """Write how many edges are at or below each number; return how many are not numbers (they get 0)."""
    missing = 0
    for begin in range(0, values.shape[0], _BLOCK):
        part, codes = values[begin : begin + _BLOCK], out[begin : begin + _BLOCK]
        codes[:] = 0
        for edge in edges:
            for i in range(part.shape[0]):
                codes[i] += part[i] >= edge
        for i in range(part.shape[0]):
            missing += part[i] != part[i]
    return missing


@njit(cache=True, nogil=True)
def count_together(bitmaps: Words, terms: NDArray[np.int32], counts: Whole) -> None:
    """Add to `counts` (terms,) in how many records all bits of a term are set.

    The bitmaps are (bitmaps, words), and the terms (terms, 3) name those of each; -1 where there is none.
    """
    for term in range(terms.shape[0]):
        total = np.uint64(0)
        first, second, third = terms[term]
        a = bitmaps[first]
        if second < 0:
            for i in range(a.shape[0]):
                total += _ones(a[i])
        elif third < 0:
            b = bitmaps[second]
            for i in range(a.shape[0]):
                total += _ones(a[i] & b[i])
        else:
            b, c = bitmaps[second], bitmaps[third]
            for i in range(a.shape[0]):
                total += _ones(a[i] & b[i] & c[i])
        counts[term] += np.int64(total)


@njit(cache=True, nogil=True)
def count_tables(
    codes: AnyCodes,
    starts: NDArray[np.int32],
    members: NDArray[np.int32],
    strides: NDArray[np.uint32],
    bases: Whole,
    counts: NDArray[np.uint32],
) -> None:
    """Count several dense tables in one pass over the records, a block that stays in the cache at a time.

    The codes are (attributes, records), and `counts` are the cells of all tables; the rest is as
    `CountingPlan` has it in `layout` and `bases`.
    """
    cells = np.empty(_BLOCK, np.uint32)
    for begin in range(0, codes.shape[1], _BLOCK):
        end = min(codes.shape[1], begin + _BLOCK)
        block = codes[:, begin:end]
        for table in range(starts.shape[0] - 1):
            # Member by member over the whole block: such loops become vector instructions.
            cells[:] = np.uint32(0)
            for member in range(starts[table], starts[table + 1]):
                column, stride = block[members[member]], strides[member]
                for i in range(column.shape[0]):
                    cells[i] += np.uint32(column[i]) * stride
            counted = counts[bases[table] : bases[table + 1]]
            for i in range(end - begin):
                counted[cells[i]] += np.uint32(1)
