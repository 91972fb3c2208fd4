"""Counts of attribute sets, and distinct records with how often each occurs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise

import numpy as np

from sidelight.foundation.arrays import Array, Codes, Positions, Whole, Words, offsets
from sidelight.foundation.compiled import use_loop
from sidelight.foundation.errors import InputError, TooLargeError
from sidelight.foundation.randomness import Seeded
from sidelight.schema import Schema
from sidelight.sources.counter import Counter, plan_counting

LARGEST_DENSE = 1 << 26  # half a gigabyte of doubles
_GRAM_ROWS = 1 << 14
LARGEST_GRAM = 4096
"""With more values than this, one product of indicators would mostly multiply zeros."""
VALUES_A_WORD = 64
"""So many values are counted with numpy in the time that one word takes to draw, see `use_loop`."""
LARGEST_DIGITS = 1 << 20
"""Weights below this are counted digit by digit."""
_COUNTED_ROWS = 1 << 17


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
        # That way keeps a table for every pair: few records of many attributes are a matrix product.
        pairs = math.comb(len(self.schema) + 1, 2)
        width = len(self.schema) / VALUES_A_WORD
        if len(self.weights) >= pairs and use_loop("sources.count_tables", len(self.weights), width):
            digits = _binary_digits(self.weights)
            if digits is not None:
                return _counted_blocks(self.codes, self.schema.sizes, digits)
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
        group, firsts = _grouped(self.codes, columns, lambda salt: self._hash_without(hidden, salt))
        return group, len(firsts)

    def thinned(self, names: Sequence[str], least: int) -> Records:
        """Return a share of the records that has about `least` of them or more, all where there are fewer.

        Records that agree in the named attributes are kept together or left out together, by their hash.
        """
        halvings = max(0, (len(self.weights) // max(least, 1)).bit_length() - 1)
        if not halvings:
            return self
        hidden = [column for column, name in enumerate(self.schema.names) if name not in names]
        hashed = self._hash_without(hidden, 0)
        kept = np.flatnonzero(hashed < np.uint64(1 << 64 - halvings))
        return Records(self.schema, np.asfortranarray(self.codes[kept]), self.weights[kept])

    def hashes(self, salt: int = 0) -> Words:
        """Return the hash of each record, see `row_hashes`; it is kept for the next call."""
        if salt not in self._hashes:
            self._hashes[salt] = row_hashes(self.codes, range(len(self.schema)), salt)
        return self._hashes[salt]

    def _hash_without(self, hidden: Sequence[int], salt: int) -> Words:
        """Return the records' hashes without some columns."""
        return np.asarray(self.hashes(salt) - row_hashes(self.codes, hidden, salt))


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
    return distinct_records(
        parts[0].schema, codes, weights, np.concatenate([part.hashes() for part in parts])
    )


def distinct_records(schema: Schema, codes: Codes, weights: Array, hashed: Words | None = None) -> Records:
    """Merge equal rows and add up their weights; their hashes need not be known."""
    columns = range(codes.shape[1])
    known = row_hashes(codes, columns, 0) if hashed is None else hashed
    group, firsts = _grouped(codes, columns, lambda salt: row_hashes(codes, columns, salt) if salt else known)
    records = Records(schema, np.asfortranarray(codes[firsts]), _weigh(group, weights, len(firsts)))
    records._hashes[0] = known[firsts]
    return records


def _weigh(group: Positions, weights: Array, groups: int) -> Array:
    return np.bincount(group, weights=weights, minlength=groups).astype(np.float64, copy=False)


def distinct_rows(codes: Codes) -> tuple[Positions, int]:
    """Return each row's group number and the number of groups of equal rows."""
    columns = range(codes.shape[1])
    group, firsts = _grouped(codes, columns, lambda salt: row_hashes(codes, columns, salt))
    return group, len(firsts)


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


def _grouped(
    codes: Codes, columns: Sequence[int], hashes: Callable[[int], Words]
) -> tuple[Positions, Positions]:
    """Number the groups of rows that are equal in some columns, given their hashes for a salt.

    Returns each row's group and each group's first row. Rows are compared by hash first; equal hashes of
    unequal rows are noticed and hashed anew.
    """
    if not columns:
        return np.zeros(len(codes), dtype=np.intp), np.arange(min(len(codes), 1))
    salt = 0
    while True:
        group, firsts = number_hashes(hashes(salt))
        first = firsts[group]
        others = np.flatnonzero(first != np.arange(len(codes)))
        first = first[others]
        if all(np.array_equal(codes[first, column], codes[others, column]) for column in columns):
            return group, firsts
        salt += 1


def number_hashes(hashed: Words) -> tuple[Positions, Positions]:
    """Number the distinct hashes in their order; return each row's number, and the first row of each."""
    if use_loop("sources.number_distinct", len(hashed)):
        from sidelight.sources.kernels import number_distinct

        group, firsts = np.empty(len(hashed), dtype=np.intp), np.empty(len(hashed), dtype=np.intp)
        return group, firsts[: number_distinct(hashed, group, firsts)].copy()
    order = np.argsort(hashed, kind="stable")
    ordered = hashed[order]
    starts = np.ones(len(hashed), dtype=np.bool_)
    starts[1:] = ordered[1:] != ordered[:-1]
    group = np.empty(len(hashed), dtype=np.intp)
    group[order] = np.cumsum(starts) - 1
    return group, order[starts]


def _binary_digits(weights: Array) -> list[Positions] | None:
    """Return, for each binary digit of the weights, the rows that have it; None unless they are counts.

    Few rows of a large table occur often, so that all digits together have hardly more rows than it.
    """
    if not len(weights) or weights.max() >= LARGEST_DIGITS or not np.array_equal(weights, np.floor(weights)):
        return None
    whole = weights.astype(np.int64)
    return [np.flatnonzero(whole & (1 << digit)) for digit in range(int(whole.max()).bit_length())]


def _counted_blocks(codes: Codes, sizes: Sequence[int], digits: Sequence[Positions]) -> Array:
    """Return what `block_counts` does of whole weights, whose digits are counted as rows are."""
    columns = range(len(sizes))
    plan = plan_counting(sizes, [*((column,) for column in columns), *combinations(columns, 2)])
    at = offsets(sizes)
    blocks = np.zeros((int(at[-1]), int(at[-1])))
    for digit, rows in enumerate(digits):
        counter = Counter(plan, compiled=True)
        for start in range(0, len(rows), _COUNTED_ROWS):
            counter.add(np.ascontiguousarray(codes[rows[start : start + _COUNTED_ROWS]].T))
        for members, cells in zip(plan.sets, counter.results(), strict=True):
            i, j = members[0], members[-1]
            block = (np.diag(cells) if i == j else cells) * float(1 << digit)
            blocks[at[i] : at[i + 1], at[j] : at[j + 1]] += block
            if i != j:
                blocks[at[j] : at[j + 1], at[i] : at[i + 1]] += block.T
    return blocks


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
