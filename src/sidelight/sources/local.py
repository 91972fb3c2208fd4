"""Rows on this machine, behind DuckDB: large typed files are streamed, others are read once and kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import count
from typing import Any

import duckdb
import pyarrow as pa

from sidelight.foundation.errors import InputError
from sidelight.schema import Schema
from sidelight.sources.cells import Stated, settle
from sidelight.sources.codebook import Codebook
from sidelight.sources.faults import reading
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
        view = _fresh_view()
        if self.store is None:
            scan = f"(SELECT {select} FROM {self.scan})" if self.scan else ""
            return replace(self, start=lambda: self._relation(select), scan=scan, view=view)
        with reading(self.label):
            table = self.store.keep(view, f"SELECT {select} FROM {self.view}")
            self.store.forget(self.view)
        return replace(in_store(self.store, table, self.label), finder=self.finder, notes=self.notes)

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
            self._frequent[column] = most, self._most_frequent(column, most)
        return self._frequent[column][1][:most]

    def _most_frequent(self, column: str, most: int) -> list[str]:
        value = present(column, self.columns[column])
        value = f"{value}::VARCHAR" if self.columns[column] == "ENUM" else value
        rest = f"WHERE {value} IS NOT NULL GROUP BY {value} ORDER BY count(*) DESC, {value} LIMIT {most}"
        return [row[0] for row in self.rows(f"any_value({value})::VARCHAR", rest, column)]

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

    def codebook(self, schema: Schema, *, compiled: bool) -> Codebook:
        """Return how its columns become the codes of a schema."""
        return Codebook(schema, self.columns, self.label, compiled)

    def asked(self, book: Codebook, rows: int) -> Iterator[pa.RecordBatch]:
        """Return what a codebook asks for, in batches of `rows` rows."""
        return self.batches(book.select, where_complete(book.schema, book.types), rows)

    def _own(self) -> tuple[duckdb.DuckDBPyConnection, str] | None:
        """Return where to ask about rows of our own, and what to say first; None where they are another's."""
        if self.store is not None:
            return self.store.connection.cursor(), ""
        if self.scan:
            return scratch(), f"WITH {self.view} AS NOT MATERIALIZED (SELECT * FROM {self.scan}) "
        return None

    def _relation(self, select: str, rest: str = "") -> duckdb.DuckDBPyRelation:
        query, own = f"SELECT {select} FROM {self.view} {rest}", self._own()
        return self.ask(self.view, query) if own is None else own[0].sql(own[1] + query)

    def ask(self, name: str, query: str) -> duckdb.DuckDBPyRelation:
        """Return the rows of a query that calls the source by a name."""
        return present_rows(self.opened().query(name, query), self.label)

    def opened(self) -> duckdb.DuckDBPyRelation:
        """Open the rows anew."""
        return present_rows(self.start(), self.label)


def present_rows(relation: duckdb.DuckDBPyRelation | None, label: str) -> duckdb.DuckDBPyRelation:
    """Return the rows of a query, or raise if it is a statement that has none."""
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


def in_store(store: Store, table: str, label: str) -> LocalSource:
    """Return the rows of a table in a store."""
    return LocalSource(lambda: store.rows(table), store=store, view=table, label=label)


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
