"""Which files are read, under which name, and what is said of the others."""

from __future__ import annotations

import gzip
import io
import os
import sqlite3
import sys
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import sidelight as sl
from sidelight.cli import main
from sidelight.sources import sql
from sidelight.sources.sql import connect

ROWS = 60


@pytest.fixture
def rows() -> pa.Table:
    return pa.table(
        {
            "a": [i % 3 for i in range(ROWS)],
            "b": ["xy"[i % 2] for i in range(ROWS)],
            "c": [i % 23 + 0.5 for i in range(ROWS)],
        }
    )


def _text(rows: pa.Table) -> bytes:
    return rows.to_pandas().to_csv(index=False).encode()


def _write(path: Path, rows: pa.Table) -> Path:
    """Write the rows in the format that the name says."""
    kind = "".join(path.suffixes)
    if kind == ".csv.gz":
        path.write_bytes(gzip.compress(_text(rows)))
    elif kind in (".json", ".ndjson", ".jsonl"):
        rows.to_pandas().to_json(path, orient="records", lines=kind != ".json")
    elif kind in (".feather", ".arrow"):
        pyarrow.feather.write_feather(rows, path)
    elif kind == ".xlsx":
        pytest.importorskip("openpyxl")
        rows.to_pandas().to_excel(path, index=False)
    elif kind in (".duckdb", ".ddb"):
        _duckdb(path, people=rows)
    elif kind in (".db", ".sqlite"):
        connection = sqlite3.connect(path)
        rows.to_pandas().to_sql("people", connection, index=False)
        connection.close()
    else:
        path.write_bytes(_text(rows))
    return path


def _duckdb(path: Path, **tables: pa.Table) -> Path:
    with duckdb.connect(str(path)) as connection:
        for name, rows in tables.items():
            connection.register("given", rows)
            connection.execute(f"CREATE TABLE {name} AS FROM given")
    return path


@pytest.mark.parametrize(
    "name",
    [
        "p.csv",
        "p.csv.gz",
        "p.json",
        "p.ndjson",
        "p.jsonl",
        "p.feather",
        "p.arrow",
        "p.xlsx",
        "p.duckdb",
        "p.db",
    ],
)
def test_every_format_gives_the_same_table(name: str, rows: pa.Table, tmp_path: Path) -> None:
    table = sl.read(_write(tmp_path / name, rows))
    assert table.schema == sl.read(rows).schema
    assert np.array_equal(table.codes(), sl.read(rows).codes())


def test_a_name_that_exists_is_that_file(rows: pa.Table, tmp_path: Path) -> None:
    for name, columns in {
        "x[1]": ["a", "b"],
        "x1": ["b", "c"],
        "x*": ["a", "c"],
        "x?": ["a", "b", "c"],
    }.items():
        _write(tmp_path / f"{name}.csv", rows.select(columns))
        pq.write_table(rows.select(columns), tmp_path / f"{name}.parquet")
    for end in ("csv", "parquet"):
        assert sl.read(tmp_path / f"x[1].{end}").schema.names == ("a", "b")
        assert sl.read(tmp_path / f"x*.{end}").schema.names == ("a", "c")
        assert sl.read(tmp_path / f"x?.{end}").schema.names == ("a", "b", "c")
    (tmp_path / "d[1]").mkdir()
    _write(tmp_path / "d[1]" / "p.csv", rows)
    assert len(sl.read(tmp_path / "d[1]")) == ROWS


@pytest.mark.parametrize(
    "address", ["http://localhost:9/a.csv", "https://h/a.parquet", "s3://b/k.csv", "hf://a.csv"]
)
def test_addresses_are_refused(address: str) -> None:
    with pytest.raises(sl.InputError, match="is an address, and only files of this machine are read"):
        sl.read(address)


def test_extensions_are_never_downloaded() -> None:
    named = "('autoinstall_known_extensions', 'autoload_known_extensions')"
    found = connect().execute(f"SELECT value FROM duckdb_settings() WHERE name IN {named}").fetchall()
    assert found == [("false",), ("false",)]


def _arrive(monkeypatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_standard_input_is_read(rows: pa.Table, tmp_path: Path, monkeypatch) -> None:
    pq.write_table(rows, tmp_path / "p.parquet")
    for content in (_text(rows), gzip.compress(_text(rows)), (tmp_path / "p.parquet").read_bytes()):
        _arrive(monkeypatch, content)
        assert sl.sources.column_names("-") == ["a", "b", "c"]
        table = sl.read("-")
        assert table.schema == sl.read(rows).schema
        assert table.source.label == "standard input"
    _arrive(monkeypatch, b"")
    with pytest.raises(sl.InputError, match="standard input is empty"):
        sl.read("-")


def test_of_several_tables_one_must_be_chosen(rows: pa.Table, tmp_path: Path) -> None:
    path = _duckdb(tmp_path / "p.duckdb", people=rows, pets=rows.select(["a"]))
    with pytest.raises(sl.InputError, match=r"holds 2 tables \(people, pets\); say which .* sql='SELECT"):
        sl.read(path)
    assert sl.read(path, sql="SELECT a, b FROM people").schema.names == ("a", "b")
    for query in ("DROP TABLE people", "SELECT 1; SELECT 2", "COPY people TO 'x.csv'"):
        with pytest.raises(sl.InputError, match="must be one SELECT"):
            sl.read(path, sql=query)
    assert len(sl.read(path, sql="FROM people")) == ROWS


@pytest.mark.parametrize("name", ["p.csv", "p.parquet", "p.json"])
def test_sql_asks_a_file_as_data(name: str, rows: pa.Table, tmp_path: Path) -> None:
    path = tmp_path / name
    if name == "p.parquet":
        pq.write_table(rows, path)
    else:
        _write(path, rows)
    table = sl.read(path, sql="SELECT b, c FROM data WHERE a > 0")
    assert (table.schema.names, len(table)) == (("b", "c"), 40)
    named = sl.read(
        path, sql="WITH other AS (SELECT a AS data, b FROM data) SELECT data, b FROM other -- all"
    )
    assert (named.schema.names, len(named)) == (("data", "b"), ROWS)
    with pytest.raises(sl.InputError, match="`sql` is for files"):
        sl.read(rows, sql="SELECT 1")


def test_a_database_is_not_changed_by_reading(rows: pa.Table, tmp_path: Path) -> None:
    path = _write(tmp_path / "p.db", rows)
    before = path.read_bytes()
    with pytest.raises(sl.InputError, match="the query cannot be run"):
        sl.read(path, sql="DELETE FROM people")
    assert path.read_bytes() == before


def test_dicts_of_columns_and_numpy_records_are_read(rows: pa.Table) -> None:
    records = rows.to_pandas().to_records(index=False)
    plain = np.array([tuple(row) for row in records], dtype=[("a", "i8"), ("b", "U1"), ("c", "f8")])
    for given in (rows.to_pydict(), dict(rows.to_pandas()), plain, plain.view(np.recarray)):
        assert sl.read(given).schema == sl.read(rows).schema
    with pytest.raises(sl.InputError, match="the dict cannot be turned into columns"):
        sl.read({"a": [1, 2], "b": [1]})
    with pytest.raises(sl.InputError, match="a NumPy array with named columns"):
        sl.read(np.zeros((3, 2)))


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("p.xls", "save it as .xlsx"),
        ("p.dta", "pandas.read_stata"),
        ("p.sav", "pandas.read_spss"),
        ("p.zip", "unpack it"),
        ("p.odd", "must end in one of .csv"),
    ],
)
def test_other_formats_are_refused_with_the_way_to_do_it(name: str, way: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(sl.InputError, match=way):
        sl.read(tmp_path / name)


def test_a_damaged_arrow_file_is_said_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "p.arrow").write_bytes(b"nonsense")
    with pytest.raises(sl.InputError, match="is not an Arrow file"):
        sl.read(tmp_path / "p.arrow")


def _run(monkeypatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["sidelight", *map(str, arguments)])
    with pytest.raises(SystemExit) as raised:
        main()
    return int(raised.value.code or 0)


@pytest.mark.parametrize("columns", [2_000, pytest.param(10_000, marks=pytest.mark.deep)])
def test_thousands_of_columns_are_refused_before_the_work(
    columns: int, tmp_path: Path, monkeypatch, capsys
) -> None:
    table = pa.table({f"c{i}": pa.array([0, 1, 1], pa.int8()) for i in range(columns)})
    pq.write_table(table, tmp_path / "p.parquet")
    assert _run(monkeypatch, "audit", tmp_path / "p.parquet") == 2
    said = capsys.readouterr().err
    assert f"has {columns} columns to look at" in said
    assert "--column" in said
    assert "--drop" in said
    assert sl.read(table, columns=["c1", "c2"]).schema.names == ("c1", "c2")


def test_the_commands_take_columns_queries_and_markers(
    rows: pa.Table, tmp_path: Path, monkeypatch, capsys
) -> None:
    path = _write(tmp_path / "p.csv", rows)
    assert _run(monkeypatch, "audit", path, "--column", "a", "--column", "b") == 0
    assert "60 records, 2 attributes" in " ".join(capsys.readouterr().out.split())
    assert _run(monkeypatch, "audit", path, "--sql", "SELECT a, b FROM data WHERE a = 1 OR b = 'x'") in (0, 1)
    assert "40 records, 2 attributes" in " ".join(capsys.readouterr().out.split())
    assert _run(monkeypatch, "audit", path, "--drop", "c", "--na", "0", "--missing", "drop") in (0, 1)
    assert "Records with a missing value, left out: 20." in " ".join(capsys.readouterr().out.split())


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not fork")
def test_a_fork_inherits_no_open_database() -> None:
    """DuckDB's threads stay behind: a child that closed the database would wait for them for ever."""
    sql.scratch().execute("SELECT 1").fetchall()
    assert sql._opened.cache_info().currsize == 1
    child = os.fork()
    if child == 0:
        os._exit(sql._opened.cache_info().currsize)
    assert os.waitpid(child, 0)[1] == 0
    assert sql.scratch().execute("SELECT 1").fetchall() == [(1,)]
