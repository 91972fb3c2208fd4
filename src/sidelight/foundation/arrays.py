"""Types of arrays that stand all over the package, and how long work on them is cut into runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
Mask = NDArray[np.bool_]
Positions = NDArray[np.intp]
Words = NDArray[np.uint64]
Codes = NDArray[np.uint16]
"""Coded records, shape (records, attributes)."""
AnyCodes = NDArray[np.unsignedinteger[Any]]
"""Codes of any width, of one attribute or of several."""

CHUNK = 1 << 15
"""How many words are worked on at a time, so that they stay in the processor's cache."""


def spans(rows: int, width: int = 1) -> Iterator[slice]:
    """Cut `rows` rows of `width` words into runs that fit the cache.

    >>> list(spans(5, width=CHUNK // 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, CHUNK // max(width, 1))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def offsets(sizes: Sequence[int]) -> Positions:
    """Return where each of several parts begins when they are laid end to end; last, their total length.

    >>> offsets([2, 3])
    array([0, 2, 5])
    """
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)


def to_simplex(values: ArrayLike, total: float = 1.0, *, shift: bool = True) -> Array:
    """Return the nearest numbers that are not negative and add up to the total (Duchi et al. 2008).

    It works along the last axis, for many rows at once.

    >>> to_simplex([0.7, 0.6, -0.3]).round(2).tolist()
    [0.55, 0.45, 0.0]

    Args:
        values: the estimates.
        total: what the result adds up to.
        shift: whether the largest value is subtracted first. It changes only the last bits, but these decide
            between splits of a decision tree that are equally good: there the values stay as they are, so
            that the same answers give the same tree as in earlier versions.
    """
    raw = np.asarray(values, dtype=np.float64)
    # A common shift does not change what is nearest, and without the largest, huge values keep their digits.
    given = raw - raw.max(axis=-1, keepdims=True) if shift else raw
    falling = -np.sort(-given, axis=-1)
    excess = np.cumsum(falling, axis=-1) - total
    rank = np.arange(1, given.shape[-1] + 1)
    kept = np.count_nonzero(falling - excess / rank > 0, axis=-1, keepdims=True)
    if not kept.all():  # the values are so large that doubles lose the total beside them
        return to_simplex(raw, total)
    least = np.take_along_axis(excess, kept - 1, axis=-1) / kept
    return np.asarray(np.maximum(given - least, 0.0))
