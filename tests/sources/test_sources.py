"""Reading, coding and counting: every source gives the same table, and bad sources are named."""

from __future__ import annotations

import math
import sqlite3
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sidelight as sl
from sidelight.schema import MISSING, OTHER, bin_labels
from sidelight.sources.counts import block_counts, distinct_rows
from sidelight.sources.table import write_table

ROWS = 400


@pytest.fixture(scope="module")
def arrow() -> pa.Table:
    rng = np.random.default_rng(5)
    colour = rng.choice(["red", "green", "blue"], size=ROWS)
    return pa.table(
        {
            "colour": pa.array([None if i % 50 == 0 else c for i, c in enumerate(colour)]),
            "size": pa.array(rng.integers(1, 4, size=ROWS), pa.int64()),
            "weight": pa.array(rng.normal(70, 10, size=ROWS).round(3)),
            "flag": pa.array(rng.random(ROWS) < 0.3),
        }
    )


def as_files(arrow: pa.Table, folder: Path) -> dict[str, object]:
    pq.write_table(arrow, folder / "one.parquet")
    (folder / "parts").mkdir()
    pq.write_table(arrow.slice(0, 150), folder / "parts" / "a.parquet")
    pq.write_table(arrow.slice(150), folder / "parts" / "b.parquet")
    frame = arrow.to_pandas()
    frame.to_csv(folder / "one.csv", index=False)
    frame.to_csv(folder / "one.tsv", index=False, sep="\t")
    return {
        "parquet": folder / "one.parquet",
        "glob": str(folder / "parts" / "*.parquet"),
        "folder": folder / "parts",
        "csv": folder / "one.csv",
        "tsv": folder / "one.tsv",
        "arrow": arrow,
        "reader": arrow.to_reader(max_chunksize=100),
        "pandas": frame,
        "polars": pl.from_arrow(arrow),
        "duckdb": duckdb.connect().read_parquet(str(folder / "one.parquet")),
    }


@pytest.mark.parametrize(
    "kind", ["parquet", "glob", "folder", "csv", "tsv", "arrow", "reader", "pandas", "polars", "duckdb"]
)
def test_every_source_gives_the_same_table(kind: str, arrow: pa.Table, tmp_path: Path) -> None:
    table = sl.read(as_files(arrow, tmp_path)[kind])
    expected = sl.read(arrow)
    assert table.schema == expected.schema
    assert np.array_equal(table.codes(), expected.codes())
    assert len(table) == ROWS


def test_codes_mean_their_labels(arrow: pa.Table) -> None:
    table = sl.read(arrow)
    codes = table.codes()
    for i, attribute in enumerate(table.schema):
        raw = arrow.column(attribute.name).to_pylist()
        for value, code in zip(raw, codes[:, i], strict=True):
            if attribute.kind == "numeric":
                assert code == np.searchsorted(attribute.edges, value, side="right")
            else:
                text = (
                    MISSING
                    if value is None
                    else str(value).lower()
                    if isinstance(value, bool)
                    else str(value)
                )
                assert attribute.values[code] == text


def test_sql_from_duckdb_and_any_database(arrow: pa.Table) -> None:
    connection = duckdb.connect()
    connection.register("people", arrow)
    query = "SELECT colour, size FROM people"
    first = sl.read_sql(query, connection)
    with sqlite3.connect(":memory:") as other:
        other.execute("CREATE TABLE people (colour TEXT, size INTEGER)")
        rows = list(zip(arrow["colour"].to_pylist(), arrow["size"].to_pylist(), strict=True))
        other.executemany("INSERT INTO people VALUES (?, ?)", rows)
        second = sl.read_sql(query, other)
        assert np.array_equal(first.codes(), second.codes())
        with pytest.raises(sl.InputError, match="must be a SELECT"):
            sl.read_sql("CREATE TABLE t (a INTEGER)", other)
    other.close()
    with pytest.raises(sl.InputError, match="DB-API 2.0"):
        sl.read_sql(query, "not a connection")


def test_a_table_speaks_arrow(arrow: pa.Table) -> None:
    again = pa.table(sl.read(arrow, columns=["colour", "size"]))
    assert again.column_names == ["colour", "size"]
    assert again["size"].to_pylist() == arrow["size"].to_pylist()


def test_counts_agree_with_plain_loops(arrow: pa.Table) -> None:
    table = sl.read(arrow)
    codes = table.codes()
    sets = [("colour",), ("size", "flag"), ("flag", "colour", "weight")]
    for names, counts in zip(sets, table.counts(*sets), strict=True):
        expected = np.zeros(counts.cells.shape, dtype=int)
        for row in codes[:, [table.schema.index(name) for name in names]]:
            expected[tuple(row)] += 1
        assert np.array_equal(counts.cells, expected)
        assert counts.total == ROWS
    for counts in table.pair_counts():
        assert np.array_equal(counts.cells, table.counts(counts.schema.names)[0].cells)
    records = table.records()
    assert np.array_equal(records.cells(table.schema.names), table.counts(table.schema.names)[0].cells)
    assert (counts + counts).total == 2 * ROWS


def test_block_counts_agree_for_small_and_large_alphabets(rng, monkeypatch) -> None:
    codes = rng.integers(0, 5, size=(1000, 3)).astype(np.uint16)
    weights = rng.random(1000)
    for given in (None, weights):
        small = block_counts(codes, (5, 5, 5), given)
        with monkeypatch.context() as patch:
            patch.setattr("sidelight.sources.counts.LARGEST_GRAM", 0)
            assert block_counts(codes, (5, 5, 5), given) == pytest.approx(small)


def test_distinct_rows_survive_colliding_hashes(monkeypatch, rng) -> None:
    codes = rng.integers(0, 3, size=(500, 4)).astype(np.uint16)
    expected = len(np.unique(codes, axis=0))
    honest = sl.sources.counts.Seeded.words
    calls = []

    def colliding(self, start, count):
        calls.append(self.key)
        return np.ones(count, dtype=np.uint64) if self.key == 0 else honest(self, start, count)

    monkeypatch.setattr(sl.sources.counts.Seeded, "words", colliding)
    group, distinct = distinct_rows(codes)
    assert set(calls) == {0, 1}
    assert distinct == expected
    for number in range(distinct):
        assert len(np.unique(codes[group == number], axis=0)) == 1


def test_point_masses_get_bins_of_their_own(data: Path) -> None:
    table = sl.read(data / "adult.parquet", columns=["capital-gain"])
    counts = table.counts(["capital-gain"])[0].cells
    attribute = table.schema["capital-gain"]
    assert attribute.values[0] == "up to 0"
    assert counts[0] == 44_807
    assert (counts > 0).all()


def test_a_point_mass_in_the_middle_stands_apart() -> None:
    values = [float(i) for i in range(100)] + [50.0] * 100
    table = sl.read(pa.table({"x": values}), bins=4)
    counts = table.counts(["x"])[0].cells
    attribute = table.schema["x"]
    assert counts[attribute.code("50")] == 101
    assert {50, math.nextafter(50, 51)} <= set(attribute.edges)
    assert (counts > 0).all()
    assert counts.sum() == 200


def test_binning_by_width_by_edges_and_its_refusal() -> None:
    column = pa.table({"x": [float(i) for i in range(100)]})
    assert sl.read(column, bins=4, binning="width").schema["x"].edges == (24.75, 49.5, 74.25)
    table = sl.read(column, edges={"x": [10, 20]})
    assert table.counts(["x"])[0].cells.tolist() == [10, 10, 80]
    with pytest.raises(sl.InputError, match="leaves one occupied bin"):
        sl.read(column, edges={"x": [1000]})
    with pytest.raises(sl.InputError, match="strictly increasing"):
        sl.read(column, edges={"x": [20, 10]})


def test_rare_values_are_folded_and_missing_values_dropped() -> None:
    column = pa.table({"x": ["a"] * 50 + ["b"] * 30 + list("cdefgh") + [None] * 4, "y": [1, 2] * 45})
    table = sl.read(column, max_values=3)
    assert table.schema["x"].values == ("a", "b", OTHER, MISSING)
    assert table.counts(["x"])[0].cells.tolist() == [50, 30, 6, 4]
    dropped = sl.read(column, max_values=3, missing="drop")
    assert (dropped.rows, dropped.dropped) == (86, 4)
    assert dropped.counts(["x"])[0].cells.tolist() == [50, 30, 6]


def test_not_a_number_is_missing() -> None:
    table = sl.read(pa.table({"x": [1.5, math.nan, 2.5, None] * 10, "y": [1, 2] * 20}))
    assert table.schema["x"].values == ("1.5", "2.5", MISSING)
    assert table.counts(["x"])[0].cells.tolist() == [10, 10, 20]
    many = sl.read(pa.table({"x": [*map(float, range(50)), math.nan]}))
    assert many.schema["x"].values[-1] == MISSING
    assert many.counts(["x"])[0].cells[-1] == 1


def test_values_in_a_given_order_are_ordinal() -> None:
    column = pa.table({"x": ["low", "high", "mid", "odd"] * 5})
    attribute = sl.read(column, values={"x": ["low", "mid", "high"]}).schema["x"]
    assert (attribute.kind, attribute.values) == ("ordinal", ("low", "mid", "high", OTHER))


def test_a_schema_codes_another_table_alike(arrow: pa.Table) -> None:
    schema = sl.read(arrow).schema
    part = sl.read(arrow.slice(0, 40), schema=schema)
    assert np.array_equal(part.codes(), sl.read(arrow).codes()[:40])
    strange = arrow.slice(0, 40).set_column(1, "size", pa.array([99] * 40))
    with pytest.raises(sl.InputError, match="column 'size' of the Table has values outside"):
        sl.read(strange, schema=schema).codes()


def test_useless_columns_are_set_aside_or_refused_by_name() -> None:
    columns = pa.table(
        {
            "id": [f"p{i}" for i in range(60)],
            "same": ["x"] * 60,
            "nothing": pa.array([None] * 60, pa.string()),
            "nested": [[1, 2]] * 60,
            "real": ["a", "b"] * 30,
        }
    )
    table = sl.read(columns)
    assert table.schema.names == ("real",)
    assert {item.column for item in table.set_aside} == {"id", "same", "nothing", "nested"}
    for name, words in {
        "id": "identifies",
        "same": "constant",
        "nothing": "no value",
        "nested": "type",
    }.items():
        with pytest.raises(sl.InputError, match=f"column {name!r} of the Table.*{words}"):
            sl.read(columns, require=[name])


def test_dates_are_binned_by_time(data: Path) -> None:
    table = sl.read(data / "geolife_sample.parquet", columns=["datetime"])
    found = table.schema["datetime"]
    assert (found.kind, found.values[:2]) == ("date", ("before 2008-11", "2008-11"))
    assert table.counts(["datetime"])[0].total == 217_653


def test_labels_of_bins() -> None:
    assert bin_labels([0.5, 2]) == ("below 0.5", "0.5 to below 2", "2 or more")
    assert bin_labels([3, math.nextafter(3, 4)]) == ("below 3", "3", "above 3")
    assert bin_labels([]) == ("any",)


def test_example_tables_and_the_known_survey() -> None:
    assert sl.example("titanic").counts(["survived"])[0].cells.tolist() == [1490, 711]
    assert sl.example("admissions").counts(["admitted"])[0].cells.tolist() == [2771, 1755]
    schema, joint = sl.sources.survey_joint()
    assert joint.sum() == pytest.approx(1)
    drawn = sl.sources.survey(200_000, seed=1).counts(schema.names)[0].cells / 200_000
    # 324 cells at six standard deviations each: a false alarm below 1e-6
    assert np.all(np.abs(drawn - joint) <= 6 * np.sqrt(joint / 200_000) + 1e-9)
    with pytest.raises(sl.InputError, match="one of 'survey', 'titanic', 'admissions'"):
        sl.example("lusitania")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda folder: folder / "none.csv", "there is no file .*none.csv; check the path"),
        (
            lambda folder: _file(folder / "a.xls", b"x"),
            "a.xls has a format that is not read; save it as",
        ),
        (lambda folder: _file(folder / "a.csv", b""), "a.csv is empty; it needs a header"),
        (lambda folder: _file(folder / "a.csv", b"a,b\n"), "a.csv has 0 rows; it needs at least two"),
        (lambda folder: _file(folder / "a.csv", b"a,b\n1,2\n"), "a.csv has 1 row; it needs at least two"),
        (lambda folder: _file(folder / "a.parquet", b"PAR1 nonsense"), "a.parquet is not a Parquet file"),
        (
            lambda folder: _file(folder / "a.csv", b"a,b\nx,\xff\xfe\nz,\xe9\n" * 3),
            "not UTF-8 text; convert it",
        ),
        (lambda folder: folder, "holds no .parquet"),
        (lambda _: 5, "`source` must be a path.*got 'int'"),
    ],
)
def test_bad_sources_are_named(make, words: str, tmp_path: Path) -> None:
    with pytest.raises(sl.InputError, match=words):
        sl.read(make(tmp_path))


def test_latin_text_is_read_when_its_encoding_is_named(tmp_path: Path) -> None:
    path = _file(tmp_path / "a.csv", "a,b\nné,1\nny,2\n".encode("latin-1") + b"ny,1\n" * 5)
    assert sl.read(path, encoding="latin-1").schema["a"].values == ("ny", "né")


def test_bad_rules_are_named(arrow: pa.Table) -> None:
    for rules, words in [
        ({"bins": 1}, "`bins` must be a whole number of at least 2"),
        ({"binning": "magic"}, "`binning` must be one of"),
        ({"missing": "keep"}, "`missing` must be one of 'value', 'drop'"),
        ({"kinds": {"colour": "numeric"}}, "'colour' is VARCHAR, not a number"),
        ({"columns": ["color"]}, "there is no column 'color'; did you mean 'colour'"),
        ({"drop": ["colour", "size", "weight", "flag"]}, "no column is left"),
        ({"drop": ["colour"], "require": ["colour"]}, "both named and dropped"),
        ({"encoding": "latin-1"}, "`encoding` is for text files"),
    ]:
        with pytest.raises(sl.InputError, match=words):
            sl.read(arrow, **rules)


def _file(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_pandas_frames_with_an_index_and_categories() -> None:
    frame = pd.DataFrame({"a": pd.Categorical(["x", "y"] * 10), "b": [1, 2] * 10}, index=range(20, 40))
    assert sl.read(frame).schema["a"].values == ("x", "y")


@pytest.mark.parametrize("name", ["label", "records", "total", "v", 'a "b"', "count", "select", "né"])
def test_any_column_name_is_fine(name: str) -> None:
    table = sl.read(
        pa.table({name: ["a", "b"] * 50, "x": [float(i) for i in range(100)], "y": ["p", "q"] * 50})
    )
    assert table.schema.names == (name, "x", "y")
    numbers = sl.read(pa.table({name: [float(i) for i in range(100)], "y": ["p", "q"] * 50}))
    assert numbers.schema[name].kind == "numeric"


def test_a_table_can_be_scanned_while_it_is_scanned(arrow: pa.Table, tmp_path: Path) -> None:
    pq.write_table(arrow, tmp_path / "one.parquet")
    for table in (sl.read(arrow), sl.read(tmp_path / "one.parquet")):
        totals = table.engine.map_batches(table, lambda _, __, t=table: t.counts(["size"])[0].total)
        assert list(totals) == [ROWS]


def test_dropped_records_are_dropped_from_every_view() -> None:
    table = sl.read(pa.table({"x": ["a", None, "b", "a"] * 10}), missing="drop")
    assert len(table) == pa.table(table).num_rows == len(table.codes()) == 30


def test_no_value_of_the_data_reaches_a_message(tmp_path: Path) -> None:
    names = ["Jane Doe", "John Smith"] * 40
    schema = sl.Schema((sl.numeric("x", [5.0]),))
    path = _file(tmp_path / "late.csv", b"x\n" + b"1\n" * 30_000 + b"Jane Doe\n")
    mixed = pd.DataFrame({"x": [1, "Jane Doe"] * 30})
    for call in (
        lambda: sl.read(pa.table({"x": names}), schema=schema).codes(),
        lambda: sl.read(path),
        lambda: sl.read(mixed),
        lambda: sl.read(pa.table({"x": names}), schema=sl.Schema((sl.categorical("x", ["a", "b"]),))).codes(),
    ):
        with pytest.raises(sl.InputError) as caught:
            call()
        assert "Jane" not in str(caught.value)


def test_odd_values() -> None:
    twice = sl.read(pa.table({"x": [0.0, -0.0, 1.5] * 10, "y": [1, 2] * 15}))
    assert twice.schema["x"].values == ("0.0", "1.5")
    large = pa.table({"x": pa.array([2**63 + i for i in range(40)] * 2, pa.uint64()), "y": [1, 2] * 40})
    assert [item.column for item in sl.read(large).set_aside] == ["x"]
    with pytest.raises(sl.InputError, match="the value '\\(missing\\)', which stands for"):
        sl.read(pa.table({"x": ["(missing)", "b"] * 5}))


def test_listed_values_that_do_not_occur_are_refused() -> None:
    column = pa.table({"x": ["low", "high"] * 20})
    for values in (["Low", "High"], []):
        with pytest.raises(sl.InputError, match="leave one occupied value"):
            sl.read(column, values={"x": values})
    many = pa.table({"x": [f"v{i}" for i in range(60)] * 2})
    assert sl.read(many, values={"x": [f"v{i}" for i in range(60)]}).schema["x"].size == 60


def test_folders_of_one_format_only(arrow: pa.Table, tmp_path: Path) -> None:
    (tmp_path / "year=2025").mkdir()
    pq.write_table(arrow, tmp_path / "year=2025" / "a.parquet")
    assert len(sl.read(tmp_path)) == ROWS
    _file(tmp_path / "b.csv", b"a\n1\n2\n")
    with pytest.raises(sl.InputError, match="files of several kinds"):
        sl.read(tmp_path)
    with pytest.raises(sl.InputError, match="rows of different lengths, or an unknown separator"):
        sl.read(_file(tmp_path / "ragged.csv", b"a,b\n1\n2,3,4\n5\n"))


def test_counts_of_bad_sets(arrow: pa.Table) -> None:
    table = sl.read(arrow)
    for sets, words in [([[]], "lists of attribute names"), (["colour"], "lists of attribute names")]:
        with pytest.raises(sl.InputError, match=words):
            table.counts(*sets)
    wide = pa.table({f"x{i}": [str(v) for v in range(60)] * 2 for i in range(8)})
    wide_table = sl.read(wide, max_values=100)
    with pytest.raises(sl.TooLargeError, match="ask for fewer attributes"):
        wide_table.counts(wide_table.schema.names)


def test_a_text_file_keeps_its_own_words_for_yes_and_no(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("smokes,retired\nyes,True\nno,False\nno,True\n")
    schema = sl.read(path).schema
    assert [attribute.values for attribute in schema] == [("no", "yes"), ("false", "true")]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_written_table_is_read_back(tmp_path, suffix):
    table = sl.example("admissions")
    again = sl.read(write_table(table, tmp_path / f"table{suffix}"), schema=table.schema)
    np.testing.assert_array_equal(again.codes(), table.codes())


def test_a_table_is_written_only_in_a_known_format(tmp_path):
    with pytest.raises(sl.InputError, match=r"path.*csv or .parquet"):
        write_table(sl.example("titanic"), tmp_path / "table.xlsx")


@pytest.mark.parametrize("missing", ["value", "drop"])
def test_what_is_not_a_number_is_missing_in_a_parquet_file_too(tmp_path, missing):
    path = tmp_path / "gaps.parquet"
    pq.write_table(pa.table({"x": [2.0, 1.0, math.nan, 3.0] * 10, "y": ["a", "b", "b", "a"] * 10}), path)
    table = sl.read(path, missing=missing)
    assert table.schema["x"].listed == ("1.0", "2.0", "3.0")
    assert table.rows == (40 if missing == "value" else 30)
    assert table.counts(["x"])[0].cells.tolist() == [10] * (4 if missing == "value" else 3)
