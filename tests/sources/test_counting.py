"""Counting plans and kernels: both ways and both paths give what plain loops and DuckDB give."""

from __future__ import annotations

from itertools import combinations

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sidelight as sl
from sidelight.foundation import compiled
from sidelight.schema import MISSING, OTHER, Attribute
from sidelight.sources import spark
from sidelight.sources import table as engine
from sidelight.sources.codebook import Codebook, Labelled, LookedUp, Placed
from sidelight.sources.counter import LARGEST_SHARED, Counter, CountingPlan, plan_counting, planned


def naive(codes: np.ndarray, sizes: list[int], columns: tuple[int, ...]) -> np.ndarray:
    cells = np.zeros([sizes[column] for column in columns], dtype=np.int64)
    np.add.at(cells, tuple(codes[column] for column in columns), 1)
    return cells


def counted(codes: np.ndarray, plan: CountingPlan, is_compiled: bool, cuts: list[int]) -> list:
    counters = [Counter(plan, is_compiled), Counter(plan, is_compiled)]
    for number, part in enumerate(np.split(codes, cuts, axis=1)):
        counters[number % 2].add(np.ascontiguousarray(part))
    counters[0] += counters[1]
    return counters[0].results()


@pytest.mark.parametrize("is_compiled", [False, True])
@given(data=st.data())
def test_any_sets_of_any_alphabets_are_counted_exactly(is_compiled: bool, data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.sampled_from([1, 2, 2, 3, 7, 40, 300]), min_size=1, max_size=6))
    rows = data.draw(st.integers(0, 300))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    codes = np.stack([rng.integers(0, size, rows) for size in sizes])
    codes = codes.astype(np.uint8 if max(sizes) <= 256 else np.uint16)
    some = st.lists(st.integers(0, len(sizes) - 1), min_size=1, max_size=4, unique=True)
    drawn = data.draw(st.lists(some, min_size=1, max_size=12))
    sets = [tuple(columns) for columns in drawn if np.prod([sizes[i] for i in columns]) <= 1e5]
    plan = plan_counting(sizes, sets)
    found = counted(codes, plan, is_compiled, sorted(data.draw(st.lists(st.integers(0, rows), max_size=3))))
    for columns, cells in zip(sets, found, strict=True):
        assert cells.dtype == np.int64
        assert np.array_equal(cells, naive(codes, sizes, columns))


@pytest.mark.parametrize("is_compiled", [False, True])
def test_bitmaps_count_single_attributes_pairs_and_triples(is_compiled: bool, rng) -> None:
    sizes = (2, 3, 2, 4)
    codes = np.stack([rng.integers(0, size, 333) for size in sizes]).astype(np.uint8)
    sets = tuple(columns for length in (1, 2, 3) for columns in combinations((3, 0, 1, 2), length))
    plan = planned(sizes, sets, shared=1e-9)
    assert not plan.tables
    for columns, cells in zip(sets, counted(codes, plan, is_compiled, [100]), strict=True):
        assert np.array_equal(cells, naive(codes, sizes, columns))


def test_the_plan_takes_the_cheaper_way() -> None:
    binary = plan_counting([2] * 40, list(combinations(range(40), 2)))
    assert not binary.tables
    assert len(binary.bitmaps) == 40
    large = plan_counting([16, 15, 42], list(combinations(range(3), 2)))
    assert large.tables == ((0, 1, 2),)
    assert not large.bitmaps
    mixed = plan_counting([16, 15, 2, 2], [(0, 1), (2, 3)])
    assert mixed.homes == (0, -1)
    apart = plan_counting([500, 500, 500], list(combinations(range(3), 2)))
    assert sorted(apart.tables) == [(0, 1), (0, 2), (1, 2)]


def test_every_set_lies_in_its_home(rng) -> None:
    sizes = rng.integers(2, 60, size=12).tolist()
    plan = plan_counting(sizes, list(combinations(range(12), 2)) + list(combinations(range(12), 3)))
    for columns, home in zip(plan.sets, plan.homes, strict=True):
        assert home < 0 or set(columns) <= set(plan.tables[home])
    shared = [table for table in plan.tables if len(table) > 3]
    assert all(np.prod(plan.shape(table)) <= LARGEST_SHARED for table in shared)


def test_narrow_cells_are_added_to_wide_ones_in_time(monkeypatch, rng) -> None:
    monkeypatch.setattr("sidelight.sources.counter.FLUSH_ROWS", 100)
    codes = rng.integers(0, 30, size=(2, 350)).astype(np.uint8)
    counter = Counter(plan_counting([30, 30], [(0, 1)]), compiled=True)
    for start in range(0, 350, 50):
        counter.add(np.ascontiguousarray(codes[:, start : start + 50]))
        assert counter.narrow.sum() <= 100
    assert np.array_equal(counter.results()[0], naive(codes, [30, 30], (0, 1)))


def columns_of_every_type(rows: int) -> pa.Table:
    rng = np.random.default_rng(11)
    whole = rng.integers(-3, 9, size=rows)
    missing = rng.random(rows) < 0.1
    return pa.table(
        {
            "int8": pa.array(whole, pa.int8()),
            "int16": pa.array(whole * 1000, pa.int16()),
            "uint8": pa.array(whole + 3, pa.uint8()),
            "int64": pa.array(whole * 10**15 + 7, pa.int64()),
            "uint64": pa.array((whole + 3).astype(np.uint64) + np.uint64(2**63), pa.uint64()),
            "int32 missing": pa.array(whole, pa.int32(), mask=missing),
            "int8 missing": pa.array(whole, pa.int8(), mask=missing),
            "boolean": pa.array(whole > 0),
            "boolean missing": pa.array(whole > 0, mask=missing),
            "text": pa.array([f"it's {value}" for value in whole], mask=missing),
            "number": pa.array(rng.normal(size=rows), mask=missing),
            "few numbers": pa.array(whole / 4),
        }
    )


@pytest.mark.parametrize("large", [0, 10**9])
def test_pairs_and_triples_equal_group_by(monkeypatch, large: int) -> None:
    monkeypatch.setattr(compiled, "_least", large)
    arrow = columns_of_every_type(3000)
    table = sl.read(arrow)
    chosen = table.schema.names[:5]
    sets = [*combinations(table.schema.names, 2), *combinations(chosen, 3)]
    labels = pa.table(
        {
            attribute.name: np.asarray(attribute.values)[table.codes()[:, i]]
            for i, attribute in enumerate(table.schema)
        }
    )
    connection = duckdb.connect()
    connection.register("labels", labels)
    for names, counts in zip(sets, table.counts(*sets), strict=True):
        listed = ", ".join(f'"{name}"' for name in names)
        found = connection.execute(f"SELECT {listed}, count(*) FROM labels GROUP BY ALL").fetchall()
        cells = np.zeros_like(counts.cells)
        for *row, count in found:
            cells[tuple(a.code(label) for a, label in zip(counts.schema, row, strict=True))] = count
        assert np.array_equal(counts.cells, cells)


@pytest.mark.parametrize("large", [0, 10**9])
def test_codes_are_those_of_the_labels(monkeypatch, large: int) -> None:
    monkeypatch.setattr(compiled, "_least", large)
    arrow = columns_of_every_type(3000)
    table = sl.read(arrow)
    codes = table.codes()
    assert table.schema.names == tuple(arrow.column_names)
    for i, attribute in enumerate(table.schema):
        for value, code in zip(arrow.column(attribute.name).to_pylist(), codes[:, i], strict=True):
            label = attribute.values[code]
            if value is None:
                assert label == MISSING
            elif attribute.kind == "numeric":
                assert code == np.searchsorted(attribute.edges, value, side="right")
            else:
                assert label == (str(value).lower() if isinstance(value, bool) else str(value))


def test_every_type_is_coded_in_its_cheapest_way() -> None:
    table = sl.read(columns_of_every_type(400))
    asked = Codebook(table.schema, table.source.columns, "it", compiled=False)
    kinds = dict(zip(table.schema.names, map(type, asked.coders), strict=True))
    assert {name for name, kind in kinds.items() if kind is Labelled} == {"text", "few numbers", "int64"}
    assert kinds["number"] is Placed
    assert all(kind is LookedUp for name, kind in kinds.items() if name.startswith(("int8", "uint", "bool")))


def test_columns_in_memory_come_as_they_are() -> None:
    table = sl.read(columns_of_every_type(400).append_column("money", decimals(400)))
    book = table.source.codebook(table.schema, compiled=False)
    asked = {
        name
        for name, coder in zip(table.schema.names, book.coders, strict=True)
        if coder.select != f'"{name}"'
    }
    assert asked == {"money"}, "what a decimal's label is, DuckDB says"
    plain = sl.read(columns_of_every_type(400))
    (batch,) = plain.source.asked(plain.source.codebook(plain.schema, compiled=False), 1000)
    assert (
        batch.column("int8").buffers()[1].address == plain.source.arrow["int8"].chunk(0).buffers()[1].address
    )


def decimals(rows: int) -> pa.Array:
    return pa.array(np.arange(rows) % 3).cast(pa.decimal128(21, 2))


@pytest.mark.parametrize("large", [0, 10**9])
@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64", "uint8", "bool"])
def test_a_value_outside_the_alphabet_is_folded_or_refused(monkeypatch, kind: str, large: int) -> None:
    monkeypatch.setattr(compiled, "_least", large)
    values = [False, True, True, False, True] if kind == "bool" else [3, 4, 4, 100, 5]
    arrow = pa.table({"x": pa.array(values, pa.type_for_alias(kind))})
    listed = ("false",) if kind == "bool" else ("4", "3")
    folding = sl.Schema((Attribute("x", "categorical", (*listed, OTHER)),))
    expected = [2, 3] if kind == "bool" else [2, 1, 2]
    assert sl.read(arrow, schema=folding).counts(["x"])[0].cells.tolist() == expected
    strict = sl.Schema((Attribute("x", "categorical", listed),))
    with pytest.raises(sl.InputError, match="column 'x' of the Table has values outside"):
        sl.read(arrow, schema=strict).counts(["x"])


@pytest.mark.parametrize("large", [0, 10**9])
@pytest.mark.parametrize(
    ("kind", "values", "stray"),
    [
        ("int8", [-56, 3, 3], "200"), ("uint8", [251, 3, 3], "-5"), ("uint8", [0, 3, 3], "256"),
        ("int16", [-1, 3, 3], "65535"), ("uint64", [2**64 - 1, 3, 3], "-1"), ("int32", [5, 3, 3], "--5"),
        ("int64", [0, 3, 3], "9" * 50), ("int64", [0, 3, 3], "-0"), ("int64", [7, 3, 3], "07"),
    ],
)  # fmt: skip
def test_a_label_that_no_number_of_the_type_has_stays_empty(
    monkeypatch, kind: str, values: list[int], stray: str, large: int
) -> None:
    monkeypatch.setattr(compiled, "_least", large)
    arrow = pa.table({"x": pa.array(values, pa.type_for_alias(kind))})
    schema = sl.Schema((Attribute("x", "categorical", (stray, "3", OTHER)),))
    assert sl.read(arrow, schema=schema).counts(["x"])[0].cells.tolist() == [0, 2, 1]


@pytest.mark.parametrize("names", [["a", "A"], ["a", "a"]])
def test_columns_whose_names_duckdb_takes_for_one_are_told_apart(names: list[str]) -> None:
    columns = [pa.array([0, 1, 1], pa.uint8()), pa.array([1, 1, 0], pa.uint8())]
    counts = sl.read(pa.table(columns, names=names)).pair_counts()[0]
    assert counts.cells.tolist() == [[0, 1], [1, 1]]


def test_an_attribute_that_a_set_lists_twice_is_named(monkeypatch) -> None:
    table = sl.read(pa.table({"x": [1, 2, 2, 5], "y": ["a", "b", "a", "b"]}))
    monkeypatch.setattr(engine.LocalEngine, "counts", lambda *_: pytest.fail("counted before it was checked"))
    with pytest.raises(sl.InputError, match="'y' is listed twice"):
        table.counts(["y", "y", "x", "x"])


def test_numbers_that_are_equal_as_doubles_are_listed_in_order() -> None:
    table = sl.read(pa.table({"x": pa.array([2**53 + 1, 2**53, 2**53 + 1], pa.int64())}))
    assert table.schema["x"].values == (str(2**53), str(2**53 + 1))


def test_more_bins_than_duckdb_nests_expressions() -> None:
    numbers = np.arange(2200.0)  # edges are given, as to find a thousand takes seconds
    table = sl.read(pa.table({"x": numbers}), edges={"x": list(numbers[2::2])})
    cells = table.counts(["x"])[0].cells
    assert (len(cells), cells.sum()) == (1100, 2200)
    assert cells.min() > 0


@pytest.mark.parametrize("kind", ["int8", "int64", "bool", "string"])
def test_a_missing_value_that_is_none_of_the_values_is_refused(kind: str) -> None:
    text = kind in ("string", "bool")
    values = pa.array(["true", "false", None] if text else [1, 0, None]).cast(pa.type_for_alias(kind))
    schema = sl.Schema((Attribute("x", "categorical", ("true", "false") if text else ("0", "1")),))
    with pytest.raises(sl.InputError, match="has values outside"):
        sl.read(pa.table({"x": values}), schema=schema).counts(["x"])


def test_threads_count_a_large_table_like_one(rng, monkeypatch) -> None:
    monkeypatch.setattr(compiled, "_least", 0)
    monkeypatch.setattr(engine, "processors", lambda: 3)
    rows = 500_005
    codes = np.stack([rng.integers(0, size, rows) for size in (2, 2, 12, 15)]).astype(np.uint8)
    table = sl.read(pa.table({f"a{i}": column for i, column in enumerate(codes)}))
    for counts, columns in zip(table.pair_counts(), combinations(range(4), 2), strict=True):
        assert np.array_equal(counts.cells, naive(codes, [2, 2, 12, 15], columns))


def test_an_error_in_a_thread_reaches_the_caller(rng, monkeypatch) -> None:
    monkeypatch.setattr(compiled, "_least", 0)
    values = rng.integers(0, 3, 400_000).astype(np.uint8)
    values[-1] = 200
    schema = sl.Schema((sl.categorical("x", ["0", "1", "2"]),))
    with pytest.raises(sl.InputError, match="column 'x' of the Table has values outside"):
        sl.read(pa.table({"x": values}), schema=schema).counts(["x"])


@pytest.mark.parametrize(
    ("values", "largest", "expected"),
    [
        ([0, 1, 1, None], 2, {(0,): 1, (1,): 2}),
        ([None, None], 2, {}),
        ([0, 1, 1, None], 1, {None: 0}),
    ],
)
def test_a_partition_gives_its_distinct_records_or_says_that_they_are_too_many(
    values: list, largest: int, expected: dict
) -> None:
    schema = sl.Schema((Attribute("x", "categorical", ("0", "1"), missing="drop"),))
    batch = pa.record_batch({"c0": pa.array(values, pa.int8())})
    found = {}
    for part in spark.Partition(schema, "it", False).distinct([batch], largest):
        for record, weight in zip(*(column.to_pylist() for column in part.columns), strict=True):
            found[None if record is None else tuple(np.frombuffer(record, np.uint16))] = weight
    assert found == expected


def test_empty_chunks_and_slices_are_counted_where_they_lie() -> None:
    chunks = [
        pa.array([], pa.uint8()),
        pa.array([9, 0, 1, 1], pa.uint8()).slice(1),
        pa.array([2], pa.uint8()),
    ]
    table = sl.read(pa.table({"x": pa.chunked_array(chunks)}))
    assert table.schema["x"].values == ("0", "1", "2")
    assert table.counts(["x"])[0].cells.tolist() == [1, 2, 1]
