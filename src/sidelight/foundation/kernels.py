"""Compiled loops over random words; `randomness` and `bits` hold the same steps in numpy.

Every constant is a 64-bit unsigned number: a mixture of widths would silently become floating point.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sidelight.foundation.arrays import Whole, Words
from sidelight.foundation.randomness import GOLDEN, HALF, LOW, MIX_1, MIX_2

_EVERY_BYTE = np.uint64(0x0101010101010101)
_BYTE = np.uint64(0xFF)
_ROWS_IN_A_BYTE = 255
_BLOCK = 1024  # what is undecided and what is drawn, 16 KiB together, stay in the first cache


@njit(cache=True, inline="always")
def _word(key: np.uint64, number: np.uint64) -> np.uint64:
    """Return a word of a seeded stream; their numbers begin with 1 here."""
    z = number * GOLDEN + key
    z = (z ^ (z >> np.uint64(30))) * MIX_1
    z = (z ^ (z >> np.uint64(27))) * MIX_2
    return z ^ (z >> np.uint64(31))


@njit(cache=True)
def fill_words(key: np.uint64, start: np.uint64, out: Words) -> None:
    """Write the words number `start` and following of a seeded stream."""
    for i in range(out.shape[0]):
        out[i] = _word(key, start + np.uint64(i) + np.uint64(1))


@njit(cache=True)
def draw_bits(
    key: np.uint64, start: np.uint64, threshold: np.uint64, turns: tuple[int, int], undecided: Words,
    result: Words,
) -> None:  # fmt: skip
    """Compare 64 random numbers in each word with the threshold, bit by bit: a few bits of all words first.

    Word i of turn t is word `start + i + t * 2^56` of a seeded stream, as `fill_words` gives it. The first of
    the two `turns` is how many bits all words take together, the second how many there are.
    """
    for first in range(0, result.shape[0], _BLOCK):
        left, below = undecided[first : first + _BLOCK], result[first : first + _BLOCK]
        for turn in range(min(turns[0], turns[1])):
            base = start + np.uint64(first) + (np.uint64(turn) << np.uint64(56)) + np.uint64(1)
            bit = np.uint64(0) - ((threshold >> np.uint64(63 - turn)) & np.uint64(1))  # all ones or none
            for i in range(left.shape[0]):
                word = _word(key, base + np.uint64(i))
                below[i] |= left[i] & ~word & bit
                left[i] &= ~(word ^ bit)
        for i in range(left.shape[0]):
            for turn in range(turns[0], turns[1]):
                if not left[i]:
                    break
                number = start + np.uint64(first + i) + (np.uint64(turn) << np.uint64(56)) + np.uint64(1)
                bit = np.uint64(0) - ((threshold >> np.uint64(63 - turn)) & np.uint64(1))
                word = _word(key, number)
                below[i] |= left[i] & ~word & bit
                left[i] &= ~(word ^ bit)


@njit(cache=True)
def scale_words(words: Words, bounds: Words, least: Words, out: NDArray[np.uint32]) -> bool:
    """Map words to numbers below their column's bound; return whether all of them may be used."""
    fine = True
    for i in range(words.shape[0]):
        for j in range(words.shape[1]):
            word, bound = words[i, j], bounds[j]
            fine &= word * bound >= least[j]
            out[i, j] = ((word >> HALF) * bound + (((word & LOW) * bound) >> HALF)) >> HALF
    return fine


@njit(cache=True)
def count_bits(words: Words, counts: Whole) -> None:
    """Add to `counts` how often each bit is set in the rows of `words`, shape (rows, width).

    Eight byte-wide counters ride in one word, so at most 255 rows are added up at a time.
    """
    column = np.empty(_ROWS_IN_A_BYTE, np.uint64)
    for start in range(0, words.shape[0], _ROWS_IN_A_BYTE):
        rows = min(words.shape[0] - start, _ROWS_IN_A_BYTE)
        for w in range(words.shape[1]):
            for i in range(rows):
                column[i] = words[start + i, w]
            for j in range(8):
                total = np.uint64(0)
                for i in range(rows):
                    total += (column[i] >> np.uint64(j)) & _EVERY_BYTE
                for b in range(8):
                    counts[w * 64 + b * 8 + j] += np.int64((total >> np.uint64(8 * b)) & _BYTE)


@njit(cache=True)
def count_codes(codes: NDArray[np.uint16], counts: Whole) -> None:
    """Add to the four rows of `counts` how often each code occurs; four, so that no add waits for another."""
    whole = codes.shape[0] // 4 * 4
    for i in range(0, whole, 4):
        counts[0, codes[i]] += 1
        counts[1, codes[i + 1]] += 1
        counts[2, codes[i + 2]] += 1
        counts[3, codes[i + 3]] += 1
    for i in range(whole, codes.shape[0]):
        counts[0, codes[i]] += 1
