"""`read` and `read_sql`: from wherever the rows are to a Table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np

from sidelight.foundation.errors import InputError, TooLargeError
from sidelight.schema import Kind, Missing, Schema
from sidelight.sources.cells import Stated, stated_na
from sidelight.sources.dictionary import Binning, Coding, Dictionary, SetAside, Unused, as_dictionary
from sidelight.sources.files import open_path
from sidelight.sources.inference import check_names, check_varied, infer
from sidelight.sources.local import LocalSource
from sidelight.sources.memory import open_object, open_query
from sidelight.sources.session import is_spark
from sidelight.sources.source import Source
from sidelight.sources.table import Engine, LocalEngine, Table

MOST_COLUMNS = 1_000
"""An audit of this many columns has half a million pairs; more would take too long."""


class ReadOptions(TypedDict, total=False):
    """The options of `read` and `read_sql`.

    Attributes:
        columns: the columns to use, all by default.
        drop: columns to leave out.
        schema: code its columns as it says instead of looking at the data, and use no others; or a data
            dictionary, or the path of one, which may leave something to be inferred and columns out.
        rest: with a `Schema`, use the other columns as well; as a data dictionary says, if it is one.
        require: columns that must be usable: one that is constant or identifies records is then an error.
        bins: how many bins a number gets, before values that many records share get their own (10).
        binning: "quantile" (the default) or "width".
        edges: the inner edges of the bins, for the named columns; those of dates as "2020-06-07".
        values: the alphabet in order, for the named columns.
        kinds: the kind ("categorical", "ordinal", "numeric", "date", "time"), for the named columns, or
            "identifier" or "ignored", which leave a column out.
        max_values: above this many values (50), the rarest are merged into "(other)".
        few: a column of numbers with at most this many distinct values (20) is categorical.
        missing: "value" (a value of its own, the default) or "drop" (the record is left out).
        na: cells that count as missing in every column, such as "-9" or ["-9", "refused"]. The usual markers,
            such as "NA" and "?", also count as missing in columns of numbers, dates and truth values, unless
            na is ""; in a column of text they are values.
        label: what to call the source in messages and reports; its path or type by default.
    """

    columns: Iterable[str] | None
    drop: Iterable[str]
    schema: Schema | Dictionary | str | Path | None
    rest: bool | Dictionary | str | Path
    require: Iterable[str]
    bins: int
    binning: Binning
    edges: Mapping[str, Sequence[float | str]] | None
    values: Mapping[str, Sequence[str]] | None
    kinds: Mapping[str, Kind | Unused] | None
    max_values: int
    few: int
    missing: Missing
    na: str | Iterable[str] | None
    label: str | None


def read(
    source: object, *, encoding: str = "utf-8", sql: str | None = None, **options: Unpack[ReadOptions]
) -> Table:
    """Open a table; text files are read once, Parquet files and tables in memory where they are.

    Args:
        source: the path of a file (CSV, TSV, JSON, each also as .gz; Parquet, Arrow, Excel, DuckDB, SQLite),
            a glob or a folder of files of one format, "-" for standard input; an Arrow table; a pandas or
            polars DataFrame; a dict of columns; a NumPy array with named columns; a Spark DataFrame; a DuckDB
            relation; anything with the Arrow stream interface.
        encoding: of text files.
        sql: a SELECT whose rows are read from a file; its table is called `data`, those of a database or a
            workbook have their own names.
        **options: which columns are used and how they are coded: `columns`, `drop`, `schema`, `rest`,
            `require`, `bins`, `binning`, `edges`, `values`, `kinds`, `max_values`, `few`, `missing`, `na` and
            `label`. `ReadOptions` says what each means.
    """
    if isinstance(source, (str, Path)):
        return _read(open_path(source, encoding, sql), LocalEngine(), options)
    if sql is not None:
        raise InputError("`sql` is for files; ask a database by `read_sql`.")
    if encoding != "utf-8":
        raise InputError("`encoding` is for text files; the source is none.")
    if is_spark(source):
        from sidelight.sources.spark import SparkEngine, SparkSource

        return _read(SparkSource(source, label="the Spark DataFrame"), SparkEngine(), options)
    return _read(open_object(source), LocalEngine(), options)


def as_table(rows: object) -> Table:
    """Return a table as it is, and anything else as `read` opens it by its own rules."""
    return rows if isinstance(rows, Table) else read(rows)


def read_sql(query: str, connection: Any, **options: Unpack[ReadOptions]) -> Table:
    """Open the rows of a query on a DuckDB connection or any DB-API 2.0 connection.

    The further arguments are those of `read`; see `ReadOptions`.
    """
    return _read(open_query(query, connection), LocalEngine(), options)


def _read(source: Source, engine: Engine, options: ReadOptions) -> Table:
    given: dict[str, Any] = {name: option for name, option in options.items() if option is not None}
    source = replace(source, label=given.pop("label", source.label))
    lists = {name: given[name] for name in ("columns", "drop", "require") if name in given}
    given |= {name: [part] if isinstance(part, str) else list(part) for name, part in lists.items()}
    coding = Coding(**{name: given.pop(name) for name in _CODING if name in given})
    choice = _Choice(**given)
    stated: object = choice.rest
    if choice.schema is not None and not isinstance(choice.schema, Schema):
        choice, stated = replace(choice, schema=None), choice.schema
    if isinstance(stated, bool):
        return _table(source, engine, choice, coding)
    dictionary = as_dictionary(stated)
    notes = dictionary.notes(source)
    coding = replace(coding, columns=dictionary.columns)
    known = dictionary.schema(coding, choice.given)
    na = choice.na if choice.na is not None else dictionary.na
    table = _table(source, engine, replace(choice, schema=known, rest=True, na=na), coding)
    described = [name for name in known.names if name in table.schema and name not in choice.given]
    notes += _unused_notes(table, described, dictionary.label)
    return replace(table, source=replace(table.source, notes=(*table.source.notes, *notes)))


_CODING = ("bins", "binning", "edges", "values", "kinds", "max_values", "few", "missing")


@dataclass(frozen=True)
class _Choice:
    """Which columns are used; the attributes are those of the options."""

    columns: Sequence[str] | None = None
    drop: Sequence[str] = ()
    schema: Any = None
    rest: Any = False
    require: Sequence[str] = ()
    na: str | Iterable[str] | None = None

    @property
    def given(self) -> Schema:
        """The attributes that need no look at the data."""
        return self.schema if self.schema is not None else Schema(())

    def wanted(self, source: Source) -> list[str]:
        """Return the columns that are asked for, before any are dropped."""
        if self.columns is not None:
            return list(self.columns)
        return list(source.columns if self.schema is None or self.rest else self.given.names)

    def named(self, coding: Coding) -> set[str]:
        """Return the columns that must become attributes, since something names them."""
        return {*(self.columns or ()), *coding.named, *self.require}


def _unused_notes(table: Table, names: Sequence[str], label: str) -> tuple[str, ...]:
    """Say in which columns what is stated makes one value of all records: it may be misspelt."""
    counted = zip(names, table.counts(*([name] for name in names)), strict=True)
    only = {name: np.flatnonzero(counts.cells) for name, counts in counted}
    values = {name: table.schema[name].values for name in names}
    return tuple(
        f"Column {name!r}: all records are {values[name][codes[0]]!r}; check what {label} states."
        for name, codes in only.items()
        if len(codes) == 1 and len(values[name]) > 1
    )


def column_names(path: str | Path, encoding: str = "utf-8", sql: str | None = None) -> list[str]:
    """Return the names of a file's columns."""
    return list(open_path(path, encoding, sql).columns)


def open_settled(path: str | Path, encoding: str = "utf-8") -> LocalSource:
    """Open a file with its columns of text parsed."""
    source = open_path(path, encoding)
    return source.prepared(list(source.columns), Stated())


def _stated(choice: _Choice, coding: Coding) -> Stated:
    """Return what the reader has said about the columns' cells: a kind, an alphabet or edges say much."""
    shaped = {name: coding.column(name) for name in {*coding.columns, *coding.named}}
    kinds = {name: column.kind for name, column in shaped.items() if column.is_shaped}
    kinds |= {item.name: item.kind for item in choice.given}
    numeric = {*coding.edges, *(name for name, kind in kinds.items() if kind == "numeric")}
    return Stated(stated_na(choice.na), frozenset(set(kinds) - numeric), frozenset(numeric))


def _chosen(source: Source, choice: _Choice, coding: Coding) -> tuple[list[str], dict[str, SetAside]]:
    """Return the columns to use, and those that are stated to be no attributes."""
    wanted, dropped, named = choice.wanted(source), choice.drop, choice.named(coding)
    check_names(source, [*wanted, *choice.given.names, *dropped, *sorted(named)])
    for name in named & set(dropped):
        raise InputError(f"column {name!r} of {source.label} is both named and dropped; choose one.")
    kept = [name for name in wanted if name not in dropped]
    unused = coding.unused([name for name in kept if name not in choice.given])
    for name in named & set(unused):
        raise InputError(f"column {name!r} of {source.label} {unused[name].reason}; state another kind.")
    chosen = [name for name in kept if name not in unused]
    if not chosen:
        raise InputError(f"{source.label}: no column is left; drop fewer.")
    count = sum(name not in choice.given for name in chosen)
    if count > MOST_COLUMNS:
        raise TooLargeError(
            f"{source.label} has {count} columns to look at, and their pairs grow with the square; "
            f"at most {MOST_COLUMNS} are taken. Name those to use by columns= "
            "(--column), leave out others by drop= (--drop), or give a schema."
        )
    return chosen, unused


def _table(source: Source, engine: Engine, choice: _Choice, coding: Coding) -> Table:
    given, named = choice.given, choice.named(coding)
    chosen, unused = _chosen(source, choice, coding)
    source = source.prepared(chosen, _stated(choice, coding))
    unknown = [name for name in chosen if name not in given]
    inferred, rows, aside, guesses = infer(source, unknown, named, coding)
    known = {attribute.name: attribute for attribute in (*inferred, *given)}
    schema = Schema(tuple(known[name] for name in chosen if name in known))
    if not len(schema):
        reasons = "; ".join(f"{item.column} {item.reason}" for item in aside[:5])
        raise InputError(f"{source.label} has no usable column: {reasons}.")
    check_varied(source, [name for name in named if name in given and name in schema])
    used = source.complete(schema)
    if used < 2:
        raise InputError(f"{source.label} has {used} complete rows; it needs at least two.")
    return Table(schema, source, engine, used, rows - used, (*unused.values(), *aside), guesses)
