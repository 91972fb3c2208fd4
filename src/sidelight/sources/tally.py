"""Tallies: the distinct values of a column in memory and how often each occurs.

What reading asks of a column, a tally answers: how many values there are, which are the most frequent, and
where numbers are cut into bins. Numbers are sorted and words hashed, once; DuckDB would scan the rows for
each question. The answers are DuckDB's to the last digit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sidelight.foundation.arrays import Array, Positions, Whole
from sidelight.sources.source import Summary

_SECONDS: dict[pa.DataType, tuple[pa.DataType, Callable[[NDArray[Any]], Array]]] = {
    pa.date32(): (pa.int32(), lambda days: days * 86400.0),
    pa.timestamp("us"): (pa.int64(), lambda micros: micros / 1e6),
}
"""Dates and times: the whole numbers that they are, and how many seconds since 1970 such a number means."""


def is_word(kind: pa.DataType) -> bool:
    """Whether a column of this type is text that Arrow can hash."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_number(kind: pa.DataType) -> bool:
    """Whether a column of this type means a double in one way: numbers of 32 and 16 bits are written out."""
    return bool(pa.types.is_integer(kind) or pa.types.is_float64(kind)) or kind in _SECONDS


def doubles(column: pa.Array) -> Array:
    """Return a column of numbers as doubles; one that is missing is NaN."""
    kind = column.type
    if kind in _SECONDS:
        whole, seconds = _SECONDS[kind]
        numbers = seconds(raw(column.view(whole)))
    else:
        numbers = raw(column).astype(np.float64, copy=False)
    return numbers if not column.null_count else np.where(column.is_valid(), numbers, np.nan)


def raw(column: pa.Array) -> NDArray[Any]:
    """Return the numbers of a column, mostly without copying; where one is missing, any number stands."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    dtype = column.type.to_pandas_dtype()
    if not len(column):
        return np.empty(0, dtype)
    numbers = np.frombuffer(column.buffers()[1], dtype)
    return numbers[column.offset : column.offset + len(column)]


@dataclass(frozen=True, eq=False)
class Tally:
    """The distinct values of a column, those of numbers in order, and how often each occurs."""

    values: pa.Array
    counts: Whole

    @property
    def present(self) -> int:
        """How many cells have a value."""
        return int(self.counts.sum())

    def frequent(self, most: int) -> pa.Array:
        """Return the `most` most frequent values; ties go to the smaller one."""
        table = pa.table({"value": self.values, "count": self.counts})
        order = [("count", "descending"), ("value", "ascending")]
        return self.values.take(pc.select_k_unstable(table, k=most, sort_keys=order))

    def summary(self, bins: int) -> Summary:
        """Return what is needed to cut the column's numbers into `bins` bins."""
        numbers, counts = doubles(self.values), self.counts
        starts = _starts(numbers)  # whole numbers beyond 2^53 may become the same double
        if len(starts) < len(numbers):
            numbers, counts = numbers[starts], np.add.reduceat(counts, starts)
        inside = np.isfinite(numbers)
        finite, often = numbers[inside], counts[inside]
        count = int(often.sum())
        full = often * bins >= count
        masses = tuple(finite[full].tolist())
        cuts = _cuts(finite[~full], often[~full], bins)
        above = np.searchsorted(numbers, masses, side="right").tolist()
        following = {
            mass: float(numbers[place]) if place < len(numbers) else None
            for mass, place in zip(masses, above, strict=True)
        }
        ends = (float(finite[0]), float(finite[-1])) if count else (None, None)
        return Summary(count, ends, (float(numbers[0]), float(numbers[-1])), cuts, masses, following)


def tally(column: pa.ChunkedArray) -> Tally | None:
    """Return the tally of a column; None if values of its type are not compared here as DuckDB does."""
    kind = column.type
    if is_word(kind) or pa.types.is_boolean(kind):
        counted = pc.value_counts(column.drop_null())
        return Tally(counted.field("values"), counted.field("counts").to_numpy())
    if not is_number(kind):
        return None
    whole = _SECONDS[kind][0] if kind in _SECONDS else kind
    present = column.drop_null().combine_chunks()
    numbers = raw(present.view(whole))
    if pa.types.is_float64(kind):
        numbers = numbers[~np.isnan(numbers)] + 0.0  # which makes one value of 0.0 and -0.0
    ordered = np.sort(numbers)
    starts = _starts(ordered)
    return Tally(pa.array(ordered[starts], whole).view(kind), np.diff(starts, append=len(ordered)))


def _starts(ordered: NDArray[Any]) -> Positions:
    """Return where each run of equal values begins."""
    return np.flatnonzero(np.concatenate([np.ones(min(1, len(ordered)), bool), ordered[1:] != ordered[:-1]]))


def _cuts(values: Array, counts: Whole, bins: int) -> tuple[float, ...]:
    """Return the numbers at the ranks that cut all of them into equally full bins."""
    total = int(counts.sum())
    if not total:
        return ()
    ranks = [math.ceil(total * Fraction(repr(step / bins))) for step in range(1, bins)]
    return tuple(values[np.searchsorted(np.cumsum(counts), ranks)].tolist())
