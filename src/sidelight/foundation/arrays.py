"""Types of arrays that stand all over the package, and which path a step takes with them.

Small inputs take numpy, large ones compiled loops; both give the same bits. Loading the compiler takes a
moment, so nothing small waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
Mask = NDArray[np.bool_]
Positions = NDArray[np.intp]
Words = NDArray[np.uint64]
Codes = NDArray[np.uint16]
"""Coded records, shape (records, attributes)."""
AnyCodes = NDArray[np.unsignedinteger[Any]]
"""Codes of any width, of one attribute or of several."""

LARGE = 1 << 17
"""From how many rows on the compiled loops are used."""

CHUNK = 1 << 15
"""How many words are worked on at a time, so that they stay in the processor's cache."""


def is_large(rows: int) -> bool:
    """Whether this many rows are worth loading the compiled loops."""
    return rows >= LARGE


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
