"""Reading: text and Parquet files as tables, beside DuckDB's and pandas' own reading of the same file."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import sidelight as sl
from bench.timing import DATA, Row, best_of, show

ROWS, COLUMNS = 200_000, 60
MOST = 3.0
"""Ours may take so many times what DuckDB takes for a text file."""


def main() -> None:
    """Print the seconds of reading a file, its schema and the count of every value found as well."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tables = {"adult": DATA / "adult.parquet", f"{ROWS:,} x {COLUMNS}": _made(folder / "made.parquet")}
        rows = [row for step, path in tables.items() if path.exists() for row in _rows(step, path, folder)]
    show("reading a file: types, schema and counts (peer: DuckDB into a table; numpy: pandas)", rows)
    for row in rows:
        if "CSV" in row.step:
            share = row.ours / (row.peer or 1)
            kept = "kept" if share <= MOST else "MISSED"
            print(f"{row.step}: {share:.2f} x DuckDB's time, at most {MOST:g} wanted: {kept}")


def _made(path: Path) -> Path:
    """Write a table of whole numbers, fractions, words, truth values, dates and codes."""
    rng = np.random.default_rng(1)
    days = np.datetime64("2020-01-01") + np.arange(900)
    makers = (
        lambda: rng.integers(0, 100_000, ROWS),
        lambda: rng.normal(size=ROWS).round(4),
        lambda: rng.choice(["alpha", "beta", "gamma", "delta"], ROWS),
        lambda: rng.random(ROWS) < 0.5,
        lambda: rng.choice(days, ROWS),
        lambda: rng.integers(0, 8, ROWS),
    )
    pq.write_table(pa.table({f"a{i}": pa.array(makers[i % len(makers)]()) for i in range(COLUMNS)}), path)
    return path


def _rows(step: str, parquet: Path, folder: Path) -> list[Row]:
    text = folder / "table.csv"
    duckdb.connect().execute(f"COPY (FROM '{parquet}') TO '{text}' (FORMAT csv)")
    os.sync()  # so that nothing is still being written while reading is timed
    return [
        Row(f"{step}, CSV", _stored("read_csv", text), best_of(lambda: pd.read_csv(text)), _read(text)),
        Row(
            f"{step}, Parquet",
            _stored("read_parquet", parquet),
            best_of(lambda: pd.read_parquet(parquet)),
            _read(parquet),
        ),
    ]


def _stored(reader: str, path: Path) -> float:
    return best_of(lambda: duckdb.connect().execute(f"CREATE TABLE t AS FROM {reader}('{path}')"))


def _read(path: Path) -> float:
    def whole() -> None:
        table = sl.read(path)
        table.counts(*([name] for name in table.schema.names))

    return best_of(whole)


if __name__ == "__main__":
    main()
