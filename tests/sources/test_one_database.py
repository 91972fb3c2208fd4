"""The one database of a process, its stores, and what they leave on the disk."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

import sidelight as sl
from sidelight.sources import sql
from sidelight.sources.sql import scratch

ROWS = 300


def _csv(path: Path, start: int) -> Path:
    values = [str(start + place % 7) for place in range(ROWS)]
    pa.csv.write_csv(pa.table({"x": values, "y": list("abc") * (ROWS // 3)}), path)
    return path


def _stores() -> int:
    gc.collect()
    query = "SELECT count(*) FROM duckdb_databases() WHERE database_name LIKE 'sidelight_store_%'"
    return int(scratch().execute(query).fetchall()[0][0])


@pytest.fixture
def new_database(monkeypatch, tmp_path: Path) -> Iterator[Path]:
    """The folder for temporary files of a database that is opened anew, and again by the tests after this."""
    sql._opened.cache_clear()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    yield tmp_path
    sql._opened.cache_clear()


def test_tables_keep_apart_and_go_with_those_who_use_them(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("sidelight.sources.scans._SMALL", 0)
    before = _stores()
    tables = [sl.read(_csv(tmp_path / f"{start}.csv", start)) for start in (0, 100, 200)]
    assert _stores() == before + 3
    firsts = [table.schema["x"].values[0] for table in tables]
    assert firsts == ["0", "100", "200"]
    assert [table.counts(["x", "y"])[0].total for table in tables] == [ROWS] * 3
    del tables
    assert _stores() == before


def test_a_column_that_duckdb_fails_on_does_not_keep_others_from_being_read() -> None:
    """An internal error of DuckDB's ends its database, in which all other questions are asked."""
    other = sl.read(pa.table({"y": pa.array([1, 2, 3] * 4).cast(pa.decimal128(21, 2))}))
    before = pa.array([-(2**63), 1, 2, 3, 4, 5], pa.int64()).cast(pa.timestamp("us"))
    for _ in range(2):
        with pytest.raises(sl.InputError, match="column 'x' .* cannot be read"):
            sl.read(pa.table({"x": before, "y": [0, 1] * 3}), kinds={"x": "categorical"})
        assert sl.read(pa.table({"y": pa.array([1, 2] * 4).cast(pa.decimal128(21, 2))})).schema["y"].size == 2
        assert other.counts(["y"])[0].total == 12


@pytest.mark.parametrize("small", [0, 1 << 20])
def test_a_reader_outlives_its_table(tmp_path: Path, monkeypatch, small: int) -> None:
    monkeypatch.setattr("sidelight.sources.scans._SMALL", small)
    table = sl.read(_csv(tmp_path / "a.csv", 0))
    reader = pa.RecordBatchReader.from_stream(table)
    del table
    gc.collect()
    assert reader.read_all().num_rows == ROWS


def test_rows_in_memory_need_no_folder(new_database: Path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(new_database / "none"))
    assert sql._spilling() == ""
    assert len(sl.read(pa.table({"x": list("ab") * 20, "y": list("abcd") * 10}))) == 40


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other rights")
def test_what_spills_is_for_us_alone(new_database: Path) -> None:
    first, second = Path(sql._spilling()), Path(sql._spilling())
    assert first.parent == second.parent == new_database / f"sidelight-{os.geteuid()}"
    assert first != second
    assert first.parent.stat().st_mode & 0o077 == 0
    first.parent.chmod(0o755)
    assert sql._spilling() == ""
    first.parent.rmdir()
    first.parent.symlink_to(new_database)
    assert sql._spilling() == ""


def test_what_spilled_is_removed(new_database: Path) -> None:
    connection = scratch()
    connection.execute("SET memory_limit = '60MB'")
    connection.execute("SET threads = 1")
    rows = connection.execute("SELECT range % 7919 AS x FROM range(12_000_000) ORDER BY x, range").fetchmany(
        2
    )
    assert rows == [(0,), (0,)]
    spilled = [*new_database.glob("sidelight-*/*")]
    assert len(spilled) == 1
    assert [*spilled[0].iterdir()]
    del connection
    sql._opened.cache_clear()
    gc.collect()
    assert [*new_database.glob("sidelight-*/*")] == []


def test_a_process_leaves_no_folder_of_its_own(tmp_path: Path) -> None:
    path = _csv(tmp_path / "a.csv", 0)
    (tmp_path / "temporary").mkdir()
    program = f"""
import os, sys
import pyarrow as pa
import sidelight as sl
table = sl.read({str(path)!r})
sl.read(pa.table({{"x": list("ab") * 20, "y": list("cd") * 20}}))
sys.stdout.flush()
os._exit(0)
"""
    environment = os.environ | {"TMPDIR": str(tmp_path / "temporary")}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    left = [item for item in (tmp_path / "temporary").rglob("*") if item.name != f"sidelight-{os.geteuid()}"]
    assert left == []
