"""Reading: text and Parquet files as tables, beside DuckDB and pandas, which look at the same things."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import sidelight as sl
from bench.timing import DATA, Row, best_of, show

ROWS, COLUMNS = 200_000, 60
FEW = 32
NUMBERS = ("BIGINT", "INTEGER", "DOUBLE", "FLOAT", "SMALLINT", "TINYINT", "UTINYINT", "USMALLINT")
MOST = 3.0
"""Ours may take so many times what DuckDB takes for a text file."""


def main() -> None:
    """Print the seconds of reading a file, its schema and the count of every value found as well."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tables = {"adult": DATA / "adult.parquet", f"{ROWS:,} x {COLUMNS}": _made(folder / "made.parquet")}
        rows = [row for step, path in tables.items() if path.exists() for row in _rows(step, path, folder)]
    show("reading: types, distinct values, bins and counts (peer: DuckDB; numpy: pandas)", rows)


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
    rows = []
    for kind, path, reader in (("CSV", text, pd.read_csv), ("Parquet", parquet, pd.read_parquet)):
        plain = best_of(lambda reader=reader, path=path: _looked_at(reader(path)))
        rows.append(Row(f"{step}, {kind}", _counted(kind, path), plain, _read(path)))
        share = rows[-1].ours / _stored(kind, path)
        wish = f", at most {MOST:g} wanted: {'kept' if share <= MOST else 'MISSED'}" if kind == "CSV" else ""
        print(f"{step}, {kind}: {share:.2f} x DuckDB's time to load it{wish}")
    return rows


def _looked_at(frame: pd.DataFrame) -> list[np.ndarray]:
    """Count every value of every column, or of ten bins of equal share where a number has many."""
    counts = []
    for name in frame.columns:
        column = frame[name].dropna()
        if column.nunique() > FEW and column.dtype.kind in "iuf":
            edges = np.unique(np.quantile(column, np.arange(1, 10) / 10))
            counts.append(np.bincount(np.searchsorted(edges, column.to_numpy(), side="right")))
        else:
            counts.append(column.value_counts().to_numpy())
    return counts


def _stored(kind: str, path: Path) -> float:
    """Seconds of DuckDB for loading a file into a table."""
    return best_of(lambda: duckdb.connect().execute(f"CREATE TABLE t AS FROM read_{kind.lower()}('{path}')"))


def _counted(kind: str, path: Path) -> float:
    """Seconds of DuckDB for loading it and for what `_looked_at` does, in as few queries as it takes."""

    def work() -> None:
        connection = duckdb.connect()
        connection.execute(f"CREATE TABLE t AS FROM read_{kind.lower()}('{path}')")
        columns = [(f'"{name}"', kind) for name, kind, *_ in connection.execute("DESCRIBE t").fetchall()]
        distinct = _asked(connection, [f"count(DISTINCT {name})" for name, _ in columns])
        found = zip(columns, distinct, strict=True)
        wide = [name for (name, kind), count in found if count > FEW and kind in NUMBERS]
        shares = [share / 10 for share in range(1, 10)]
        edges = _asked(connection, [f"quantile_cont({name}, {shares})" for name in wide])
        bins = zip(wide, edges, strict=True)
        _asked(connection, [f"count(*) FILTER ({name} < {at})" for name, every in bins for at in every])
        for name, _ in columns:
            if name not in wide:
                connection.execute(f"SELECT {name}, count(*) FROM t GROUP BY {name}").fetchall()

    return best_of(work)


def _asked(connection: duckdb.DuckDBPyConnection, terms: list[str]) -> tuple[Any, ...]:
    """Return the answers to several terms over the table, which is read once."""
    return (connection.execute(f"SELECT {', '.join(terms)} FROM t").fetchone() or ()) if terms else ()


def _read(path: Path) -> float:
    def whole() -> None:
        table = sl.read(path)
        table.counts(*([name] for name in table.schema.names))

    return best_of(whole)


if __name__ == "__main__":
    main()
