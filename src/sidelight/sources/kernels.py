"""Compiled loops that code columns and count sets of attributes; they run without the interpreter's lock.

`codebook` and `counter` hold the same steps in numpy for small inputs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from sidelight.foundation.arrays import AnyCodes, Array, Positions, Whole, Words

_BLOCK = 4096
_IN_A_BUCKET, _LARGE_BUCKET = 4, 64
_MOST_BITS = 22  # more buckets would leave the cache, in which they are filled


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


@njit(cache=True, nogil=True)
def number_distinct(hashed: Words, group: Positions, firsts: Positions) -> int:
    """Number the distinct hashes in their order; write each row's number and the first row of each number.

    Two passes of a radix sort put rows whose hashes begin alike into one bucket; within it they are sorted.
    Rows with the same hash keep their order, so that the first of them is found first.
    """
    rows, bits = hashed.shape[0], 2
    while rows >> bits > _IN_A_BUCKET and bits < _MOST_BITS:
        bits += 1
    low, shift = np.uint64(bits // 2), np.uint64(64 - bits)
    keys, places = _by_digit(hashed, np.arange(rows).astype(np.uint32), shift, bits // 2)
    keys, places = _by_digit(keys, places, shift + low, bits - bits // 2)
    _sort_buckets(keys, places, shift)
    number = -1
    for i in range(rows):
        if i == 0 or keys[i] != keys[i - 1]:
            number += 1
            firsts[number] = places[i]
        group[places[i]] = number
    return number + 1


@njit(cache=True, nogil=True)
def _by_digit(
    keys: Words, places: NDArray[np.uint32], shift: np.uint64, bits: int
) -> tuple[Words, NDArray[np.uint32]]:
    """Return keys and places ordered by some bits of the keys; those that agree in them keep their order."""
    mask = np.uint64((1 << bits) - 1)
    starts = np.zeros((1 << bits) + 1, np.int64)
    for i in range(keys.shape[0]):
        starts[np.int64((keys[i] >> shift) & mask) + 1] += 1
    for digit in range(1 << bits):
        starts[digit + 1] += starts[digit]
    ordered, moved = np.empty_like(keys), np.empty_like(places)
    for i in range(keys.shape[0]):
        own = np.int64((keys[i] >> shift) & mask)
        ordered[starts[own]] = keys[i]
        moved[starts[own]] = places[i]
        starts[own] += 1
    return ordered, moved


@njit(cache=True, nogil=True)
def _sort_buckets(keys: Words, places: NDArray[np.uint32], shift: np.uint64) -> None:
    """Sort the keys of every bucket, those that agree above `shift`, and their places along with them.

    A large bucket holds one hash many times. Should it hold two, insertion would take the square of its size.
    """
    begin = 0
    while begin < keys.shape[0]:
        end, bucket, is_sorted = begin + 1, keys[begin] >> shift, True
        while end < keys.shape[0] and keys[end] >> shift == bucket:
            is_sorted &= keys[end - 1] <= keys[end]
            end += 1
        if not is_sorted and end - begin > _LARGE_BUCKET:
            order = np.argsort(keys[begin:end], kind="mergesort")
            keys[begin:end], places[begin:end] = keys[begin:end][order], places[begin:end][order]
        elif not is_sorted:
            for i in range(begin + 1, end):
                key, place, at = keys[i], places[i], i
                while at > begin and keys[at - 1] > key:
                    keys[at], places[at] = keys[at - 1], places[at - 1]
                    at -= 1
                keys[at], places[at] = key, place
        begin = end
