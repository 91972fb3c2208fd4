"""Files on this machine: where they are, by path, glob, folder or standard input, and how each is opened."""

from __future__ import annotations

import atexit
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import duckdb
import pyarrow as pa

from sidelight.foundation.errors import InputError, check_choice
from sidelight.foundation.files import REPORTS_KEY
from sidelight.foundation.modules import require
from sidelight.sources.cells import Stated
from sidelight.sources.faults import are_reports, reading
from sidelight.sources.local import LocalSource
from sidelight.sources.memory import MemorySource, of_arrow, of_rows, open_query
from sidelight.sources.scans import Scan, escaped, open_text
from sidelight.sources.sql import connect, literal, quoted, scratch

_TEXTS = {"csv": (".csv",), "tsv": (".tsv", ".tab"), "json": (".json", ".ndjson", ".jsonl")}
_SUFFIXES = {
    **{end + zipped: kind for kind, ends in _TEXTS.items() for end in ends for zipped in ("", ".gz")},
    ".parquet": "parquet", ".pq": "parquet",
    ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
    ".xlsx": "excel", ".xlsm": "excel",
    ".duckdb": "database", ".ddb": "database", ".db": "database",
    ".sqlite": "database", ".sqlite3": "database",
}  # fmt: skip
_ELSEWHERE = {
    ".xls": "save it as .xlsx or .csv",
    ".ods": "save it as .xlsx or .csv",
    ".sav": "read it with pandas.read_spss and hand over the DataFrame, or save it as .csv",
    ".dta": "read it with pandas.read_stata and hand over the DataFrame, or save it as .csv",
    ".sas7bdat": "read it with pandas.read_sas and hand over the DataFrame, or save it as .csv",
    ".orc": "read it with pyarrow.orc.read_table and hand over the table",
    ".zip": "unpack it first",
    ".txt": "name it .csv or .tsv, by its separator",
}
"""Formats that are not read, and the way to do it all the same."""
_FOLDERS = ("csv", "tsv", "json", "parquet")
STANDARD_INPUT = "-"
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
        first = scratch().execute(query, [REPORTS_KEY]).fetchone()
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
        rows, width = scratch().execute(query).fetchall()[0]
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


def _sheets(path: Path, label: str) -> dict[str, Callable[[], MemorySource]]:
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


def _sheet(rows: list[tuple[Any, ...]], label: str) -> MemorySource:
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


def _chosen(tables: Mapping[str, Callable[[], MemorySource]], label: str, sql: str | None) -> LocalSource:
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
    return LocalSource(partial(rows.ask, "data", query), label=rows.label, notes=rows.notes)


def _select(sql: str, label: str) -> str:
    """Return a query if it is one SELECT: nothing is written."""
    with reading(f"the query on {label}"):
        statements = scratch().extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise InputError(f"the query on {label} must be one SELECT.")
    return statements[0].query


def locate(text: str) -> tuple[str, str]:
    """Return a glob DuckDB can read and the format of its files."""
    if not text.strip():
        raise InputError("the path is empty; name a file, a glob or a folder.")
    path = Path(text)
    if path.is_dir():
        return _locate_in_folder(path)
    if not path.exists() and "://" in text:
        raise InputError(
            f"{text} is an address, and only files of this machine are read; download it first, or use "
            "--engine spark."
        )
    if not path.exists() and not any(sign in text for sign in "*?["):
        raise InputError(f"there is no file {text}; check the path.")
    suffix = format_of(text)
    way = next((way for end, way in _ELSEWHERE.items() if text.lower().endswith(end)), "")
    if not suffix and way:
        raise InputError(f"{text} has a format that is not read; {way}.")
    if not suffix:
        raise InputError(f"{text} must end in one of {', '.join(_SUFFIXES)}, so that its format is known.")
    if path.is_file() and path.stat().st_size == 0:
        raise InputError(f"{text} is empty; it needs a header and at least two rows.")
    return (escaped(text) if suffix in _FOLDERS and path.exists() else text), suffix


def format_of(text: str) -> str:
    """Return the format of a file by the end of its name; "" where it tells none."""
    return next((kind for end, kind in _SUFFIXES.items() if text.lower().endswith(end)), "")


def _locate_in_folder(folder: Path) -> tuple[str, str]:
    """Return the glob of a folder's files, sub-folders included, if they are all of one format."""
    ends = [end for end, kind in _SUFFIXES.items() if kind in _FOLDERS]
    held = {end for end in ends for file in folder.rglob(f"*{end}") if file.is_file()}
    if not held:
        raise InputError(f"the folder {folder} holds no .parquet, .csv, .tsv or .json file.")
    if len(held) > 1:
        raise InputError(
            f"the folder {folder} holds files of several kinds ({', '.join(sorted(held))}); name a glob."
        )
    end = held.pop()
    return str(Path(escaped(str(folder))) / "**" / f"*{end}"), _SUFFIXES[end]


_arrivals: dict[int, tuple[str, str]] = {}


def arrived() -> tuple[str, str]:
    """Return where standard input was put, and its format."""
    stream = sys.stdin.buffer
    if id(stream) not in _arrivals:
        _arrivals[id(stream)] = _put_down(stream)
    path, kind = _arrivals[id(stream)]
    if not Path(path).stat().st_size:
        raise InputError("standard input is empty; it needs a header and at least two rows.")
    return path, kind


def _put_down(stream: BinaryIO) -> tuple[str, str]:
    """Write standard input, which can be read only once, to a file that goes with the process.

    The first bytes tell its format: Parquet, or text with separators that may be compressed.
    """
    first = stream.read(1 << 16)
    zipped = ".gz" if first.startswith(b"\x1f\x8b") else ""
    with tempfile.NamedTemporaryFile(prefix="sidelight-", suffix=zipped, delete=False) as file:
        atexit.register(Path(file.name).unlink, missing_ok=True)
        file.write(first)
        shutil.copyfileobj(stream, file)
    return file.name, "parquet" if first.startswith(b"PAR1") else "csv"
