"""The steps of the mechanisms as compiled loops; `arrays` holds the same steps in numpy, with the same bits.

Every constant is a 64-bit unsigned number: a mixture of widths would silently become floating point.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sidelight.foundation.arrays import AnyCodes, Array, Mask, Whole, Words
from sidelight.mechanisms.arrays import COARSE, DROPPED, HALF, HASH_BITS, LOW

_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_SIX = np.uint64(6)
_LAST = np.uint64(63)
_ROWS = 256
_RUN = 1024
_MOST_ROWS = 128
_NOTHING = np.uint16(65_535)


@njit(cache=True)
def respond(words: Words, codes: AnyCodes, truth: np.uint64, other: np.uint64, out: AnyCodes) -> None:
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
def overlay(words: Words, codes: AnyCodes, keep: np.uint64, rows: NDArray[np.uint8]) -> None:
    """Set the bit of each row's code with probability keep / 2^64, clear it otherwise."""
    for i in range(words.shape[0]):
        byte = np.int64(codes[i]) >> 3
        bit = np.uint8(1 << (np.int64(codes[i]) & 7))
        row = rows[i, byte]
        rows[i, byte] = row | bit if words[i] < keep else row & ~bit


@njit(cache=True)
def hash_codes(seeds: Words, codes: AnyCodes, buckets: np.uint64, out: AnyCodes) -> None:
    """Write the bucket of each code under its row's seed."""
    for i in range(seeds.shape[0]):
        seed = seeds[i]
        hashed = (((seed >> HALF) * np.uint64(codes[i]) + seed) & LOW) >> DROPPED
        out[i] = (hashed * buckets) >> HASH_BITS


@njit(cache=True)
def count_marks(
    seeds: Words, values: AnyCodes, lows: NDArray[np.uint32], widths: NDArray[np.uint32], counts: Whole
) -> None:
    """Add to `counts` how many reports mark each value: those whose bucket it hashes to.

    The hash of the next value is one addition away, so a run of reports stays in the first cache while all
    values pass by; the processor takes several reports at a time, however few the values are.
    """
    step, place, width = np.empty(_RUN, np.uint32), np.empty(_RUN, np.uint32), np.empty(_RUN, np.uint32)
    width[:] = widths[0]
    is_even = widths.min() == widths.max()
    for first in range(0, seeds.shape[0], _RUN):
        part, buckets = seeds[first : first + _RUN], values[first : first + _RUN]
        for i in range(part.shape[0]):
            step[i] = np.uint32(part[i] >> HALF)
            place[i] = np.uint32(np.uint32(part[i]) - np.uint32(np.uint32(buckets[i]) * widths[0]))
        if not is_even:
            for i in range(part.shape[0]):
                place[i] = np.uint32(np.uint32(part[i]) - lows[buckets[i]])
                width[i] = widths[buckets[i]]
        for v in range(counts.shape[0]):
            marks = np.uint32(0)
            for i in range(part.shape[0]):
                marks += np.uint32(place[i] < width[i])
                place[i] = np.uint32(place[i] + step[i])
            counts[v] += marks


@njit(cache=True)
def add_steps(values: Array, one: float, low: float, high: float, rows: int, sums: Whole) -> bool:
    """Add columns of numbers on a grid to `sums`, in steps; return whether all are on it: see `arrays`.

    While a few numbers' squares add up to less than a limit's, none of them is beyond it, and none need be
    compared. They are so few that the 1 of the true value does not reach that by itself.
    """
    part, coarse, little = _zeros(values.shape[1]), COARSE / one, 0.999 * min(-low, high) ** 2
    few = max(1, min(_MOST_ROWS, int(little / 6)))
    for first in range(0, values.shape[0], rows):
        part[:] = 0.0
        block = values[first : first + rows]
        # What is infinite, or no number, has no sum, and no square that is small.
        most = _add_thirds(block, coarse, few, part)
        if not (most <= little or (most > little and _within(block, low, high))):
            return False
        for j in range(part.shape[0]):
            sums[j] += np.int64(part[j] * one)
    return True


@njit(cache=True, fastmath={"contract"})
def _add_thirds(block: Array, coarse: float, few: int, part: Array) -> float:
    """Add numbers up by columns; return the most that some squares add up to, NaN if one is off the grid.

    The squares are those of a column in `few` rows of each third, so that a long block has many such sums.
    Reading memory takes most of the time, and less in three places at once: the thirds of a block.
    """
    count, squares, most = block.shape[0], _zeros(part.shape[0]), 0.0
    third, off = count // 3, np.int64(0)
    for i in range(third):
        if i % few == 0:
            most = max(most, squares.max())
            squares[:] = 0.0
        for j in range(part.shape[0]):
            a, b, c = block[i, j], block[i + third, j], block[i + 2 * third, j]
            part[j] += a + b + c
            squares[j] += a * a + b * b + c * c
            off |= np.int64((a + coarse) - coarse != a)
            off |= np.int64((b + coarse) - coarse != b)
            off |= np.int64((c + coarse) - coarse != c)
    for i in range(3 * third, count):
        for j in range(part.shape[0]):
            a = block[i, j]
            part[j] += a
            squares[j] += a * a
            off |= np.int64((a + coarse) - coarse != a)
    return np.nan if off else max(most, squares.max())


@njit(cache=True)
def _zeros(size: int) -> Array:
    """Return zeros that begin where a line of the cache does: writing across two lines takes longer."""
    wide = np.zeros(size + 7)
    skipped = -(wide.ctypes.data // 8) % 8
    return wide[skipped : skipped + size]


@njit(cache=True)
def _within(block: Array, low: float, high: float) -> bool:
    """Return whether no number is beyond the limits."""
    beyond = np.int64(0)
    for i in range(block.shape[0]):
        for j in range(block.shape[1]):
            beyond |= np.int64(not low <= block[i, j] <= high)
    return bool(beyond == 0)


@njit(cache=True)
def flip_bits(
    draws: NDArray[np.uint32],
    codes: AnyCodes,
    words: Words,
    flip: np.uint64,
    size: int,
    out: NDArray[np.uint32],
) -> None:
    """Write which values each row asks about, with a bit each; see `arrays`."""
    width = out.shape[1]
    chosen = np.zeros(width, np.uint32)
    for i in range(out.shape[0]):
        for j in range(width):
            value = draws[i, j]
            for earlier in range(j):
                if chosen[earlier] == draws[i, j]:
                    value = np.uint32(size - width + j)
            place = j
            while place > 0 and chosen[place - 1] > value:  # kept in rising order
                chosen[place] = chosen[place - 1]
                place -= 1
            chosen[place] = value
        for j in range(width):
            bit = (chosen[j] == codes[i]) ^ (words[i * width + j] < flip)
            out[i, j] = 2 * chosen[j] + np.uint32(bit)


@njit(cache=True)
def choose_sets(
    draws: NDArray[np.uint32], includes: Mask, codes: AnyCodes, size: int, out: NDArray[np.uint16]
) -> None:
    """Write each row's sorted set: the code where it is included, the rest uniform among the other values."""
    width = out.shape[1]
    taken = np.zeros((size + 63) // 64, np.uint64)
    for i in range(out.shape[0]):
        for j in range(1 if includes[i] else 0, width):
            drawn = np.uint64(draws[i, j])
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
def choose_small_sets(
    draws: NDArray[np.uint32], includes: Mask, codes: AnyCodes, size: int, out: NDArray[np.uint16]
) -> None:
    """Do what `choose_sets` does, faster for small sets: all steps run along many rows at once.

    A draw is compared with all before it, and rows are sorted by Batcher's network (Knuth 5.2.2, M).
    """
    width = out.shape[1]
    block = np.zeros((width, _ROWS), np.uint16)
    again, code = np.zeros(_ROWS, np.uint16), np.zeros(_ROWS, np.uint16)
    for start in range(0, out.shape[0], _ROWS):
        part = slice(start, start + _ROWS)
        include, sets = includes[part], out[part]
        code[: len(include)] = codes[part]
        for j in range(width):
            block[j, : len(include)] = draws[part, j]
        for i in range(include.shape[0]):
            block[0, i] = _NOTHING if include[i] else block[0, i]
        for j in range(1, width):
            _avoid_repeats(block[:j], block[j], again, np.uint16(size - 1 - width + j))
        for j in range(width):
            _skip_code(block[j], code)
        for i in range(include.shape[0]):
            block[0, i] = code[i] if include[i] else block[0, i]
        _sort_lines(block)
        for i in range(include.shape[0]):
            for j in range(width):
                sets[i, j] = block[j, i]


@njit(cache=True)
def _skip_code(line: NDArray[np.uint16], code: NDArray[np.uint16]) -> None:
    """Number the other values as values: from the code on, each is one higher."""
    for i in range(line.shape[0]):
        line[i] += np.uint16(line[i] >= code[i])


@njit(cache=True)
def _avoid_repeats(
    earlier: NDArray[np.uint16], line: NDArray[np.uint16], again: NDArray[np.uint16], instead: np.uint16
) -> None:
    """Replace the numbers of a line that occur in an earlier line of their row."""
    for i in range(line.shape[0]):
        again[i] = 0
    for j in range(earlier.shape[0]):
        before = earlier[j]
        for i in range(line.shape[0]):
            again[i] |= np.uint16(before[i] == line[i])
    for i in range(line.shape[0]):
        line[i] = instead if again[i] else line[i]


@njit(cache=True)
def _sort_lines(block: NDArray[np.uint16]) -> None:
    """Sort every row, which lies across the lines."""
    width = block.shape[0]
    top = 1
    while 2 * top < width:
        top *= 2
    part = top
    while part > 0:
        span, rest, distance = top, 0, part
        while True:
            for line in range(width - distance):
                if line & part == rest:
                    _order(block[line], block[line + distance])
            if span == part:
                break
            distance, span, rest = span - part, span // 2, part
        part //= 2


@njit(cache=True)
def _order(low: NDArray[np.uint16], high: NDArray[np.uint16]) -> None:
    for i in range(low.shape[0]):
        one, other = low[i], high[i]
        low[i] = min(one, other)
        high[i] = max(one, other)


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
