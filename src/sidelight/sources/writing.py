"""A table's raw columns to a file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyarrow import csv, parquet

from sidelight.foundation.errors import invalid
from sidelight.foundation.files import write_atomically
from sidelight.sources.table import Table


def write_table(table: Table, path: str | Path) -> Path:
    """Write the attributes of `table` to a .csv or .parquet file, atomically; return where it is."""
    rows = pa.table(table)
    writers = {".csv": csv.write_csv, ".parquet": parquet.write_table}
    writer = writers.get(Path(path).suffix.lower())
    if writer is None:
        raise invalid("path", "a .csv or .parquet file", str(path))
    return write_atomically(path, lambda temporary: writer(rows, temporary))
