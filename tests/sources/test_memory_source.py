"""Rows in memory: tallies and columns as they are give what DuckDB gives over the same rows."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import sidelight as sl
from sidelight.schema import MISSING, OTHER, Attribute
from sidelight.sources.local import LocalSource
from sidelight.sources.memory import MemorySource, of_arrow
from sidelight.sources.sql import label_code
from sidelight.sources.table import write_rows
from sidelight.sources.tally import tally

MANY = pytest.mark.parametrize("seeds", [range(20), pytest.param(range(20, 800), marks=pytest.mark.deep)])
WORDS = ["", " ", "a", "A", "it's", "ü", "𝄞", "ﬀ", "zz", "10", "9", "1.5", "NaN", "?", "(x)", "2020-01-02"]
EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e300, -1e-300, 0.1, 2.0**53, 2.0**53 + 2]


def column(rng: np.random.Generator, rows: int) -> pa.Array:
    """Return a column of any type that is tallied or not, with few or many values, perhaps with gaps."""
    kinds = [
        int8, int16, int64, uint8, uint64, huge, wide, wide_unsigned, flag, real, odd, few_reals, single,
        any_single, few_singles, word, name, day, moment, second, money,
    ]  # fmt: skip
    values = kinds[rng.integers(len(kinds))](rng, rows)
    gaps = rng.random(rows) < rng.choice([0, 0, 0.1, 0.95])
    return pa.array(
        [None if gap else value.as_py() for gap, value in zip(gaps, values, strict=True)], values.type
    )


def encoded(rng: np.random.Generator, values: pa.Array) -> pa.DictionaryArray:
    """Return the values by a dictionary that has each twice, in any order; one may be missing in two ways."""
    distinct = values.unique()
    order = rng.permutation(2 * len(distinct))
    places = pc.index_in(values, value_set=distinct).to_numpy() + len(distinct) * rng.integers(
        2, size=len(values)
    )
    lacking = np.asarray(values.is_null()) & (rng.random(len(values)) < 0.5)
    kind = [pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64()][rng.integers(5)]
    indices = pa.array(np.argsort(order)[places], kind, mask=lacking)
    return pa.DictionaryArray.from_arrays(indices, pa.concat_arrays([distinct, distinct]).take(order))


def whole(rng: np.random.Generator, rows: int, low: int, high: int, kind: pa.DataType) -> pa.Array:
    spread = min(high - low, int(rng.choice([1, 5, 30, 300, 10**6, 10**17])))
    start = low + int(rng.random() * (high - low - spread))
    return pa.array([start + int(share * spread) for share in rng.random(rows)], kind)


def int8(rng, rows):
    return whole(rng, rows, -128, 127, pa.int8())


def int16(rng, rows):
    return whole(rng, rows, -300, 300, pa.int16())


def int64(rng, rows):
    return whole(rng, rows, -(2**62), 2**62, pa.int64())


def huge(rng, rows):
    return pa.array([2**53 + int(rng.integers(4)) for _ in range(rows)], pa.int64())


def wide(rng, rows):
    return pa.array(rng.choice([-(2**63), -7, 0, 2**53 + 1, 2**53 + 2, 2**63 - 1], size=rows), pa.int64())


def wide_unsigned(rng, rows):
    return pa.array(rng.choice(np.array([0, 9, 2**63, 2**63 + 1, 2**64 - 1], np.uint64), size=rows))


def uint8(rng, rows):
    return whole(rng, rows, 0, 255, pa.uint8())


def uint64(rng, rows):
    return whole(rng, rows, 0, 2**64 - 1, pa.uint64())


def flag(rng, rows):
    return pa.array(rng.random(rows) < 0.3)


def real(rng, rows):
    values = rng.normal(size=rows).round(int(rng.integers(0, 5)))
    return pa.array(np.where(rng.random(rows) < rng.choice([0, 0.3]), 0.5, values))


def odd(rng, rows):
    return pa.array(rng.choice(EDGES, size=rows))


def few_reals(rng, rows):
    return pa.array(rng.choice(rng.choice(FEW, size=5), size=rows))


def single(rng, rows):
    return pa.array(rng.normal(size=rows).round(int(rng.integers(1, 9))).astype(np.float32))


def any_single(rng, rows):
    return pa.array(rng.integers(2**32, size=rows, dtype=np.uint32).view(np.float32))


def few_singles(rng, rows):
    return pa.array(rng.choice(np.array(FEW, np.float32), size=rows))


def word(rng, rows):
    return pa.array(
        rng.choice(WORDS, size=rows).tolist(), pa.large_string() if rng.random() < 0.3 else pa.string()
    )


def name(rng, rows):
    return pa.array([f"n{value}" for value in rng.integers(0, 10**6, size=rows)])


def day(rng, rows):
    return pa.array(rng.integers(0, 20_000, size=rows), pa.int32()).cast(pa.date32())


def moment(rng, rows):
    return pa.array(rng.integers(-(10**15), 2 * 10**15, size=rows)).cast(pa.timestamp("us"))


def second(rng, rows):
    return pa.array(rng.integers(0, 10**9, size=rows)).cast(pa.timestamp("s"))


def money(rng, rows):
    return pa.array(rng.integers(0, 400, size=rows)).cast(pa.decimal128(21, 2))


FEW = [0.0, -0.0, 0.1, 0.25, -3.0, 1e20, 1e-7, 16777216.0, 3.4e38, np.inf, np.nan]


def table_of(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    rows = int(rng.choice([3, 30, 200, 900]))
    arrow = pa.table({f"c{i}": column(rng, rows) for i in range(4)} | {"sure": np.arange(rows) % 2})
    cut = int(rng.integers(rows))  # columns in chunks, which do not begin at the start of their buffers
    tables = [arrow, arrow]
    for place, values in enumerate(arrow.columns):
        if rng.random() < 0.3:  # with a dictionary for each chunk, some values of which do not occur in it
            made = [encoded(rng, values.combine_chunks()) for _ in tables]
            kind = pa.dictionary(made[0].indices.type, values.type)
            tables = [
                table.set_column(place, arrow.column_names[place], column.cast(kind))
                for table, column in zip(tables, made, strict=True)
            ]
    return pa.concat_tables([tables[0].slice(0, cut), tables[1].slice(cut)])


def both(arrow: pa.Table, **options) -> list[sl.Table | str]:
    """Return the table as it is read from memory and from DuckDB, or what is said against it."""
    connection = duckdb.connect()
    connection.register("rows", arrow)
    found: list[sl.Table | str] = []
    for source in (arrow, connection.sql("FROM rows")):
        try:
            found.append(sl.read(source, label="it", **options))
        except sl.InputError as error:
            found.append(str(error))
    return found


def assert_alike(mine: sl.Table, theirs: sl.Table) -> None:
    assert isinstance(mine.source, MemorySource)
    assert not isinstance(theirs.source, MemorySource)
    assert mine.schema == theirs.schema
    assert (mine.rows, mine.dropped, mine.notes()) == (theirs.rows, theirs.dropped, theirs.notes())
    sets = [[name] for name in mine.schema.names] + [
        list(pair) for pair in combinations(mine.schema.names, 2)
    ]
    for ours, others in zip(mine.counts(*sets), theirs.counts(*sets), strict=True):
        assert np.array_equal(ours.cells, others.cells)
    assert np.array_equal(mine.codes(), theirs.codes())


@MANY
def test_any_table_is_read_as_duckdb_reads_it(seeds: range) -> None:
    compared = 0
    for seed in seeds:
        rng = np.random.default_rng([seed, 1])
        options = {"missing": str(rng.choice(["value", "drop"])), "bins": int(rng.integers(2, 12))}
        mine, theirs = both(table_of(seed), **options)
        if isinstance(mine, str) or isinstance(theirs, str):
            assert mine == theirs
        else:
            assert_alike(mine, theirs)
            compared += 1
    assert compared > 0.7 * len(seeds)


@MANY
def test_every_answer_is_duckdbs(seeds: range) -> None:
    for seed in seeds:
        arrow = table_of(seed)
        mine, connection = of_arrow(arrow, "it"), duckdb.connect()
        connection.register("rows", arrow)
        theirs = LocalSource(lambda connection=connection: connection.sql("FROM rows"), label="it")
        for name, kind in mine.columns.items():
            (rows, ((present, distinct),)) = mine.profile([name])
            assert (rows, present) == (theirs.profile([name])[0], theirs.profile([name])[1][0][0])
            assert mine.distinct(name) == theirs.distinct(name)
            if tally(arrow[name]) is not None:
                assert distinct == theirs.distinct(name)
            for most in (2, 51):
                assert mine.frequent(name, most) == theirs.frequent(name, most)
            if kind not in ("VARCHAR", "BOOLEAN"):
                assert mine.summary(name, 7) == theirs.summary(name, 7), (seed, name)


@pytest.mark.parametrize("missing", ["absent", "value", "drop"])
@pytest.mark.parametrize("has_other", [False, True])
@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.parametrize(
    "values",
    [
        ["a", "b", "c", "b", "x"],
        [3, 4, 4, 6, 5],
        [3, 4, 4, 10**12, 5],
        [3, 4, 4, -(10**12), 5],
        [True, False] * 3,
    ],
    ids=["text", "next", "far", "below", "truth"],
)
def test_a_given_alphabet_codes_and_refuses_as_duckdb_does(
    values: list, gap: bool, has_other: bool, missing: str
) -> None:
    listed = {str: ("a", "b", "c"), int: ("3", "4", "5"), bool: ("true",)}[type(values[0])]
    rest = (OTHER,) * has_other + (MISSING,) * (missing == "value")
    schema = sl.Schema(
        (Attribute("x", "categorical", listed + rest, missing=missing), sl.categorical("y", "01"))
    )
    column = pa.array([*values, None] if gap else values)
    arrow = pa.table({"x": column, "y": pa.array([i % 2 for i in range(len(column))], pa.int8())})
    said = []
    for table in both(arrow, schema=schema):
        try:
            said.append(table if isinstance(table, str) else table.codes().tolist())
        except sl.InputError as error:
            said.append(str(error))
    assert said[0] == said[1]


def test_merged_words_are_coded_as_duckdb_does() -> None:
    merged = (("vowel", ("a", "e")), ("b", ("b", "B")))
    attribute = Attribute("x", "categorical", ("vowel", "b", "c", OTHER), merged=merged)
    words = ["a", "e", "b", "B", "c", "vowel", "d", "(other)"]
    arrow = pa.table({"x": words, "y": [i % 2 for i in range(len(words))]})
    mine, theirs = both(arrow, schema=sl.Schema((attribute, sl.categorical("y", "01"))))
    assert mine.codes()[:, 0].tolist() == [0, 0, 1, 1, 2, 3, 3, 3]
    assert_alike(mine, theirs)


def in_chunks(arrow: pa.Table, _folder: Path) -> pa.Table:
    step = arrow.num_rows // 8
    return pa.concat_tables([arrow.slice(start, step) for start in range(0, arrow.num_rows, step)])


def as_relation(arrow: pa.Table, folder: Path) -> duckdb.DuckDBPyRelation:
    return duckdb.connect().from_arrow(in_chunks(arrow, folder))


def as_text(arrow: pa.Table, folder: Path) -> Path:
    return write_rows(arrow, folder / "rows.csv")


@pytest.mark.parametrize("given", [in_chunks, as_relation, as_text])
@pytest.mark.parametrize("na", [None, ["8", "9", "none of them", "x", "y", "z"]])
def test_cells_without_their_markers_stay_in_their_rows(given, na, tmp_path: Path) -> None:
    """DuckDB joins rows with a longer list of words, and a join does not keep their order."""
    values = np.arange(400_000) % 5
    words = np.where(np.arange(len(values)) % 7, values.astype(str), "NA")
    table = sl.read(given(pa.table({"words": words, "values": values}), tmp_path), na=na)
    codes = table.codes()
    assert np.array_equal(codes[:, 1], values)
    assert np.array_equal(codes[:, 0], np.where(words == "NA", 5, values))


def test_a_long_list_of_merged_values_makes_no_join() -> None:
    merged = tuple((f"{a}-{b}", (str(a), str(b))) for a, b in zip(range(6), range(6, 12), strict=True))
    attribute = Attribute("x", "categorical", tuple(into for into, _ in merged), merged=merged)
    rows = duckdb.connect().from_arrow(pa.table({"x": list("0123456789")}))
    assert "Join" not in rows.project(label_code(attribute, "VARCHAR")).explain()
    assert "Join" in rows.project("x IN ('a', 'b', 'c', 'd', 'e', 'f')").explain()


def test_long_columns_are_left_to_duckdb(monkeypatch) -> None:
    monkeypatch.setattr("sidelight.sources.memory._MOST_ROWS", 10)
    monkeypatch.setattr("sidelight.sources.memory.tally", lambda _: pytest.fail("a long column is tallied"))
    assert_alike(*both(table_of(3)))


def test_tallies_of_many_values_are_not_kept(monkeypatch) -> None:
    monkeypatch.setattr("sidelight.sources.memory._MOST_KEPT", 3)
    table = sl.read(pa.table({"few": list("abc") * 30, "many": np.arange(90) / 7}))
    assert set(table.source._tallies) == {"few"}
    assert table.schema["many"].size == 10


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "rows.arrow"])
def test_a_query_may_read_its_file_twice(name: str, tmp_path: Path) -> None:
    """DuckDB waited for itself where text of more than a few thousand rows was read twice."""
    rows = 100_000
    place = np.arange(rows)
    arrow = pa.table({"a": place % 7, "b": place % 20_000, "c": [f"w{i % 5}" for i in range(rows)]})
    path = tmp_path / name
    write = {".csv": pa.csv.write_csv, ".parquet": pa.parquet.write_table, ".arrow": pa.feather.write_feather}
    write[path.suffix](arrow, path)
    twice = "SELECT a, c FROM data WHERE b IN (SELECT b FROM data WHERE b < 2000)"
    joined = "SELECT x.a, y.c FROM data x JOIN (SELECT DISTINCT b, c FROM data) y USING (b) WHERE x.b < 2000"
    for query in (twice, joined):
        assert sl.read(path, sql=query).rows == 10_000
