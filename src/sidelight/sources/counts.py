"""Counts of attribute sets, and distinct records with how often each occurs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from sidelight.foundation.arrays import Array, Codes, Positions, Whole, Words, offsets
from sidelight.foundation.errors import InputError, TooLargeError
from sidelight.foundation.randomness import Seeded
from sidelight.schema import Schema

LARGEST_DENSE = 1 << 26  # half a gigabyte of doubles
_GRAM_ROWS = 1 << 14
LARGEST_GRAM = 4096
"""With more values than this, one product of indicators would mostly multiply zeros."""


@dataclass(frozen=True, eq=False)
class Counts:
    """How many records have each combination of values of a few attributes.

    `cells` has one axis for each attribute of `schema`. Counts of disjoint parts of a table add up.
    """

    schema: Schema
    cells: Whole

    def __post_init__(self) -> None:
        if self.cells.shape != self.schema.sizes:
            raise InputError(
                f"counts of {', '.join(self.schema.names)} must have the shape {self.schema.sizes}, "
                f"got {self.cells.shape}."
            )

    @property
    def total(self) -> int:
        """The number of records."""
        return int(self.cells.sum())

    def __add__(self, other: Counts) -> Counts:
        if other.schema != self.schema:
            raise InputError("only counts of the same attributes can be added.")
        return Counts(self.schema, self.cells + other.cells)


@dataclass(frozen=True, eq=False)
class Records:
    """Distinct records and their weights: a joint count table that stores no empty cell.

    Attributes:
        schema: the attributes, one for each column of `codes`.
        codes: (distinct, attributes), the values' codes; best stored column by column.
        weights: (distinct,), how many records (or how much probability) each row stands for.
    """

    schema: Schema
    codes: Codes
    weights: Array
    _hashes: dict[int, Words] = field(default_factory=dict, init=False, repr=False)

    @property
    def total(self) -> float:
        """The sum of all weights."""
        return float(self.weights.sum())

    def pair_tables(self) -> Array:
        """Return every pair's weights at once, as blocks of one (values, values) matrix.

        The diagonal blocks hold each attribute's own weights.
        """
        return block_counts(self.codes, self.schema.sizes, self.weights)

    def cells(self, names: Sequence[str]) -> Array:
        """Return the weights of the named attributes as a dense array with one axis for each."""
        columns = [self.schema.index(name) for name in names]
        shape = tuple(self.schema.sizes[column] for column in columns)
        size = check_dense(shape)
        flat = np.ravel_multi_index(tuple(self.codes[:, column].astype(np.intp) for column in columns), shape)
        return _weigh(flat, self.weights, size).reshape(shape)

    def groups(self, names: Sequence[str]) -> tuple[Positions, int]:
        """Return a number for each record, the same for records that agree in the named attributes.

        The second value is how many such groups there are.
        """
        columns = [self.schema.index(name) for name in names]
        hidden = [column for column in range(len(self.schema)) if column not in columns]
        return _grouped(self.codes, columns, lambda salt: self._hash_without(hidden, salt))

    def _hash_without(self, hidden: Sequence[int], salt: int) -> Words:
        """Return the records' hashes without some columns; the whole hash is kept for the next call."""
        if salt not in self._hashes:
            self._hashes[salt] = row_hashes(self.codes, range(len(self.schema)), salt)
        return np.asarray(self._hashes[salt] - row_hashes(self.codes, hidden, salt))


def check_dense(shape: Sequence[int], way: str = "for a bound that needs no dense table") -> int:
    """Return the number of cells of a table of this shape, or raise if it would not fit in memory.

    The `way` is what the message advises besides asking for fewer attributes.
    """
    size = math.prod(shape)
    if size > LARGEST_DENSE:
        raise TooLargeError(
            f"the joint table of {len(shape)} attributes has {float(size):.3g} cells, more than "
            f"{LARGEST_DENSE}; ask for fewer attributes, or {way}."
        )
    return size


def merge_records(parts: Iterable[Records], largest: int) -> Records | None:
    """Add up records of disjoint parts of a table; None if more than `largest` are distinct."""
    pending: list[Records] = []
    waiting = distinct = 0
    for part in parts:
        pending.append(part)
        waiting += len(part.weights)
        if waiting > max(1 << 18, distinct):  # as many wait as are kept: the work stays linear in the records
            pending = [_merge(pending)]
            waiting, distinct = 0, len(pending[0].weights)
            if distinct > largest:
                return None
    merged = _merge(pending)
    return merged if len(merged.weights) <= largest else None


def _merge(parts: Sequence[Records]) -> Records:
    codes = np.concatenate([part.codes for part in parts])
    weights = np.concatenate([part.weights for part in parts])
    return distinct_records(parts[0].schema, codes, weights)


def distinct_records(schema: Schema, codes: Codes, weights: Array) -> Records:
    """Merge equal rows and add up their weights."""
    group, distinct = distinct_rows(codes)
    first = np.empty(distinct, dtype=np.intp)
    first[group[::-1]] = np.arange(len(codes) - 1, -1, -1)  # backwards, since the last to be written stays
    return Records(schema, np.asfortranarray(codes[first]), _weigh(group, weights, distinct))


def _weigh(group: Positions, weights: Array, groups: int) -> Array:
    return np.bincount(group, weights=weights, minlength=groups).astype(np.float64, copy=False)


def distinct_rows(codes: Codes) -> tuple[Positions, int]:
    """Return each row's group number and the number of groups of equal rows."""
    columns = range(codes.shape[1])
    return _grouped(codes, columns, lambda salt: row_hashes(codes, columns, salt))


def row_hashes(codes: Codes, columns: Iterable[int], salt: int) -> Words:
    """Return the sum of a random word for the value of each listed column, for every row.

    Rows that are equal in those columns have equal sums, and others hardly ever.
    """
    hashes = np.zeros(len(codes), dtype=np.uint64)
    for column in columns:
        values = codes[:, column]
        table = Seeded(salt).words(column << 17, int(values.max(initial=0)) + 1)  # no two columns share words
        hashes += table.take(values)
    return hashes


def _grouped(codes: Codes, columns: Sequence[int], hashes: Callable[[int], Words]) -> tuple[Positions, int]:
    """Number the groups of rows that are equal in some columns, given their hashes for a salt.

    Rows are compared by hash first; equal hashes of unequal rows are noticed and hashed anew.
    """
    if not columns:
        return np.zeros(len(codes), dtype=np.intp), min(len(codes), 1)
    salt = 0
    while True:
        hashed = hashes(salt)
        order = np.argsort(hashed)
        ordered = hashed[order]
        starts = np.ones(len(codes), dtype=np.bool_)
        starts[1:] = ordered[1:] != ordered[:-1]
        same = np.flatnonzero(~starts[1:])
        first, second = order[same], order[same + 1]
        # Neighbours in the order of the hashes are all that have to be compared: groups are runs.
        if all(np.array_equal(codes[first, column], codes[second, column]) for column in columns):
            group = np.empty(len(codes), dtype=np.intp)
            group[order] = np.cumsum(starts) - 1
            return group, int(starts.sum())
        salt += 1


def block_counts(codes: Codes, sizes: Sequence[int], weights: Array | None = None) -> Array:
    """Count all pairs of columns: block (i, j) of the result is the table of column i by column j.

    Small alphabets are counted by one matrix product of indicators, large ones pair by pair.
    """
    at = offsets(sizes)
    width = int(at[-1])
    blocks = np.zeros((width, width))
    if width <= LARGEST_GRAM:
        rows = np.arange(_GRAM_ROWS)[:, None]
        for start in range(0, len(codes), _GRAM_ROWS):
            chunk = codes[start : start + _GRAM_ROWS].astype(np.intp) + at[:-1]
            # A chunk's counts fit a float32 exactly, and its product takes half the time.
            indicators = np.zeros((len(chunk), width), dtype=np.float32 if weights is None else np.float64)
            indicators[rows[: len(chunk)], chunk] = 1
            weighted = indicators if weights is None else indicators * weights[start:, None][: len(chunk)]
            blocks += indicators.T @ weighted
        return blocks
    spans = list(pairwise(at))
    for i, (a, b) in enumerate(spans):
        for j, (c, d) in enumerate(spans[: i + 1]):
            flat = codes[:, i].astype(np.intp) * (d - c) + codes[:, j]
            block = np.bincount(flat, weights=weights, minlength=(b - a) * (d - c)).reshape(b - a, d - c)
            blocks[a:b, c:d] = block
            blocks[c:d, a:b] = block.T
    return blocks
