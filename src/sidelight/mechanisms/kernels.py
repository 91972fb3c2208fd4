"""The steps of the mechanisms as compiled loops; `arrays` holds the same steps in numpy, with the same bits.

Every constant is a 64-bit unsigned number: a mixture of widths would silently become floating point.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Words = NDArray[np.uint64]
Codes = NDArray[np.unsignedinteger[Any]]

_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_DROPPED = np.uint64(15)
_HASH_BITS = np.uint64(17)
_SIX = np.uint64(6)
_LAST = np.uint64(63)


@njit(cache=True)
def respond(words: Words, codes: Codes, truth: np.uint64, other: np.uint64, out: Codes) -> None:
    """Randomised response: the first `truth` words keep the code, each other value has `other` words.

    The quotient of two words is found by a double and corrected by one step either way; it is exact, since
    it stays below 65,536.
    """
    inverse = 1.0 / np.float64(other)
    for i in range(words.shape[0]):
        word = words[i]
        rest = word - truth if word >= truth else _ZERO
        lie = np.uint64(np.float64(rest) * inverse)
        lie -= np.uint64(lie * other > rest)
        lie += np.uint64(rest - lie * other >= other)
        code = np.uint64(codes[i])
        lie += np.uint64(lie >= code)
        out[i] = code if word < truth else lie


@njit(cache=True)
def overlay(words: Words, codes: Codes, keep: np.uint64, rows: NDArray[np.uint8]) -> None:
    """Set the bit of each row's code with probability keep / 2^64, clear it otherwise."""
    for i in range(words.shape[0]):
        byte = np.int64(codes[i]) >> 3
        bit = np.uint8(1 << (np.int64(codes[i]) & 7))
        row = rows[i, byte]
        rows[i, byte] = row | bit if words[i] < keep else row & ~bit


@njit(cache=True)
def hash_codes(seeds: Words, codes: Codes, buckets: np.uint64, out: Codes) -> None:
    """Write the bucket of each code under its row's seed."""
    for i in range(seeds.shape[0]):
        seed = seeds[i]
        hashed = (((seed >> _HALF) * np.uint64(codes[i]) + seed) & _LOW) >> _DROPPED
        out[i] = (hashed * buckets) >> _HASH_BITS


@njit(cache=True)
def count_support(
    seeds: Words,
    values: Codes,
    lows: NDArray[np.uint32],
    widths: NDArray[np.uint32],
    counts: NDArray[np.int64],
) -> None:
    """Add to `counts` how many reports each value supports: those whose bucket it hashes to."""
    size = counts.shape[0]
    found = np.zeros(size, np.uint32)
    for i in range(seeds.shape[0]):
        multiplier = np.uint32(seeds[i] >> _HALF)
        start = np.uint32(np.uint32(seeds[i] & _LOW) - lows[values[i]])
        width = widths[values[i]]
        for v in range(size):
            found[v] += np.uint32(np.uint32(np.uint32(multiplier * np.uint32(v)) + start) < width)
    for v in range(size):
        counts[v] += found[v]


@njit(cache=True)
def choose_sets(
    draws: Words, includes: NDArray[np.bool_], codes: Codes, size: int, out: NDArray[np.uint16]
) -> None:
    """Write each row's sorted set: the code where it is included, the rest uniform among the other values."""
    width = out.shape[1]
    taken = np.zeros((size + 63) // 64, np.uint64)
    for i in range(draws.shape[0]):
        for j in range(1 if includes[i] else 0, width):
            drawn = draws[i, j]
            if (taken[drawn >> _SIX] >> (drawn & _LAST)) & _ONE:
                drawn = np.uint64(size - 1 - width + j)
            taken[drawn >> _SIX] |= _ONE << (drawn & _LAST)
        _emit(taken, includes[i], np.uint64(codes[i]), out[i])


@njit(cache=True)
def _emit(taken: Words, includes: bool, code: np.uint64, out: NDArray[np.uint16]) -> None:
    """Write the taken others as values in order, leaving the code's place free, and clear them."""
    at = 0
    waiting = includes
    for w in range(taken.shape[0]):
        word = taken[w]
        taken[w] = _ZERO
        while word:
            lowest = word & (~word + _ONE)
            value = np.uint64(w * 64) + _position(lowest)
            word ^= lowest
            if value >= code:
                value += _ONE
                if waiting:
                    out[at] = code
                    at += 1
                    waiting = False
            out[at] = value
            at += 1
    if waiting:
        out[at] = code


@njit(cache=True)
def _position(bit: np.uint64) -> np.uint64:
    """Return which bit is set in a word that has one: a bit below it for every place."""
    below = bit - _ONE
    below = below - ((below >> _ONE) & np.uint64(0x5555555555555555))
    below = (below & np.uint64(0x3333333333333333)) + (
        (below >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    below = (below + (below >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (below * np.uint64(0x0101010101010101)) >> np.uint64(56)
