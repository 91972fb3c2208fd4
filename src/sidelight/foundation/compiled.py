"""Which path a step takes: numpy for small inputs, compiled loops for large ones.

Both give the same bits. Loading the compiler takes a moment, so nothing small waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator

LARGE = 1 << 17
"""From how many rows on the compiled loops are used."""

CHUNK = 1 << 15
"""How many words are worked on at a time, so that they stay in the processor's cache."""


def is_large(rows: int) -> bool:
    """Whether work on so many rows is worth loading the compiled loops."""
    return rows >= LARGE


def spans(rows: int, width: int = 1) -> Iterator[slice]:
    """Cut `rows` rows of `width` words into runs that fit the cache.

    >>> list(spans(5, width=CHUNK // 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, CHUNK // max(width, 1))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))
