"""What cannot be read is said to be so for its true reason; what is taken otherwise than written is noted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sidelight as sl
from sidelight.sources.faults import unreadable
from sidelight.transport.report_files import to_arrow

PLAIN = "a,b\n" + "".join(f"{i % 3},{i % 2}\n" for i in range(60))


@pytest.fixture
def reports() -> pa.Table:
    table = sl.example("titanic")
    return to_arrow(sl.collect(table, sl.Plan.uniform(table.schema), seed=1))


@pytest.mark.parametrize("place", ["one.parquet", "folder", "folder/*.parquet", "in memory", "reader"])
def test_reports_are_not_taken_for_records(place: str, reports: pa.Table, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    pq.write_table(reports.replace_schema_metadata(None), tmp_path / "folder" / "a.parquet")
    for name in ("one.parquet", "folder/b.parquet"):
        pq.write_table(reports, tmp_path / name)
    given = {"in memory": reports, "reader": reports.to_reader()}.get(place, tmp_path / place)
    with pytest.raises(sl.InputError, match="of reports, not of records; name the records"):
        sl.read(given)
    assert len(sl.read(tmp_path / "folder" / "a.parquet")) == 2201


def test_spark_is_not_handed_reports_either(reports: pa.Table, tmp_path: Path) -> None:
    from sidelight.sources.session import open_frame

    pq.write_table(reports, tmp_path / "one.parquet")
    with pytest.raises(sl.InputError, match=r"one\.parquet is a file of reports"):
        open_frame(str(tmp_path / "one.parquet"), None)


@pytest.mark.parametrize("kind", ["pandas", "arrow", "polars", "lazy", "parquet"])
@pytest.mark.parametrize("rules", [{}, {"missing": "drop"}, {"kinds": {"t": "categorical"}}])
def test_times_with_a_zone_in_nanoseconds(kind: str, rules: dict[str, object], tmp_path: Path) -> None:
    times = pd.date_range("2020", periods=40, tz="UTC", unit="ns").repeat(2)
    frame = pd.DataFrame({"t": times, "x": [0, 1] * 40})
    frame.loc[5, "t"] = pd.NaT
    frame.to_parquet(tmp_path / "t.parquet")
    given = {
        "pandas": frame,
        "arrow": pa.table(frame),
        "polars": pl.from_pandas(frame),
        "lazy": pl.from_pandas(frame).lazy(),
        "parquet": tmp_path / "t.parquet",
    }[kind]
    found = sl.read(given, **rules)
    without = sl.read(frame.assign(t=frame["t"].dt.tz_localize(None)), **rules)
    assert np.array_equal(found.codes(), without.codes())
    assert found.schema["t"].edges == without.schema["t"].edges


def _bad_type(path: Path) -> None:
    path.write_text(PLAIN + "1,1\n" * 30_000 + "secret,1\n")


def _bad_bytes(path: Path) -> None:
    path.write_bytes(PLAIN.encode() + b"1,\xff\xfe\n" * 3)


def _other_columns(path: Path) -> None:
    path.write_text(PLAIN.replace("b", "c"))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_bad_type, r"column 'a' of .*c\.csv \(of .*\*\.csv\) holds .*numbers, but 1 .* in line 30062; "),
        (_bad_bytes, r"c\.csv \(of .*\*\.csv\) is not UTF-8 text"),
        (_other_columns, r"c\.csv \(of .*\*\.csv\) has other columns than .*a\.csv; give all files the same"),
    ],
)
def test_of_several_files_the_one_at_fault_is_named(
    spoil: Callable[[Path], None], words: str, tmp_path: Path
) -> None:
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text(PLAIN)
    spoil(tmp_path / "c.csv")
    with pytest.raises(sl.InputError, match=words) as raised:
        sl.read(str(tmp_path / "*.csv"))
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'"a\nb",c\r\n' + b"1,x\r\n2,y\r\n" * 20, "two kinds of line ends, CR LF and LF alone"),
        (b'"a\nb",\xe9\r\n' + b"1,x\r\n2,y\r\n" * 20, "is not UTF-8 text"),
    ],
)
def test_the_true_cause_of_an_unreadable_header(content: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(sl.InputError, match=words):
        sl.read(tmp_path / "a.csv")


def test_a_column_that_cannot_be_asked_about_is_named() -> None:
    error = duckdb.BinderException("Binder Error: No function matches 'epoch(TIMETZ)'. Add explicit casts.")
    said = str(unreadable("people.csv", error, "t", "TIMETZ"))
    assert said.startswith("column 't' (TIMETZ) of people.csv cannot be read: Binder Error")
    said = str(unreadable("people.csv", duckdb.ConversionException("Conversion Error: 'Ann'"), "t", "TIME"))
    assert said.startswith("column 't' of people.csv has a value that does not fit the type TIME;")
    assert "Ann" not in said


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pd.DataFrame([[1, 2], [2, 3]], columns=["a", "a"]), "each: Duplicate column names found"),
        (pd.DataFrame({"a": [1, "Ann", 2.5]}), "each: Conversion failed for column a with type object"),
    ],
)
def test_a_frame_that_is_no_table_says_why(frame: pd.DataFrame, words: str) -> None:
    with pytest.raises(sl.InputError, match=words) as raised:
        sl.read(frame)
    assert "Ann" not in str(raised.value)


ROW = "".join(f"{i % 3},{i % 2},{i % 5}\n" for i in range(60))


@pytest.mark.parametrize(
    ("header", "notes"),
    [
        ("a,b,c\n", []),
        ("a,a_1,b\n", []),
        ("a,a,b\n", ["Column 2 is called 'a_1', since the name 'a' is taken (capitals do not count)."]),
        ("a,A,b\n", ["Column 2 is called 'A_1', since the name 'A' is taken (capitals do not count)."]),
        ("a,,b\n", ["Column 2 has no name in the header and is called 'column1'."]),
    ],
)
def test_made_up_names_are_noted(header: str, notes: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(header + ROW)
    assert sl.read(tmp_path / "a.csv").notes() == notes


def test_further_notes_about_a_table(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(ROW)
    assert "has no header row" in sl.read(tmp_path / "a.csv").notes()[0]
    twins = pa.table([pa.array([1, 2, 1]), pa.array([1, 2, 2])], names=["a", "a"])
    assert "Column 2 is called 'a_1'" in sl.read(twins).notes()[0]
    many = pa.table({"a": [f"v{i % 9}" for i in range(90)], "b": ["x", None, "z"] * 30, "c": ["same"] * 90})
    assert sl.read(many, max_values=4, missing="drop").notes() == [
        "Column 'c' is constant; set aside.",
        "Column 'a' keeps 3 values; all others count as one, (other).",
        "Records with a missing value, left out: 30.",
    ]
