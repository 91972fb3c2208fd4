"""`read` and `read_sql`: from wherever the rows are to a Table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sidelight.foundation.errors import InputError
from sidelight.schema import Kind, Missing, Schema
from sidelight.sources.inference import Binning, Coding, check_names, infer
from sidelight.sources.local import LocalSource, open_object, open_path, open_query
from sidelight.sources.table import LocalEngine, Table, where_complete


def read(
    source: object,
    *,
    columns: Iterable[str] | None = None,
    drop: Iterable[str] = (),
    schema: Schema | None = None,
    bins: int = 10,
    binning: Binning = "quantile",
    edges: Mapping[str, Sequence[float]] | None = None,
    values: Mapping[str, Sequence[str]] | None = None,
    kinds: Mapping[str, Kind] | None = None,
    max_values: int = 50,
    few: int = 20,
    missing: Missing = "value",
    encoding: str = "utf-8",
) -> Table:
    """Open a table without loading it.

    Args:
        source: the path of a CSV, TSV or Parquet file, a glob or a folder; an Arrow table; a pandas or
            polars DataFrame; a DuckDB relation; anything with the Arrow stream interface.
        columns: the columns to use, all by default.
        drop: columns to leave out.
        schema: code the columns with this schema instead of looking at the data.
        bins: how many bins a number gets, before values that many records share get their own.
        binning: "quantile" or "width".
        edges: the inner edges of the bins, for the named columns.
        values: the alphabet in order, for the named columns.
        kinds: the kind ("categorical", "ordinal", "numeric"), for the named columns.
        max_values: above so many values the rarest are folded into "(other)".
        few: numbers with at most so many distinct values are categorical.
        missing: "value" (a value of its own) or "drop" (the record is left out).
        encoding: of text files.
    """
    is_path = isinstance(source, (str, Path))
    opened = open_path(source, encoding) if isinstance(source, (str, Path)) else open_object(source)
    if encoding != "utf-8" and not is_path:
        raise InputError("`encoding` is for text files; the source is none.")
    coding = Coding(bins, binning, edges or {}, values or {}, kinds or {}, max_values, few, missing)
    return _table(opened, columns, drop, schema, coding)


def read_sql(query: str, connection: Any, **rules: Any) -> Table:
    """Open the rows of a query on a DuckDB connection or any DB-API 2.0 connection.

    The further arguments are those of `read`.
    """
    opened = open_query(query, connection)
    return read(opened.relation, **rules)


def _table(
    source: LocalSource,
    columns: Iterable[str] | None,
    drop: Iterable[str],
    schema: Schema | None,
    coding: Coding,
) -> Table:
    named = [columns] if isinstance(columns, str) else list(columns or ())
    left_out = [drop] if isinstance(drop, str) else list(drop)
    given = schema if schema is not None else Schema(())
    wanted = named or list(given.names) or list(source.columns)
    check_names(source, [*wanted, *left_out, *sorted(coding.named)])
    chosen = [name for name in wanted if name not in left_out]
    if not chosen:
        raise InputError(f"{source.label}: no column is left; drop fewer.")
    found, rows, aside = infer(source, [name for name in chosen if name not in given], {*named, *coding.named}, coding)
    attributes = [(given if name in given else found)[name] for name in chosen if name in given or name in found]
    if not attributes:
        reasons = "; ".join(f"{item.column} {item.reason}" for item in aside[:5])
        raise InputError(f"{source.label} has no usable column: {reasons}.")
    coded = Schema(tuple(attributes))
    used = int(source.rows("count(*)", where_complete(coded, source.columns))[0][0])
    if used < 2:
        raise InputError(f"{source.label} has {used} complete rows; it needs at least two.")
    return Table(coded, source, LocalEngine(), used, rows - used, aside)
