"""Files on this machine: how each format is opened."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from sidelight.foundation.errors import InputError, check_choice
from sidelight.foundation.files import REPORTS_KEY
from sidelight.foundation.modules import require
from sidelight.sources.cells import Stated
from sidelight.sources.faults import are_reports, reading
from sidelight.sources.local import LocalSource, of_arrow, of_rows, open_query
from sidelight.sources.locations import STANDARD_INPUT, arrived, locate
from sidelight.sources.scans import Scan, open_text
from sidelight.sources.sql import connect, literal, quoted

_SQLITE_TABLES = (
    "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY 1"
)
_DUCKDB_TABLES = "SELECT table_name FROM information_schema.tables ORDER BY 1"
_FEW_VALUES = 1 << 24


def open_path(path: str | Path, encoding: str = "utf-8", sql: str | None = None) -> LocalSource:
    """Open a file, a glob of them, a folder of files of one format, or standard input ("-").

    The rows may be those of a SELECT, which names the tables of a database or the sheets of a workbook, and
    `data` where the file is a single table.
    """
    text = str(path)
    check_choice("encoding", encoding, ("utf-8", "utf-16", "latin-1"))
    pattern, kind = arrived() if text == STANDARD_INPUT else locate(text)
    label = "standard input" if text == STANDARD_INPUT else text
    if kind == "database":
        return _open_database(Path(pattern), label, sql)
    if kind == "excel":
        return _chosen(_sheets(Path(pattern), label), label, sql)
    source = _opened(pattern, kind, label, encoding)
    return source if sql is None else _queried(source, sql)


def _opened(pattern: str, kind: str, label: str, encoding: str) -> LocalSource:
    """Open files that are one table."""
    if kind == "parquet":
        refuse_reports(pattern, label)
        source = Scan(pattern, label, "read_parquet", ()).source()
        return source if _is_small(pattern, label) else replace(source, loader=None)
    if kind == "arrow":
        return of_arrow(_ipc(Path(pattern), label), label)
    if kind == "json":
        return Scan(pattern, label, "read_json", ("sample_size = -1",)).source()
    return open_text(pattern, label, encoding, [r"delim = '\t'"] if kind == "tsv" else [])


def refuse_reports(pattern: str, label: str) -> None:
    """Raise if one of the Parquet files holds reports: they would be taken for what people really are."""
    query = f"SELECT file_name FROM parquet_kv_metadata({literal(pattern)}) WHERE key = ?::BLOB LIMIT 1"
    with reading(label):
        first = connect().execute(query, [REPORTS_KEY]).fetchone()
    if first is not None:
        raise are_reports(first[0], "is a file")


def _is_small(pattern: str, label: str) -> bool:
    """Whether Parquet files are small enough that loading them once is faster than scanning them often."""
    files = literal(pattern)
    columns = (
        f"SELECT count(*) FROM parquet_schema({files}) WHERE type IS NOT NULL GROUP BY file_name LIMIT 1"
    )
    with reading(label):
        query = f"SELECT sum(num_rows), ({columns}) FROM parquet_file_metadata({files})"
        rows, width = connect().execute(query).fetchall()[0]
        return int(rows) * int(width) <= _FEW_VALUES


def _ipc(path: Path, label: str) -> pa.Table:
    """Read an Arrow file, or a stream in a file."""
    try:
        with pa.memory_map(str(path)) as opened:
            return pa.ipc.open_file(opened).read_all()
    except pa.ArrowInvalid:
        pass
    try:
        with pa.OSFile(str(path)) as opened:
            return pa.ipc.open_stream(opened).read_all()
    except pa.ArrowInvalid:
        raise InputError(f"{label} is not an Arrow file, or it is damaged; write it again.") from None


def _sheets(path: Path, label: str) -> dict[str, Callable[[], LocalSource]]:
    """Return the sheets of a workbook that hold rows; the first row names the columns."""
    openpyxl = require("openpyxl", "excel", "reading Excel files")
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except Exception as error:
        raise InputError(f"{label} is not an Excel workbook, or it is damaged; save it again.") from error
    with closing(book):
        sheets = {sheet.title: [row for row in sheet.values if any(cell is not None for cell in row)]
                  for sheet in book.worksheets}  # fmt: skip
    return {title: partial(_sheet, rows, label) for title, rows in sheets.items() if rows}


def _sheet(rows: list[tuple[Any, ...]], label: str) -> LocalSource:
    names = [str(name) if name is not None else f"column{place}" for place, name in enumerate(rows[0])]
    if len(set(names)) < len(names):
        raise InputError(f"{label} has two columns of the same name; rename one.")
    return of_rows(names, rows[1:], label)


def _open_database(path: Path, label: str, sql: str | None) -> LocalSource:
    """Open a table of a DuckDB or SQLite file, or the rows of a query on it; the file is never written."""
    with path.open("rb") as file:
        is_sqlite = file.read(16) == b"SQLite format 3\0"
    if is_sqlite:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            return _table_of(connection, _SQLITE_TABLES, label, sql)
    with reading(label):
        opened = connect(str(path), access_mode="READ_ONLY")
        return _table_of(opened, _DUCKDB_TABLES, label, sql and _select(sql, label))


def _table_of(connection: Any, listing: str, label: str, sql: str | None) -> LocalSource:
    names = [row[0] for row in connection.execute(listing).fetchall()]
    opened = {name: partial(open_query, f"SELECT * FROM {quoted(name)}", connection) for name in names}
    return replace(open_query(sql, connection) if sql else _only(opened, label)(), label=label)


def _only(tables: Mapping[str, Callable[[], LocalSource]], label: str) -> Callable[[], LocalSource]:
    """Return the one table of a file."""
    if len(tables) == 1:
        return next(iter(tables.values()))
    if not tables:
        raise InputError(f"{label} holds no table.")
    shown, query = ", ".join(list(tables)[:20]), f"SELECT * FROM {quoted(next(iter(tables)))}"
    raise InputError(
        f"{label} holds {len(tables)} tables ({shown}); say which rows are meant, as in sql='{query}'."
    )


def _chosen(tables: Mapping[str, Callable[[], LocalSource]], label: str, sql: str | None) -> LocalSource:
    """Return the one table of a file, or the rows of a query on its tables."""
    if sql is None:
        return _only(tables, label)()
    connection = connect()
    for name, opened in tables.items():
        connection.register(name, opened().arrow)
    return replace(open_query(_select(sql, label), connection), label=label)


def _queried(source: LocalSource, sql: str) -> LocalSource:
    """Return the rows of a query on a source that is called `data`."""
    query = _select(sql, source.label)
    names = list(source.columns)
    rows = source.prepared(names, Stated(words=frozenset(names)))  # doubtful text stays text
    return replace(rows, start=partial(rows.ask, "data", query), arrow=None, store=None, finder=None)


def _select(sql: str, label: str) -> str:
    """Return a query if it is one SELECT: nothing is written."""
    with reading(f"the query on {label}"):
        statements = connect().extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise InputError(f"the query on {label} must be one SELECT.")
    return statements[0].query
