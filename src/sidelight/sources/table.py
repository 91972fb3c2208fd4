"""Table: where rows are and how they are coded; Engine: what counts and maps them, anywhere alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from operator import iadd
from pathlib import Path
from queue import SimpleQueue
from typing import ClassVar, TypeVar, cast

import numpy as np
import pyarrow as pa

from sidelight.foundation.arrays import Codes, Whole
from sidelight.foundation.compiled import use_loop
from sidelight.foundation.errors import invalid
from sidelight.foundation.files import write_atomically
from sidelight.foundation.html import html_table, listed
from sidelight.foundation.progress import track
from sidelight.foundation.threads import processors
from sidelight.schema import OTHER, Schema
from sidelight.sources.counter import Counter, CountingPlan, plan_counting
from sidelight.sources.counts import (
    VALUES_A_WORD,
    Counts,
    Records,
    check_dense,
    distinct_records,
    merge_records,
)
from sidelight.sources.dictionary import Guess, SetAside
from sidelight.sources.local import LocalSource
from sidelight.sources.source import Source
from sidelight.sources.sql import quoted, where_complete

T = TypeVar("T")

BATCH_ROWS = 1 << 16
_COUNTED_ROWS = 1 << 17
_LARGEST_COPIED = 1 << 21
"""Counters with more cells are not copied for each thread: one thread counts."""


@dataclass(frozen=True, eq=False)
class Table:
    """A lazy table: rows stay where they are until they are counted or mapped.

    Attributes:
        schema: the attributes and their alphabets.
        source: where the rows are.
        engine: what reads them.
        rows: the number of records that are used.
        dropped: the number of records left out because a value is missing.
        set_aside: columns that are no attributes, with the reason.
        guesses: what was guessed about columns, and how to state it.
    """

    schema: Schema
    source: Source
    engine: Engine
    rows: int
    dropped: int = 0
    set_aside: tuple[SetAside, ...] = ()
    guesses: tuple[Guess, ...] = ()

    def __len__(self) -> int:
        return self.rows

    def __repr__(self) -> str:
        return f"Table({self.source.label!r}, {self.rows} rows, {len(self.schema)} attributes)"

    def _repr_html_(self) -> str:
        rows = [[item.name, item.kind, item.size, listed(item.values), "used"] for item in self.schema]
        rows += [[item.column, "", "", "", f"set aside: {item.reason}"] for item in self.set_aside]
        return html_table(repr(self), ("column", "kind", "size", "values", ""), rows)

    def notes(self) -> list[str]:
        """Return what a reader of figures about the table must know: what was renamed, left out or folded."""
        notes = list(self.source.notes)
        notes += [
            f"Column {item.column!r} {item.reason}; set aside{'; ' * bool(item.remedy)}{item.remedy}."
            for item in self.set_aside
        ]
        notes += [f"Column {item.column!r} {item.reason}: a guess; {item.remedy}." for item in self.guesses]
        notes += [
            f"Column {item.name!r} keeps {len(item.listed)} values; all others count as one, {OTHER}."
            for item in self.schema
            if item.has_other
        ]
        if self.dropped:
            notes.append(f"Records with a missing value, left out: {self.dropped}.")
        return notes

    def counts(self, *sets: Sequence[str]) -> list[Counts]:
        """Count the records of every combination of values of the listed sets of attributes."""
        for names in sets:
            if isinstance(names, str) or not names:
                raise invalid("sets", "lists of attribute names", names)
            check_dense(self.schema.select(names).sizes)
        return self.engine.counts(self, sets) if sets else []

    def records(self, largest: int = 1 << 22) -> Records | None:
        """Return the distinct records and how often each occurs; None if there are more than `largest`."""
        return self.engine.records(self, largest)

    def pair_counts(self) -> list[Counts]:
        """Count all pairs of attributes."""
        return self.counts(*combinations(self.schema.names, 2))

    def codes(self) -> Codes:
        """Return all rows coded, shape (rows, attributes); for tables that fit in memory."""
        parts = list(self.engine.map_batches(self, lambda codes, _: codes))
        return np.concatenate(parts) if parts else np.empty((0, len(self.schema)), dtype=np.uint16)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Stream the raw columns of the attributes, for any library that speaks Arrow."""
        columns = ", ".join(quoted(name) for name in self.schema.names)
        rest = where_complete(self.schema, self.source.columns)
        return self.source.reader(columns, rest).__arrow_c_stream__(requested_schema)


@dataclass(frozen=True)
class Place:
    """Where a batch lies: in which part of the table, and at which of the part's rows it starts.

    The local engine has one part, number 0; Spark has one for each partition.
    """

    part: int
    start: int


class Engine(ABC):
    """What counts and maps the rows of a table; all engines agree to the last count.

    It `keeps_row_numbers` if a row has the same number whenever the table is read.
    """

    keeps_row_numbers: ClassVar[bool] = True

    @abstractmethod
    def counts(self, table: Table, sets: Sequence[Sequence[str]]) -> list[Counts]:
        """Return the counts of every listed set of attributes, from one pass over the rows."""

    @abstractmethod
    def records(self, table: Table, largest: int) -> Records | None:
        """Return the distinct records and how often each occurs; None if there are more than `largest`."""

    @abstractmethod
    def map_batches(self, table: Table, function: Callable[[Codes, Place], T]) -> Iterator[T]:
        """Apply `function` to batches of codes (rows, attributes) and their places, in the table's order.

        The function runs where the rows are.
        """


class LocalEngine(Engine):
    """One machine: DuckDB streams the rows, threads code and count them."""

    def counts(self, table: Table, sets: Sequence[Sequence[str]]) -> list[Counts]:
        """Return the counts of every listed set of attributes, from one pass over the rows."""
        plan, compiled = plan_of(table.schema, sets), is_worth_compiling(table)
        threads, batches = processors() if compiled else 1, -(-table.rows // _COUNTED_ROWS)
        cells = count_source(_source(table), table.schema, plan, compiled, threads, batches)
        return counted(table.schema, sets, cells)

    def records(self, table: Table, largest: int) -> Records | None:
        """Return the distinct records and how often each occurs; None if there are more than `largest`."""
        schema = table.schema
        parts = self.map_batches(table, lambda codes, _: distinct_records(schema, codes, np.ones(len(codes))))
        return merge_records(parts, largest)

    def map_batches(self, table: Table, function: Callable[[Codes, Place], T]) -> Iterator[T]:
        """Apply `function` to batches of codes (rows, attributes) and their places, in the table's order."""
        total = -(-table.rows // BATCH_ROWS)
        batches = coded_batches(_source(table), table.schema, is_worth_compiling(table))
        start = 0
        for codes in track(batches, "counting", total):
            yield function(codes, Place(0, start))
            start += len(codes)


def _source(table: Table) -> LocalSource:
    return cast(LocalSource, table.source)  # `read` chooses the engine that fits the source


def is_worth_compiling(table: Table) -> bool:
    """Whether a table has enough values for compiled loops."""
    return use_loop("sources.count_tables", table.rows, len(table.schema) / VALUES_A_WORD)


def plan_of(schema: Schema, sets: Sequence[Sequence[str]]) -> CountingPlan:
    """Return the plan that counts the named sets."""
    return plan_counting(schema.sizes, [[schema.index(name) for name in names] for names in sets])


def counted(schema: Schema, sets: Sequence[Sequence[str]], cells: Sequence[Whole]) -> list[Counts]:
    """Return cells as counts of the sets they belong to."""
    return [Counts(schema.select(names), part) for names, part in zip(sets, cells, strict=True)]


def coded_batches(source: LocalSource, schema: Schema, compiled: bool) -> Iterator[Codes]:
    """Return the codes of a source in its order, batch by batch, shape (rows, attributes)."""
    book = source.codebook(schema, compiled=compiled)
    for batch in source.asked(book, BATCH_ROWS):
        yield book.codes(batch).astype(np.uint16, copy=False).T


def count_source(
    source: LocalSource,
    schema: Schema,
    plan: CountingPlan,
    compiled: bool,
    threads: int,
    batches: int | None = None,
) -> list[Whole]:
    """Count the sets of a plan in a source, in constant memory.

    So many threads code and count; one, where each would need a large table of its own. The number of
    batches to expect is for a progress bar.
    """
    book = source.codebook(schema, compiled=compiled)
    threads = threads if int(plan.bases[-1]) <= _LARGEST_COPIED else 1
    counters = [Counter(plan, compiled) for _ in range(threads)]
    free: SimpleQueue[Counter] = SimpleQueue()
    for counter in counters:
        free.put(counter)

    def count(batch: pa.RecordBatch) -> None:
        counter = free.get()
        try:
            counter.add(book.codes(batch))
        finally:
            free.put(counter)

    _in_threads(track(source.asked(book, _COUNTED_ROWS), "counting", batches), count, threads)
    return reduce(iadd, counters).results()


def _in_threads(items: Iterable[T], work: Callable[[T], None], threads: int) -> None:
    """Do the work on every item, in several threads; no more items wait than there are threads."""
    if threads == 1:
        for item in items:
            work(item)
        return
    waiting: deque[Future[None]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > threads:  # the reader waits, so that memory stays bounded
                waiting.popleft().result()
        for future in waiting:
            future.result()


def write_table(table: Table, path: str | Path) -> Path:
    """Write the attributes of `table` to a .csv or .parquet file, atomically; return where it is."""
    return write_rows(pa.table(table), path)


def write_rows(rows: pa.Table, path: str | Path) -> Path:
    """Write rows to a .csv or .parquet file, atomically; return where it is."""
    from pyarrow import csv, parquet

    writers = {".csv": csv.write_csv, ".parquet": parquet.write_table}
    writer = writers.get(Path(path).suffix.lower())
    if writer is None:
        raise invalid("path", "a .csv or .parquet file", str(path))
    return write_atomically(path, lambda temporary: writer(rows, temporary))
