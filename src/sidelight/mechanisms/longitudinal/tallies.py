"""Counts of many reports of a memo drawn at once, for simulation: by inversion, a word for each counter.

Reports of a memo are independent, so that counts of bits are binomial, and those of codes multinomial: how
often the memo itself was sent is binomial, and the rest is dealt out evenly over the others, one by one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.arrays import Array, Mask
from sidelight.foundation.randomness import randomness

LEAST_ROUNDS = 8
"""Fewer rounds are drawn one by one."""
_WORD = 2.0**-64
_TOGETHER = 1 << 13
"""Codes of so many people are drawn at a time, each by a whole distribution function."""


def drawn_bits(
    memos: Mask, rates: tuple[float, float], times: int, seed: int, offset: int
) -> NDArray[np.int64]:
    """Return how often each bit is set in so many reports, (people, bits).

    Args:
        memos: the bits that are kept.
        rates: how likely a report sets a bit that is set in the memo, and one that is not.
        times: how many reports there are.
        seed: where the noise comes from.
        offset: of the first person.
    """
    words = _uniform(seed, memos.shape, offset)
    if_set, if_clear = (_steps(times, rate)[-1] for rate in rates)
    counts = np.where(
        memos, np.searchsorted(if_set, words, "right"), np.searchsorted(if_clear, words, "right")
    )
    return np.minimum(counts, times)


def drawn_codes(
    memos: NDArray[Any], cells: int, rate: float, times: int, seed: int, offset: int
) -> NDArray[np.int64]:
    """Return how often each code is sent in so many reports, (people, codes).

    Args:
        memos: the code that is kept.
        cells: how many codes there are.
        rate: how likely a report is the memo.
        times: how many reports there are.
        seed: where the noise comes from.
        offset: of the first person.
    """
    parts = range(0, len(memos), _TOGETHER)
    return np.concatenate(
        [np.zeros((0, cells), dtype=np.int64)]
        + [_codes(memos[at : at + _TOGETHER], cells, rate, times, seed, offset + at) for at in parts]
    )


def _codes(
    memos: NDArray[Any], cells: int, rate: float, times: int, seed: int, offset: int
) -> NDArray[np.int64]:
    """Return `drawn_codes` of few people."""
    people = np.arange(len(memos))
    words = _uniform(seed, (len(memos), cells), offset)
    own = np.minimum(np.searchsorted(_steps(times, rate)[-1], words[:, 0], "right"), times)
    counts = np.zeros((len(memos), cells), dtype=np.int64)
    counts[people, memos] = own
    left = times - own
    for number in range(1, cells):  # the codes after the memo, in turn
        share = _steps(times, 1 / (cells - number))
        drawn = np.minimum((share[left] <= words[:, number, None]).sum(axis=1), left)
        counts[people, (memos.astype(np.int64) + number) % cells] = drawn
        left = left - drawn
    return counts


@lru_cache(maxsize=64)
def _steps(times: int, rate: float) -> Array:
    """Return the distribution functions of binomial counts of 0 to `times` reports, one row each."""
    from scipy.special import bdtr

    most, reached = np.arange(times + 1)[:, None], np.arange(times + 1)[None]
    below = bdtr(np.minimum(reached, most).astype(np.float64), most, rate)
    return np.asarray(np.where(reached >= most, 1.0, below), dtype=np.float64)


def _uniform(seed: int, shape: tuple[int, ...], offset: int) -> Array:
    """Return numbers in [0, 1) that depend on the seed and their place alone."""
    rows, columns = shape
    words = randomness(seed, "tallies").words(offset * columns, rows * columns)
    return np.asarray(words * _WORD, dtype=np.float64).reshape(shape)
