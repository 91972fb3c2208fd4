"""Rows to a file: those of a table, or of a result."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyarrow import csv, parquet

from sidelight.foundation.errors import invalid
from sidelight.foundation.files import write_atomically
from sidelight.sources.table import Table


def write_table(table: Table, path: str | Path) -> Path:
    """Write the attributes of `table` to a .csv or .parquet file, atomically; return where it is."""
    return write_rows(pa.table(table), path)


def write_rows(rows: pa.Table, path: str | Path) -> Path:
    """Write rows to a .csv or .parquet file, atomically; return where it is."""
    writers = {".csv": csv.write_csv, ".parquet": parquet.write_table}
    writer = writers.get(Path(path).suffix.lower())
    if writer is None:
        raise invalid("path", "a .csv or .parquet file", str(path))
    return write_atomically(path, lambda temporary: writer(rows, temporary))
