"""Rows on this machine, behind DuckDB: typed files are streamed, text is read once and kept in a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import count
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from sidelight.foundation.errors import InputError, invalid
from sidelight.foundation.files import REPORTS_KEY
from sidelight.schema import Schema
from sidelight.sources.cells import Stated, settle
from sidelight.sources.faults import are_reports, not_columns, reading
from sidelight.sources.names import ISO
from sidelight.sources.source import Source, summarise
from sidelight.sources.sql import Store, literal, number, present, quoted, scratch, where_complete

Finder = Callable[[int], tuple[str, str]]
_serial = count()
_VALUES_AT_ONCE = 1 << 23
"""Quantiles keep their numbers in memory, so columns are summarised together up to this many values."""


def _fresh_view() -> str:
    return f"sidelight_source_{next(_serial)}"


@dataclass(frozen=True, eq=False)
class LocalSource(Source):
    """Rows on this machine that DuckDB can scan repeatedly.

    It opens the rows anew at every `start`, so that one scan does not disturb another; a relation of the
    caller's own connection can only be scanned once at a time. Rows in memory, in a store or in files are
    asked by statements where that will do: DuckDB binds a relation several times before it runs.
    """

    start: Callable[[], duckdb.DuckDBPyRelation | None]
    arrow: pa.Table | None = None  # the rows, where they are a table in memory
    scan: str = ""  # SQL for the rows, where they are those of files
    loader: Callable[[Sequence[str]], LocalSource] | None = None  # reads columns once, not at each scan
    store: Store | None = None  # where the rows are kept once they were read
    finder: Finder | None = None  # says in which file and line a row is, the first being 1; else its number
    view: str = field(default_factory=_fresh_view)  # its name in queries
    _frequent: dict[str, tuple[int, list[str]]] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def columns(self) -> dict[str, str]:
        """Every column's name and DuckDB type."""
        with reading(self.label):
            relation = self.opened()
            return dict(zip(relation.columns, map(_type_name, relation.types), strict=True))

    def prepared(self, columns: Sequence[str], stated: Stated) -> LocalSource:
        """Return the named columns with text parsed; a text file is read only once."""
        return settle(self.loader(columns) if self.loader is not None else self, columns, stated)

    def replacing(self, values: Mapping[str, str]) -> LocalSource:
        """Return the source with some columns as SQL gives them; where rows are kept, worked out once."""
        changed = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in values.items())
        select = f"* REPLACE ({changed})"
        if self.arrow is not None:
            return self._with_columns(self.arrow, values)
        view = _fresh_view()
        if self.store is None:
            scan = f"(SELECT {select} FROM {self.scan})" if self.scan else ""
            return replace(self, start=lambda: self._relation(select), scan=scan, view=view)
        with reading(self.label):
            table = self.store.keep(view, f"SELECT {select} FROM {self.view}")
            self.store.forget(self.view)
        return kept(self.store, table, self.label, self.notes, self.finder)

    def _with_columns(self, arrow: pa.Table, values: Mapping[str, str]) -> LocalSource:
        """Put columns into the table in memory; those that stay are not copied."""
        places = {name: place for place, name in enumerate(self.columns)}
        with reading(self.label):
            changed = self.reader(", ".join(values.values())).read_all()
        for name, column in zip(values, changed.columns, strict=True):
            arrow = arrow.set_column(places[name], arrow.column_names[places[name]], column)
        return of_arrow(arrow, self.label, self.notes)

    def rows(self, select: str, rest: str = "", column: str = "", origin: str = "") -> list[tuple[Any, ...]]:
        """Run `SELECT select FROM source rest` and return its (few) rows; an error names the `column`.

        Where an `origin` is given, it stands in the place of the source and is made from it.
        """
        with reading(self.label, column, self.columns[column] if column else ""):
            query = f"SELECT {select} FROM {origin or self.view} {rest}"
            own = self._own()
            return (self.ask(self.view, query) if own is None else own[0].execute(own[1] + query)).fetchall()

    def batches(self, select: str, rest: str, rows: int) -> Iterator[pa.RecordBatch]:
        """Run `SELECT select FROM source rest` and stream its rows in batches of `rows`."""
        with reading(self.label), self.reader(select, rest, rows) as reader:
            yield from reader

    def reader(self, select: str, rest: str = "", rows: int = 1 << 16) -> pa.RecordBatchReader:
        """Return a reader of the rows of `SELECT select FROM source rest`."""
        return self._relation(select, rest).to_arrow_reader(rows)

    def profile(self, columns: Sequence[str]) -> tuple[int, list[tuple[int, int]]]:
        """Return the number of rows and, for each column, its values and about how many are distinct."""
        values = [present(column, self.columns[column]) for column in columns]
        parts = [f"count({value}), approx_count_distinct({value})" for value in values]
        figures = self.rows(", ".join(["count(*)", *parts]))[0]
        return figures[0], list(zip(figures[1::2], figures[2::2], strict=True))

    def distinct(self, column: str) -> int:
        """Return exactly how many distinct values a column has."""
        return int(self.rows(f"count(DISTINCT {present(column, self.columns[column])})", "", column)[0][0])

    def frequent(self, column: str, most: int) -> list[str]:
        """Return the labels of the `most` most frequent values; a longer list answers for shorter ones."""
        if most > self._frequent.get(column, (0, []))[0]:
            value = present(column, self.columns[column])
            value = f"{value}::VARCHAR" if self.columns[column] == "ENUM" else value
            rest = f"WHERE {value} IS NOT NULL GROUP BY {value} ORDER BY count(*) DESC, {value} LIMIT {most}"
            rows = self.rows(f"any_value({value})::VARCHAR", rest, column)
            self._frequent[column] = most, [row[0] for row in rows]
        return self._frequent[column][1][:most]

    def dates(self, column: str) -> int:
        """Return how many values of a column of text are dates in ISO form."""
        name = quoted(column)
        is_date = f"regexp_full_match({name}, {literal(ISO)}) AND TRY_CAST({name} AS TIMESTAMP) IS NOT NULL"
        return int(self.rows(f"count(*) FILTER ({is_date})", "", column)[0][0])

    def foresee(self, columns: Sequence[str], bins: int) -> None:
        """Ask about several columns of numbers together; some at a time, as their quantiles take memory."""
        new = [column for column in columns if column not in self._summaries]
        at_once = max(1, _VALUES_AT_ONCE // max(1, self._count)) if new else 1
        for start in range(0, len(new), at_once):
            some = new[start : start + at_once]
            summaries = summarise(partial(self._figures, some), len(some), bins)
            self._summaries.update(zip(some, summaries, strict=True))

    @cached_property
    def _count(self) -> int:
        return int(self.rows("count(*)")[0][0])

    def _figures(self, columns: Sequence[str], parts: Sequence[str]) -> Sequence[Any]:
        """Return aggregates of columns as numbers, called v0, v1 and so on, and f0, f1 where finite."""
        if not parts:
            return ()
        numbers = ", ".join(f"{number(name, self.columns[name])} AS v{i}" for i, name in enumerate(columns))
        finite = ", ".join(f"CASE WHEN isfinite(v{i}) THEN v{i} END AS f{i}" for i in range(len(columns)))
        origin = f"(SELECT *, {finite} FROM (SELECT {numbers} FROM {self.view}))"
        return self.rows(", ".join(parts), "", columns[0] if len(columns) == 1 else "", origin)[0]

    def complete(self, schema: Schema) -> int:
        """Return the number of rows that lack no value whose absence drops its record."""
        return int(self.rows("count(*)", where_complete(schema, self.columns))[0][0])

    def _own(self) -> tuple[duckdb.DuckDBPyConnection, str] | None:
        """Return where to ask about rows of our own, and what to say first; None where they are another's."""
        if self.store is not None:
            return self.store.connection.cursor(), ""
        if self.arrow is not None:
            return scratch().register(self.view, self.arrow), ""
        if self.scan:
            return scratch(), f"WITH {self.view} AS NOT MATERIALIZED (SELECT * FROM {self.scan}) "
        return None

    def _relation(self, select: str, rest: str = "") -> duckdb.DuckDBPyRelation:
        query, own = f"SELECT {select} FROM {self.view} {rest}", self._own()
        return self.ask(self.view, query) if own is None else own[0].sql(own[1] + query)

    def ask(self, name: str, query: str) -> duckdb.DuckDBPyRelation:
        """Return the rows of a query that calls the source by a name."""
        return _present(self.opened().query(name, query), self.label)

    def opened(self) -> duckdb.DuckDBPyRelation:
        """Open the rows anew."""
        return _present(self.start(), self.label)


def _present(relation: duckdb.DuckDBPyRelation | None, label: str) -> duckdb.DuckDBPyRelation:
    if relation is None:
        raise InputError(f"{label} returns no rows; it must be a SELECT.")
    return relation


def _type_name(kind: Any) -> str:
    """Return a type's name without its parameters: an enumeration's labels are data.

    Decimals without places after the point are whole numbers, as databases keep them.
    """
    if kind.id == "decimal":
        return "DECIMAL" if dict(kind.children)["scale"] else "HUGEINT"
    return "ENUM" if kind.id == "enum" else str(kind)


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


def rename_notes(header: Sequence[str | None], names: Sequence[str]) -> tuple[str, ...]:
    """Say which names of columns are not those of the header."""
    notes = []
    for place, (given, name) in enumerate(zip(header, names, strict=True), start=1):
        if not given:
            notes.append(f"Column {place} has no name in the header and is called {name!r}.")
        elif given.strip() != name:
            taken = f"the name {given.strip()!r} is taken (capitals do not count)"
            notes.append(f"Column {place} is called {name!r}, since {taken}.")
    return tuple(notes)


def _columns(rows: object) -> dict[str, Any] | None:
    """Return the columns of a dict or of a NumPy array that names them; None for anything else."""
    if isinstance(rows, Mapping):
        return {str(name): column for name, column in rows.items()}
    if isinstance(rows, np.ndarray) and rows.dtype.names and rows.ndim == 1:
        return {name: np.ascontiguousarray(rows[name]) for name in rows.dtype.names}
    return None


def of_arrow(table: pa.Table, label: str, notes: tuple[str, ...] = ()) -> LocalSource:
    """Return the rows of an Arrow table in memory."""
    return LocalSource(lambda: scratch().from_arrow(table), table, label=label, notes=notes)


def kept(store: Store, table: str, label: str, notes: tuple[str, ...], finder: Finder | None) -> LocalSource:
    """Return the rows of a table in a store."""
    return LocalSource(
        lambda: store.rows(table), store=store, finder=finder, view=table, label=label, notes=notes
    )


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


def of_rows(names: Sequence[str], rows: Sequence[Sequence[Any]], label: str) -> LocalSource:
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
