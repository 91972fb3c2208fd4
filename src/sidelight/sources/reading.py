"""`read` and `read_sql`: from wherever the rows are to a Table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sidelight.foundation.errors import InputError, TooLargeError
from sidelight.schema import Kind, Missing, Schema
from sidelight.sources.cells import Stated, settle, stated_na
from sidelight.sources.dictionary import Dictionary, as_dictionary
from sidelight.sources.engine import LocalEngine
from sidelight.sources.files import open_path
from sidelight.sources.inference import Binning, Coding, Unused, check_names, check_varied, infer
from sidelight.sources.local import LocalSource, open_object, open_query
from sidelight.sources.spark import SparkEngine, SparkSource, is_spark
from sidelight.sources.table import Table

MOST_COLUMNS = 1_000
"""An audit of so many columns has half a million pairs; beyond that nobody would wait for it."""


def read(
    source: object,
    *,
    columns: Iterable[str] | None = None,
    drop: Iterable[str] = (),
    schema: Schema | Dictionary | str | Path | None = None,
    rest: bool | Dictionary | str | Path = False,
    require: Iterable[str] = (),
    bins: int = 10,
    binning: Binning = "quantile",
    edges: Mapping[str, Sequence[float | str]] | None = None,
    values: Mapping[str, Sequence[str]] | None = None,
    kinds: Mapping[str, Kind | Unused] | None = None,
    max_values: int = 50,
    few: int = 20,
    missing: Missing = "value",
    na: str | Iterable[str] | None = None,
    encoding: str = "utf-8",
    sql: str | None = None,
    label: str | None = None,
) -> Table:
    """Open a table; text files are read once, Parquet files and tables in memory where they are.

    Args:
        source: the path of a file (CSV, TSV, JSON, each also as .gz; Parquet, Arrow, Excel, DuckDB, SQLite),
            a glob or a folder of files of one format, "-" for standard input; an Arrow table; a pandas or
            polars DataFrame; a dict of columns; a NumPy array with named columns; a Spark DataFrame; a DuckDB
            relation; anything with the Arrow stream interface.
        columns: the columns to use, all by default.
        drop: columns to leave out.
        schema: code its columns as it says instead of looking at the data, and use no others; or a data
            dictionary, or the path of one, which may leave something to be inferred and columns out.
        rest: with a `Schema`, use the other columns as well; as a data dictionary says, if it is one.
        require: columns that must be usable: one that is constant or identifies records is then an error.
        bins: how many bins a number gets, before values that many records share get their own.
        binning: "quantile" or "width".
        edges: the inner edges of the bins, for the named columns; those of dates as "2020-06-07".
        values: the alphabet in order, for the named columns.
        kinds: the kind ("categorical", "ordinal", "numeric", "date", "time"), for the named columns, or
            "identifier" or "ignored", which leave a column out.
        max_values: above so many values the rarest are folded into "(other)".
        few: numbers with at most so many distinct values are categorical.
        missing: "value" (a value of its own) or "drop" (the record is left out).
        na: the cells that are missing, in every column, as "-9" or ["-9", "refused"]. The usual markers, as
            "NA" and "?", are missing besides in columns of numbers, dates and truth values, unless na is "";
            in a column of text they are values.
        encoding: of text files.
        sql: a SELECT whose rows are read from a file; its table is called `data`, those of a database or a
            workbook have their own names.
        label: what to call the source in messages and reports; its path or type by default.
    """
    opened: LocalSource | SparkSource
    if isinstance(source, (str, Path)):
        opened = open_path(source, encoding, sql)
    elif sql is not None:
        raise InputError("`sql` is for files; ask a database by `read_sql`.")
    elif encoding != "utf-8":
        raise InputError("`encoding` is for text files; the source is none.")
    elif is_spark(source):
        opened = SparkSource(source)
    else:
        opened = open_object(source)
    return _read_source(
        opened, columns=columns, drop=drop, schema=schema, rest=rest, require=require, bins=bins,
        binning=binning, edges=edges, values=values, kinds=kinds, max_values=max_values, few=few,
        missing=missing, na=na, label=label,
    )  # fmt: skip


def read_sql(query: str, connection: Any, **rules: Any) -> Table:
    """Open the rows of a query on a DuckDB connection or any DB-API 2.0 connection.

    The further arguments are those of `read`.
    """
    return _read_source(open_query(query, connection), **rules)


def _read_source(
    source: LocalSource | SparkSource,
    *,
    columns: Iterable[str] | None = None,
    drop: Iterable[str] = (),
    schema: Schema | Dictionary | str | Path | None = None,
    rest: bool | Dictionary | str | Path = False,
    require: Iterable[str] = (),
    na: str | Iterable[str] | None = None,
    label: str | None = None,
    **rules: Any,
) -> Table:
    if label is not None:
        source = replace(source, label=label)
    coding = Coding(**{name: rule for name, rule in rules.items() if rule is not None})
    given, described = (schema, rest) if schema is None or isinstance(schema, Schema) else (None, schema)
    if isinstance(described, bool):
        return _table(source, columns, drop, given, described, require, stated_na(na), coding)
    dictionary = as_dictionary(described)
    notes = dictionary.notes(source)
    coding = replace(coding, columns=dictionary.columns)
    markers = stated_na(na) if na is not None else dictionary.na
    known = dictionary.schema(coding, given)
    table = _table(source, columns, drop, known, True, require, markers, coding)
    stated = [name for name in known.names if name in table.schema and (given is None or name not in given)]
    notes += _unused_notes(table, stated, dictionary.label)
    return replace(table, source=replace(table.source, notes=(*table.source.notes, *notes)))


def _unused_notes(table: Table, names: Sequence[str], label: str) -> tuple[str, ...]:
    """Say in which columns what is stated makes one value of all records: it may be misspelt."""
    found = zip(names, table.counts(*([name] for name in names)) if names else (), strict=True)
    only = {name: np.flatnonzero(counts.cells) for name, counts in found}
    return tuple(
        f"Column {name!r}: all records are {table.schema[name].values[codes[0]]!r}; check what {label} "
        "states."
        for name, codes in only.items()
        if len(codes) == 1 and table.schema[name].size > 1
    )


def column_names(path: str | Path, encoding: str = "utf-8", sql: str | None = None) -> list[str]:
    """Return the names of a file's columns."""
    return list(open_path(path, encoding, sql).columns)


def open_settled(path: str | Path, encoding: str = "utf-8") -> LocalSource:
    """Open a file with its columns of text as what they stand for."""
    source = open_path(path, encoding)
    names = list(source.columns)
    return settle(source.load(names), names, Stated())


def _stated(given: Schema, coding: Coding, na: tuple[str, ...] | None) -> Stated:
    """Return what the reader has said about the columns' cells: a kind, an alphabet or edges say much."""
    shaped = {name: coding.column(name) for name in {*coding.columns, *coding.named}}
    kinds = {name: column.kind for name, column in shaped.items() if column.is_shaped}
    kinds |= {item.name: item.kind for item in given}
    numeric = {*coding.edges, *(name for name, kind in kinds.items() if kind == "numeric")}
    return Stated(na, frozenset(set(kinds) - numeric), frozenset(numeric))


def _table(
    source: LocalSource | SparkSource,
    columns: Iterable[str] | None,
    drop: Iterable[str],
    schema: Schema | None,
    rest: bool,
    require: Iterable[str],
    na: tuple[str, ...] | None,
    coding: Coding,
) -> Table:
    named = [columns] if isinstance(columns, str) else list(columns if columns is not None else ())
    left_out = [drop] if isinstance(drop, str) else list(drop)
    given = schema if schema is not None else Schema(())
    if columns is not None:
        wanted = named
    else:
        wanted = list(given.names) if schema is not None and not rest else list(source.columns)
    needed = {*named, *coding.named, *require}
    check_names(source, [*wanted, *given.names, *left_out, *sorted(needed)])
    for name in needed & set(left_out):
        raise InputError(f"column {name!r} of {source.label} is both named and dropped; choose one.")
    kept = [name for name in wanted if name not in left_out]
    unused = coding.unused([name for name in kept if name not in given])
    for name in needed & set(unused):
        raise InputError(f"column {name!r} of {source.label} {unused[name].reason}; state another kind.")
    chosen = [name for name in kept if name not in unused]
    if not chosen:
        raise InputError(f"{source.label}: no column is left; drop fewer.")
    found_out = [name for name in chosen if name not in given]
    if len(found_out) > MOST_COLUMNS:
        raise TooLargeError(
            f"{source.label} has {len(found_out)} columns to look at, and their pairs grow with the square; "
            f"at most {MOST_COLUMNS} are taken. Name those to use by columns= "
            "(--column), leave out others by drop= (--drop), or give a schema."
        )
    if na is not None and not isinstance(source, LocalSource):
        raise InputError("`na` is not for Spark; replace such cells in the DataFrame first.")
    if isinstance(source, LocalSource):
        source = settle(source.load(chosen), chosen, _stated(given, coding, na))
    found, rows, aside, guesses = infer(source, found_out, needed, coding)
    attributes = [
        (given if name in given else found)[name] for name in chosen if name in given or name in found
    ]
    if not attributes:
        reasons = "; ".join(f"{item.column} {item.reason}" for item in aside[:5])
        raise InputError(f"{source.label} has no usable column: {reasons}.")
    coded = Schema(tuple(attributes))
    check_varied(source, [name for name in needed if name in given and name in coded])
    used = source.complete(coded)
    if used < 2:
        raise InputError(f"{source.label} has {used} complete rows; it needs at least two.")
    engine = SparkEngine() if isinstance(source, SparkSource) else LocalEngine()
    return Table(coded, source, engine, used, rows - used, (*unused.values(), *aside), guesses)
