"""The steps of the mechanisms in numpy; `kernels` holds the same steps compiled, with the same bits.

Every step is a plain function of random words, so what a mechanism does with each of the 2^64 words can be
counted.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.arrays import CHUNK, AnyCodes, Array, Mask, Whole, Words, spans

HASH_BITS = np.uint64(17)
HALF = np.uint64(32)
LOW = np.uint64(0xFFFFFFFF)
DROPPED = np.uint64(15)
COARSE = 1.5 * 2.0**52


def steps(*, compiled: bool) -> ModuleType:
    """Return the module whose steps suit: this one, or the compiled one, which takes a while to load."""
    return import_module(f"sidelight.mechanisms.{'kernels' if compiled else 'arrays'}")


def respond(words: Words, codes: AnyCodes, truth: np.uint64, other: np.uint64, out: AnyCodes) -> None:
    """Randomised response: the first `truth` words keep the code, each other value has `other` words."""
    lie = (np.maximum(words, truth) - truth) // other
    lie += lie >= codes
    out[:] = np.where(words < truth, codes, lie)


def overlay(words: Words, codes: AnyCodes, keep: np.uint64, rows: NDArray[np.uint8]) -> None:
    """Set the bit of each row's code with probability keep / 2^64, clear it otherwise."""
    line = np.arange(len(codes))
    byte = codes >> np.asarray(3, dtype=codes.dtype)
    bit = np.left_shift(1, codes & np.asarray(7, dtype=codes.dtype)).astype(np.uint8)
    rows[line, byte] = np.where(words < keep, rows[line, byte] | bit, rows[line, byte] & ~bit)


def hash_codes(seeds: Words, codes: AnyCodes, buckets: np.uint64, out: AnyCodes) -> None:
    """Write the bucket of each code under its row's seed."""
    hashed = (((seeds >> HALF) * codes + seeds) & LOW) >> DROPPED
    out[:] = (hashed * buckets) >> HASH_BITS


def count_marks(
    seeds: Words, values: AnyCodes, lows: NDArray[np.uint32], widths: NDArray[np.uint32], counts: Whole
) -> None:
    """Add to `counts` how many reports mark each value: those whose bucket it hashes to."""
    for span in spans(len(seeds), 4):  # what is kept of a run stays in the processor's cache
        step = (seeds[span] >> HALF).astype(np.uint32)
        buckets, is_even = values[span], (widths == widths[0]).all()
        begin = buckets * widths[0] if is_even else lows[buckets]
        place, width = (
            (seeds[span] & LOW).astype(np.uint32) - begin,
            widths[0] if is_even else widths[buckets],
        )
        for value in range(len(counts)):
            counts[value] += np.count_nonzero(place < width)
            place += step


def add_steps(values: Array, one: float, low: float, high: float, rows: int, sums: Whole) -> bool:
    """Add columns of numbers on a grid of steps 1 / one to `sums`, in steps; return whether all are on it.

    Sums of doubles are exact here: `rows` rows are few enough that their sum, in steps, stays below 2^53. A
    number is on the grid if adding 1.5 x 2^52 steps, which drops all finer digits, and taking them away
    leaves it as it is; one that is not a number fails too.
    """
    coarse = COARSE / one
    at_once = min(rows, max(1, CHUNK // max(values.shape[1], 1)))
    for first in range(0, len(values), at_once):
        part = values[first : first + at_once]
        kept = np.clip(part, low, high)
        kept += coarse
        kept -= coarse
        if not (kept == part).all():
            return False
        sums += (part.sum(axis=0) * one).astype(np.int64)
    return True


def choose_sets(
    draws: NDArray[np.uint32], includes: Mask, codes: AnyCodes, size: int, out: NDArray[np.uint16]
) -> None:
    """Write each row's sorted set: the code where it is included, the rest uniform among the other values.

    Floyd's algorithm over the m = size - 1 other values: draw j is uniform below m-w+j+1; take it, or m-w+j
    where it is taken already. A row that includes its code draws one value fewer: it skips the first.
    """
    width = out.shape[1]
    line = np.arange(len(codes))
    taken = np.zeros((len(codes), size), dtype=np.bool_)
    for j in range(width):
        drawn = draws[:, j].astype(np.int64)
        chosen = np.where(taken[line, drawn], size - 1 - width + j, drawn)
        wanted = ~includes if j == 0 else np.ones_like(includes)
        taken[line[wanted], chosen[wanted]] = True
    # Number the chosen others as values, leaving the code's place free, and add the code where included.
    values = np.where(np.arange(size) > codes[:, None], np.roll(taken, 1, axis=1), taken)
    values[line, codes] = includes
    out[:] = np.nonzero(values)[1].reshape(out.shape)


def flip_bits(
    draws: NDArray[np.uint32], codes: AnyCodes, words: Words, flip: np.uint64, size: int, out: NDArray[Any]
) -> None:
    """Write which values each row asks about, with a bit each: 2v, or 2v + 1 where its bit is set.

    Floyd's algorithm over d of k values: draw j is uniform below k-d+j+1; take it, or k-d+j where it is taken
    already. A bit is that of the truth, flipped where its word, in the order of the values, is below `flip`.
    """
    width = out.shape[1]
    chosen = draws.astype(np.int64)
    for column in range(1, width):
        again = (chosen[:, :column] == chosen[:, column, None]).any(axis=1)
        chosen[again, column] = size - width + column  # no earlier draw can be so large
    chosen.sort(axis=1)
    out[:] = 2 * chosen + ((chosen == codes[:, None]) ^ (words.reshape(out.shape) < flip))


choose_small_sets = choose_sets
"""The compiled loops have a faster way for small sets."""
