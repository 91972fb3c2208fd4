"""Rows in memory, as an Arrow table: most of what is asked about them is answered without SQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from sidelight.foundation.errors import InputError, invalid
from sidelight.foundation.files import REPORTS_KEY
from sidelight.schema import Schema
from sidelight.sources.codebook import Codebook
from sidelight.sources.faults import are_reports, not_columns, reading
from sidelight.sources.local import LocalSource, present_rows, rename_notes
from sidelight.sources.sql import quoted, scratch, where_complete
from sidelight.sources.tally import Tally, as_written, is_number, tally, texts

_MOST_ROWS = 1 << 20
_MOST_BYTES = 1 << 30
"""Columns of more rows or bytes are left to DuckDB, which does not sort all of them."""
_MOST_KEPT = 1 << 12
"""Tallies with so many distinct values are kept; making a longer one again is cheaper than its memory."""


@dataclass(frozen=True, eq=False, kw_only=True)
class MemorySource(LocalSource):
    """Rows in memory. What tallies of its columns do not answer, DuckDB does, over the same rows."""

    arrow: pa.Table
    _tallies: dict[str, Tally] = field(default_factory=dict, init=False, repr=False)
    _distinct: dict[str, int] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def _places(self) -> dict[str, int]:
        """Where each column is; DuckDB renames like names."""
        return {name: place for place, name in enumerate(self.columns)}

    def replacing(self, values: Mapping[str, str]) -> LocalSource:
        """Return the source with some columns as SQL gives them; those that stay are not copied."""
        arrow = self.arrow
        with reading(self.label):
            changed = self.reader(", ".join(values.values())).read_all()
        for name, column in zip(values, changed.columns, strict=True):
            place = self._places[name]
            arrow = arrow.set_column(place, arrow.column_names[place], column)
        return replace(of_arrow(arrow, self.label), finder=self.finder, notes=self.notes)

    def profile(self, columns: Sequence[str]) -> tuple[int, list[tuple[int, int]]]:
        """Return the number of rows and, for each column, its values and about how many are distinct."""
        tallies = {name: self._tally(name) for name in columns}
        known = {name: (found.present, len(found.values)) for name, found in tallies.items() if found}
        others = [name for name in columns if name not in known]
        known |= zip(others, super().profile(others)[1], strict=True) if others else ()
        return self._count, [known[name] for name in columns]

    def distinct(self, column: str) -> int:
        """Return exactly how many distinct values a column has."""
        if column not in self._distinct:
            self._tally(column)
        return self._distinct[column] if column in self._distinct else super().distinct(column)

    def _most_frequent(self, column: str, most: int) -> list[str]:
        found = self._tally(column)
        if found is None:
            return super()._most_frequent(column, most)
        with reading(self.label, column, self.columns[column]):
            return texts(found.frequent(most))

    def foresee(self, columns: Sequence[str], bins: int) -> None:
        """Find out the summaries of columns of numbers that are not known yet."""
        tallies = {name: self._tally(name) for name in columns if name not in self._summaries}
        numbers = {name: found for name, found in tallies.items() if found and is_number(found.values.type)}
        summaries = {name: found.summary(bins) for name, found in numbers.items() if found.present}
        single = [name for name in summaries if pa.types.is_float32(numbers[name].values.type)]
        with reading(self.label):
            summaries |= zip(single, as_written([summaries[name] for name in single]), strict=True)
        self._summaries.update(summaries)
        super().foresee(columns, bins)

    def complete(self, schema: Schema) -> int:
        """Return the number of rows that lack no value whose absence drops its record."""
        return super().complete(schema) if where_complete(schema, self.columns) else self._count

    def codebook(self, schema: Schema, *, compiled: bool) -> Codebook:
        """Return how its columns become codes; those that need no SQL are taken as they are."""
        book = super().codebook(schema, compiled=compiled)
        if where_complete(schema, self.columns):
            return book
        return replace(book, held=dict(zip(self.columns, self.arrow.schema.types, strict=True)))

    def asked(self, book: Codebook, rows: int) -> Iterator[pa.RecordBatch]:
        """Return what a codebook asks for, batch by batch; columns that need no work are not copied."""
        if not book.held:
            yield from super().asked(book, rows)
            return
        names, selects = book.schema.names, [coder.select for coder in book.coders]
        columns = [self.arrow.column(self._places[name]) for name in names]
        worked = [select for name, select in zip(names, selects, strict=True) if select != quoted(name)]
        if not worked:
            yield from pa.Table.from_arrays(columns, names=list(names)).to_batches(rows)
            return
        start = 0
        for batch in self.batches(", ".join(worked), "", rows):
            done = dict(zip(worked, batch.columns, strict=True))
            parts = [
                done[select] if select in done else column.slice(start, batch.num_rows)
                for select, column in zip(selects, columns, strict=True)
            ]
            yield from pa.Table.from_arrays(parts, names=list(names)).to_batches()
            start += batch.num_rows

    @cached_property
    def _count(self) -> int:
        return int(self.arrow.num_rows)

    def _tally(self, column: str) -> Tally | None:
        """Return the tally of a column; None if it is DuckDB's to answer."""
        if column in self._tallies:
            return self._tallies[column]
        cells = self.arrow.column(self._places[column])
        if self._count > _MOST_ROWS or cells.nbytes > _MOST_BYTES:
            return None
        with reading(self.label, column, self.columns[column]):
            found = tally(cells)
        if found is not None:
            self._distinct[column] = len(found.values)
            if len(found.values) <= _MOST_KEPT:
                self._tallies[column] = found
        return found

    def _own(self) -> tuple[duckdb.DuckDBPyConnection, str]:
        return scratch().register(self.view, self.arrow), ""

    def ask(self, name: str, query: str) -> duckdb.DuckDBPyRelation:
        """Return the rows of a query that calls the source by a name, once or more often.

        A relation of Arrow rows that is read twice waits for itself for ever; a registered table does not.
        """
        return present_rows(scratch().register(name, self.arrow).sql(query), self.label)


def of_arrow(table: pa.Table, label: str) -> MemorySource:
    """Return the rows of an Arrow table in memory."""
    return MemorySource(lambda: scratch().from_arrow(table), arrow=table, label=label)


def open_object(rows: object) -> LocalSource:
    """Open a DuckDB relation, columns in memory, or anything that offers the Arrow stream interface."""
    if isinstance(rows, duckdb.DuckDBPyRelation):
        relation = rows
        return LocalSource(lambda: relation, label="the DuckDB relation")
    if isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    if type(rows).__name__ == "LazyFrame":  # of polars, which need not be installed
        rows = rows.collect()  # type: ignore[attr-defined]
    label = f"the {type(rows).__name__}"
    columns = _columns(rows)
    if columns is None and not hasattr(rows, "__arrow_c_stream__"):
        raise invalid(
            "source",
            "a path, an Arrow table, a DataFrame, a dict of columns, a NumPy array with named columns, a "
            "DuckDB relation or anything with an Arrow stream",
            type(rows).__name__,
        )
    try:
        table = rows if isinstance(rows, pa.Table) else pa.table(rows if columns is None else columns)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise not_columns(label, error) from None
    if REPORTS_KEY in (table.schema.metadata or {}):
        raise are_reports(label, "is a table")
    source = of_arrow(table, label)
    if len({name.lower() for name in table.column_names}) == table.num_columns:
        return source
    return replace(source, notes=rename_notes(table.column_names, list(source.columns)))


def _columns(rows: object) -> dict[str, Any] | None:
    """Return the columns of a dict or of a NumPy array that names them; None for anything else."""
    if isinstance(rows, Mapping):
        return {str(name): column for name, column in rows.items()}
    if isinstance(rows, np.ndarray) and rows.dtype.names and rows.ndim == 1:
        return {name: np.ascontiguousarray(rows[name]) for name in rows.dtype.names}
    return None


def open_query(query: str, connection: Any) -> LocalSource:
    """Open the result of a query on a DuckDB connection or any DB-API 2.0 connection."""
    if isinstance(connection, duckdb.DuckDBPyConnection):
        return LocalSource(lambda: connection.sql(query), label="the query")
    if not hasattr(connection, "cursor"):
        raise invalid("connection", "a DuckDB or DB-API 2.0 connection", type(connection).__name__)
    cursor = connection.cursor()
    try:
        cursor.execute(query)
    except Exception as error:
        kind = type(error).__name__
        raise InputError(f"the query cannot be run: {kind}; check it against the database.") from error
    if cursor.description is None:
        raise InputError("the query returns no rows; it must be a SELECT.")
    names = [column[0] for column in cursor.description]
    if len(set(names)) < len(names):
        raise InputError("the query returns two columns of the same name; rename one with AS.")
    return of_rows(names, cursor.fetchall(), "the query")


def of_rows(names: Sequence[str], rows: Sequence[Sequence[Any]], label: str) -> MemorySource:
    """Return rows of Python's own values; a column with words among its numbers is text."""
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    named = zip(names, columns, strict=True)
    return of_arrow(pa.table({name: _column(name, list(column), label) for name, column in named}), label)


def _column(name: str, values: list[Any], label: str) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):
        pass
    if not all(value is None or isinstance(value, (str, int, float)) for value in values):
        raise InputError(f"column {name!r} of {label} has values of several types; cast it to one.")
    return pa.array([None if value is None else str(value) for value in values], pa.string())
