"""Rows on this machine, behind DuckDB: files are streamed, never held whole in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from sidelight.foundation.errors import InputError, check_choice, invalid

BATCH_ROWS = 1 << 16
_SUFFIXES = {
    ".csv": "csv",
    ".csv.gz": "csv",
    ".tsv": "tsv",
    ".tsv.gz": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_serial = count()


@dataclass(frozen=True)
class LocalSource:
    """Something DuckDB can scan again and again, and what to call it in messages."""

    relation: duckdb.DuckDBPyRelation
    label: str
    view: str = field(default_factory=lambda: f"sidelight_source_{next(_serial)}")

    @property
    def columns(self) -> dict[str, str]:
        """Every column's name and DuckDB type."""
        types = [str(kind) for kind in self.relation.types]
        return dict(zip(self.relation.columns, types, strict=True))

    def rows(self, select: str, rest: str = "") -> list[tuple[Any, ...]]:
        """Run `SELECT select FROM source rest` and return its (few) rows."""
        with _reading(self.label):
            return self.query(select, rest).fetchall()

    def batches(self, select: str, rest: str = "") -> Iterator[pa.RecordBatch]:
        """Run `SELECT select FROM source rest` and stream its rows."""
        with _reading(self.label):
            yield from self.query(select, rest).to_arrow_reader(BATCH_ROWS)

    def query(self, select: str, rest: str = "") -> duckdb.DuckDBPyRelation:
        """Return `SELECT select FROM source rest`, not yet run."""
        found = self.relation.query(self.view, f"SELECT {select} FROM {self.view} {rest}")
        if found is None:
            raise InputError(f"{self.label} gave no rows.")
        return found


class _reading:  # noqa: N801 - a context manager, read as a verb
    """Turn DuckDB's errors into one line that names the file."""

    def __init__(self, label: str) -> None:
        self.label = label

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, duckdb.Error):
            raise unreadable(self.label, error) from error


def unreadable(label: str, error: Exception) -> InputError:
    """Say in one line why `label` cannot be read, and what would help."""
    cause = str(error).splitlines()[0].strip()
    lowered = str(error).lower()
    if "unicode" in lowered or "utf-8" in lowered or "utf8" in lowered:
        return InputError(
            f"{label} is not UTF-8 text; convert it, or name its encoding (for example encoding='latin-1')."
        )
    if "parquet" in lowered and ("magic" in lowered or "footer" in lowered or "too small" in lowered):
        return InputError(f"{label} is not a Parquet file, or it is damaged; write it again. ({cause})")
    return InputError(f"{label} cannot be read: {cause}")


def quoted(name: str) -> str:
    """Quote a column name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Quote a string for SQL."""
    return "'" + text.replace("'", "''") + "'"


def open_path(path: str | Path, encoding: str = "utf-8") -> LocalSource:
    """Open a CSV, TSV or Parquet file, a glob of them, or a folder of Parquet files."""
    text = str(path)
    pattern, suffix = _locate(text)
    check_choice("encoding", encoding, ("utf-8", "utf-16", "latin-1"))
    options = [literal(pattern)]
    if suffix != "parquet":
        options.append(f"encoding = {literal(encoding)}")
    if suffix == "tsv":
        options.append(r"delim = '\t'")
    reader = "read_parquet" if suffix == "parquet" else "read_csv"
    with _reading(text):
        return LocalSource(duckdb.connect().sql(f"SELECT * FROM {reader}({', '.join(options)})"), text)


def _locate(text: str) -> tuple[str, str]:
    """Return a glob DuckDB can read and the format of its files."""
    path = Path(text)
    if path.is_dir():
        for suffix in ("parquet", "csv", "tsv"):
            if any(path.glob(f"*.{suffix}")):
                return str(path / f"*.{suffix}"), suffix
        raise InputError(f"the folder {text} holds no .parquet, .csv or .tsv file.")
    is_pattern = any(sign in text for sign in "*?[")
    if not is_pattern and not path.exists():
        raise InputError(f"there is no file {text}; check the path.")
    suffix = next((kind for end, kind in _SUFFIXES.items() if text.lower().endswith(end)), "")
    if not suffix:
        raise InputError(f"{text} must end in one of {', '.join(_SUFFIXES)}, so that its format is known.")
    if path.is_file() and path.stat().st_size == 0:
        raise InputError(f"{text} is empty; it needs a header and at least two rows.")
    return text, suffix


def open_object(rows: object) -> LocalSource:
    """Open a DuckDB relation, an Arrow table, or anything that offers the Arrow stream interface."""
    if isinstance(rows, duckdb.DuckDBPyRelation):
        return LocalSource(rows, "the DuckDB relation")
    if isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    if not hasattr(rows, "__arrow_c_stream__"):
        raise invalid(
            "source",
            "a path, an Arrow table, a DataFrame, a DuckDB relation or anything with an Arrow stream",
            type(rows).__name__,
        )
    table = rows if isinstance(rows, pa.Table) else pa.table(rows)
    return LocalSource(duckdb.connect().from_arrow(table), f"the {type(rows).__name__}")


def open_query(query: str, connection: Any) -> LocalSource:
    """Open the result of a query on a DuckDB connection or any DB-API 2.0 connection."""
    if isinstance(connection, duckdb.DuckDBPyConnection):
        with _reading("the query"):
            return LocalSource(connection.sql(query), "the query")
    if not hasattr(connection, "cursor"):
        raise invalid("connection", "a DuckDB or DB-API 2.0 connection", type(connection).__name__)
    cursor = connection.cursor()
    cursor.execute(query)
    if cursor.description is None:
        raise InputError("the query returns no rows; it must be a SELECT.")
    names = [column[0] for column in cursor.description]
    rows = cursor.fetchall()
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    table = pa.table({name: list(values) for name, values in zip(names, columns, strict=True)})
    return LocalSource(duckdb.connect().from_arrow(table), "the query")
