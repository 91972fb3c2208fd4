"""Counting sets of attributes in one pass: a plan chosen by cost, and counters that carry it out.

A set is counted in one of two ways. Small alphabets become bitmaps, one for each value but the first, and the
records that have several values are the set bits of the bitmaps' AND; cells with first values follow by
subtraction. Larger alphabets are counted in dense tables, one step a record for any number of attributes; so
a table takes in further attributes while it fits the cache, and all sets inside it are its margins.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.arrays import AnyCodes, Mask, Positions, Whole, Words, offsets

Term = tuple[int, ...]

TERM_COST, PACK_COST, TABLE_COST, MEMBER_COST = 0.0025, 0.06, 0.4, 0.035
"""Nanoseconds a record: one AND with its popcount, one bitmap made, one table's step, one of its members.

Measured by `python -m bench.scale`; only their ratios matter here.
"""

LARGEST_SHARED = 1 << 14
"""A table takes in no attribute that would give it more cells: it would leave the cache."""

_SHARED = (8.0, 32.0, math.inf)
"""How many sets a table may be expected to serve; with infinitely many, bitmaps are never worth making."""

FLUSH_ROWS = 1 << 31
"""A cell of 32 bits may not count more records before it is added to one of 64."""


@dataclass(frozen=True)
class CountingPlan:
    """Which tables and which bitmaps answer the sets that are asked for."""

    sizes: tuple[int, ...]  # the alphabets of all attributes
    sets: tuple[Term, ...]  # what is asked for, as positions of attributes
    tables: tuple[Term, ...]  # the attributes of each dense table
    homes: tuple[int, ...]  # for each set its table, or -1 where it is counted by bitmaps

    @property
    def cost(self) -> float:
        """The nanoseconds that a record is expected to take, coding apart."""
        tables = sum(TABLE_COST + MEMBER_COST * len(table) for table in self.tables)
        return tables + TERM_COST * len(self.terms[0]) + PACK_COST * len(self.bitmaps)

    @cached_property
    def bitmaps(self) -> dict[tuple[int, int], int]:
        """The place of the bitmap of each attribute and value that some set needs."""
        by_bitmaps = (columns for columns, home in zip(self.sets, self.homes, strict=True) if home < 0)
        asked = sorted({column for columns in by_bitmaps for column in columns})
        wanted = [(column, value) for column in asked for value in range(1, self.sizes[column])]
        return {pair: place for place, pair in enumerate(wanted)}

    @cached_property
    def terms(self) -> tuple[NDArray[np.int32], dict[int, Positions]]:
        """The combinations of bitmaps whose common bits are counted, and where each set finds its own.

        A term is a row of three bitmaps, -1 where there are fewer. Every set by bitmaps, by its number, has
        for each of its cells the place of a term; place 0 is that of no bitmap at all, so of all records.
        """
        numbers = [number for number, home in enumerate(self.homes) if home < 0]
        grids = [self._grid(self.sets[number]) for number in numbers]
        if not grids:
            return np.empty((0, 3), dtype=np.int32), {}
        terms, places = np.unique(np.concatenate(grids), axis=0, return_inverse=True)
        ends = np.cumsum([len(grid) for grid in grids])[:-1]
        # The first, (-1, -1, -1), asks for no bitmap: its count is the number of records.
        return terms[1:], dict(zip(numbers, np.split(places.reshape(-1), ends), strict=True))

    def _grid(self, columns: Term) -> NDArray[np.int32]:
        """Return the bitmaps of every cell of a set, shape (cells, 3); a first value asks for none."""
        grid = np.full((*self.shape(columns), 3), -1, dtype=np.int32)
        for axis, column in enumerate(columns):
            first = self.bitmaps[column, 1] if self.sizes[column] > 1 else 0
            along = np.moveaxis(grid[..., axis], axis, -1)
            along[..., 1:] = np.arange(first, first + self.sizes[column] - 1)
        return -np.sort(-grid.reshape(-1, 3), axis=1)  # in one order, so that sets share their terms

    def shape(self, columns: Sequence[int]) -> tuple[int, ...]:
        """Return the alphabets' sizes of some attributes."""
        return tuple(self.sizes[column] for column in columns)

    @cached_property
    def bases(self) -> Whole:
        """Where each table's cells begin when all are laid end to end; last, their number."""
        return offsets([math.prod(self.shape(table)) for table in self.tables]).astype(np.int64)

    @cached_property
    def layout(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint32]]:
        """Where each table's members begin, the members, and how far apart the cells of their values are."""
        starts = np.cumsum([0, *(len(table) for table in self.tables)]).astype(np.int32)
        members = np.array([column for table in self.tables for column in table], dtype=np.int32)
        tails = (table[place + 1 :] for table in self.tables for place in range(len(table)))
        strides = [math.prod(self.shape(tail)) for tail in tails]
        return starts, members, np.array(strides, dtype=np.uint32)


def plan_counting(sizes: Sequence[int], sets: Sequence[Sequence[int]]) -> CountingPlan:
    """Choose bitmaps or tables for every set, by cost.

    >>> plan = plan_counting([2, 2, 2, 40, 30, 20], [(0, 1), (1, 2), (3, 4), (4, 5)])
    >>> plan.tables, plan.homes
    (((3, 4), (4, 5)), (-1, -1, 0, 1))
    """
    asked = tuple(tuple(columns) for columns in sets)
    return min((planned(tuple(sizes), asked, shared) for shared in _SHARED), key=lambda plan: plan.cost)


def planned(sizes: tuple[int, ...], sets: tuple[Term, ...], shared: float) -> CountingPlan:
    """Plan with bitmaps for the sets that are cheaper so than their share of a table that serves `shared`."""
    left = [set(columns) for columns in sets if not _suits_bitmaps(sizes, columns, shared)]
    tables = _covering(sizes, left)
    members = [set(table) for table in tables]
    homes = [
        next((home for home, inside in enumerate(members) if inside.issuperset(columns)), -1)
        for columns in sets
    ]
    return CountingPlan(sizes, sets, tuple(tables), tuple(homes))


def _suits_bitmaps(sizes: Sequence[int], columns: Sequence[int], shared: float) -> bool:
    """Whether bitmaps are cheaper than this set's share of a table."""
    if len(columns) > 3:  # a term has room for three bitmaps
        return False
    terms = math.prod(sizes[column] - 1 for column in columns)
    return terms * TERM_COST <= (TABLE_COST + MEMBER_COST * len(columns)) / shared


def _covering(sizes: Sequence[int], sets: Sequence[set[int]]) -> list[Term]:
    """Return tables such that every set lies inside one, greedily, the largest alphabets first."""
    inside = np.zeros((len(sets), len(sizes)), dtype=bool)
    for row, columns in zip(inside, sets, strict=True):
        row[list(columns)] = True
    # The largest first: its table can take in small sets, theirs could not take in this one.
    order = sorted(range(len(sets)), key=lambda i: -math.prod(sizes[column] for column in sets[i]))
    open_sets = np.ones(len(sets), dtype=bool)
    tables: list[Term] = []
    for i in order:
        if open_sets[i]:
            table = _extended(sizes, sets[i], inside[open_sets])
            open_sets &= (inside & ~table).any(axis=1)
            tables.append(tuple(int(column) for column in np.flatnonzero(table)))
    return tables


def _extended(sizes: Sequence[int], seed: set[int], inside: Mask) -> Mask:
    """Return a set's attributes with those that complete the most other sets, while the table stays small."""
    table = np.zeros(len(sizes), dtype=bool)
    table[list(seed)] = True
    alphabets = np.asarray(sizes, dtype=np.float64)
    while True:
        lacking = inside & ~table
        completed = lacking[lacking.sum(axis=1) == 1].sum(axis=0)
        fits = alphabets * np.prod(alphabets[table]) <= LARGEST_SHARED
        # Cells multiply, so the logarithm says how much of a table's room an alphabet uses up.
        gains = np.where(fits & ~table, completed / np.log(np.maximum(alphabets, 2)), 0)
        best = int(gains.argmax())
        if gains[best] <= 0:
            return table
        table[best] = True


@dataclass(eq=False)
class Counter:
    """The running counts of one plan, by compiled loops or not; each thread has its own, and they add up."""

    plan: CountingPlan
    compiled: bool
    rows: int = 0
    _waiting: int = 0
    narrow: NDArray[np.uint32] = field(init=False)
    _flushed: Whole = field(init=False)
    _together: Whole = field(init=False)

    def __post_init__(self) -> None:
        self.narrow = np.zeros(int(self.plan.bases[-1]), dtype=np.uint32)
        self._flushed = np.zeros(0, dtype=np.int64)
        self._together = np.zeros(len(self.plan.terms[0]), dtype=np.int64)

    def add(self, codes: AnyCodes) -> None:
        """Count a batch of codes, shape (attributes, records)."""
        rows = codes.shape[1]
        if self._waiting + rows > FLUSH_ROWS:
            self._flush()
        self._waiting += rows
        self.rows += rows
        if self.plan.tables:
            self._count_tables(codes)
        if self.plan.bitmaps:
            self._count_together(_packed(codes, self.plan.bitmaps))

    def _count_tables(self, codes: AnyCodes) -> None:
        plan = self.plan
        if self.compiled:
            from sidelight.sources.kernels import count_tables

            count_tables(codes, *plan.layout, plan.bases, self.narrow)
            return
        for table, (begin, end) in zip(plan.tables, pairwise(plan.bases), strict=True):
            shape = plan.shape(table)
            flat = np.ravel_multi_index(tuple(codes[column].astype(np.intp) for column in table), shape)
            self.narrow[begin:end] += np.bincount(flat, minlength=end - begin).astype(np.uint32)

    def _count_together(self, bitmaps: Words) -> None:
        if self.compiled:
            from sidelight.sources.kernels import count_together

            count_together(bitmaps, self.plan.terms[0], self._together)
            return
        for place, term in enumerate(self.plan.terms[0]):
            common = np.bitwise_and.reduce(bitmaps[term[term >= 0]], axis=0)
            self._together[place] += int(np.bitwise_count(common).sum(dtype=np.int64))

    def _flush(self) -> None:
        if not len(self._flushed):
            self._flushed = np.zeros(len(self.narrow), dtype=np.int64)
        self._flushed += self.narrow
        self.narrow[:] = 0
        self._waiting = 0

    def __iadd__(self, other: Counter) -> Counter:
        for counter in (self, other):
            counter._flush()
        self._flushed += other._flushed
        self._together += other._together
        self.rows += other.rows
        return self

    def results(self) -> list[Whole]:
        """Return the cells of every set, in the order they were asked for."""
        self._flush()
        by_bitmaps = self._from_bitmaps()
        return [
            by_bitmaps[number] if home < 0 else self._from_table(columns, home)
            for number, (columns, home) in enumerate(zip(self.plan.sets, self.plan.homes, strict=True))
        ]

    def _from_table(self, columns: Term, home: int) -> Whole:
        table = self.plan.tables[home]
        begin, end = self.plan.bases[home : home + 2]
        cells = self._flushed[begin:end].reshape(self.plan.shape(table))
        rest = tuple(axis for axis, column in enumerate(table) if column not in columns)
        kept = [column for column in table if column in columns]
        return np.ascontiguousarray(cells.sum(axis=rest).transpose([kept.index(c) for c in columns]))

    def _from_bitmaps(self) -> dict[int, Whole]:
        """Start with "any value" in the place of every first value, and take the other values off it."""
        together = np.concatenate([[self.rows], self._together])
        alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for number in self.plan.terms[1]:
            alike[self.plan.shape(self.plan.sets[number])].append(number)
        tables: dict[int, Whole] = {}
        for shape, numbers in alike.items():
            places = np.stack([self.plan.terms[1][number] for number in numbers])
            cells = together[places].reshape(-1, *shape)
            for axis in range(1, cells.ndim):
                along = np.moveaxis(cells, axis, 0)
                along[0] -= along[1:].sum(axis=0)
            tables.update(zip(numbers, cells, strict=True))
        return tables


def _packed(codes: AnyCodes, wanted: dict[tuple[int, int], int]) -> Words:
    """Return a bitmap for every attribute and value asked for, shape (bitmaps, words)."""
    rows = codes.shape[1]
    bitmaps = np.zeros((len(wanted), -(-rows // 64)), dtype=np.uint64)
    used = bitmaps.view(np.uint8)[:, : -(-rows // 8)]
    for (column, value), place in wanted.items():
        used[place] = np.packbits(codes[column] == value, bitorder="little")
    return bitmaps
