"""What text stands for: missing markers, numbers, dates, codes and words, the same from every format."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sidelight as sl
from sidelight.sources.cells import MARKERS
from sidelight.sources.local import LocalSource, open_object

ROWS = 300


def _csv(path: Path, columns: dict[str, list[object]]) -> Path:
    lines = [",".join(columns)] + [
        ",".join("" if cell is None else str(cell) for cell in row)
        for row in zip(*columns.values(), strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def _with(cells: list[str], *, every: int = 25) -> list[str]:
    """Numbers from 0 to 99 with other cells among them."""
    return [cells[i // every % len(cells)] if i % every == 3 else str(i % 100) for i in range(ROWS)]


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow", "dict"])
@pytest.mark.parametrize(
    "marker", ["?", "NA", "N/A", "n/a", "null", "None", "nan", "-", ".", "#N/A", " NA ", "  "]
)
def test_missing_markers_in_a_column_of_numbers_are_missing(kind: str, marker: str, tmp_path: Path) -> None:
    columns = {"x": _with([marker]), "y": [str(i % 2) for i in range(ROWS)]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    source = {
        "csv": lambda: _csv(tmp_path / "a.csv", columns),
        "parquet": lambda: tmp_path / "a.parquet",
        "arrow": lambda: pa.table(columns),
        "dict": lambda: columns,
    }[kind]()
    table = sl.read(source)
    assert (table.schema["x"].kind, table.schema["x"].missing) == ("numeric", "value")
    assert table.counts(["x"])[0].cells[-1] == ROWS // 25
    note = next(note for note in table.notes() if "'x'" in note)
    assert "12 cells" in note
    assert "set na= (--na)" in note


def test_a_column_of_text_keeps_its_question_marks(data: Path, tmp_path: Path) -> None:
    duckdb.sql(f"COPY (FROM '{data / 'adult.parquet'}') TO '{tmp_path / 'adult.csv'}'")
    table = sl.read(tmp_path / "adult.csv", columns=["workclass", "age"])
    assert "?" in table.schema["workclass"].values
    assert table.notes() == []
    told = sl.read(tmp_path / "adult.csv", columns=["workclass", "age"], na="?")
    assert "?" not in told.schema["workclass"].values
    assert told.schema["workclass"].missing == "value"


@pytest.mark.parametrize("kind", ["csv", "arrow"])
def test_what_is_missing_can_be_said(kind: str, tmp_path: Path) -> None:
    columns = {"x": [str(i % 50) if i % 10 else "-9" for i in range(ROWS)], "y": list("ab") * (ROWS // 2)}
    typed = pa.table({"x": [int(cell) for cell in columns["x"]], "y": columns["y"]})
    source = _csv(tmp_path / "a.csv", columns) if kind == "csv" else typed
    assert sl.read(source).schema["x"].missing == "absent"
    told = sl.read(source, na=["-9"])
    assert told.schema["x"].missing == "value"
    assert told.counts(["x"])[0].cells[-1] == ROWS // 10
    with pytest.raises(sl.InputError, match="`na` must be text"):
        sl.read(source, na=[9])  # type: ignore[list-item]


def test_a_late_text_value_names_its_row_and_does_not_block_the_file(tmp_path: Path) -> None:
    cells = [str(i % 97) for i in range(30_000)]
    cells[29_998] = "Jane Doe"
    columns = {"x": cells, "y": [str(i % 2) for i in range(30_000)]}
    path = _csv(tmp_path / "late.csv", columns)
    with pytest.raises(
        sl.InputError, match=r"column 'x' of .*late.csv holds numbers.* in line 30000;"
    ) as told:
        sl.read(path)
    assert "Jane" not in str(told.value)
    assert "--kind x=categorical" in str(told.value)
    assert sl.read(path, kinds={"x": "categorical"}, max_values=200).schema["x"].size == 98
    assert sl.read(path, na="Jane Doe").schema["x"].kind == "numeric"
    assert sl.read(path, drop=["x"]).schema.names == ("y",)
    with pytest.raises(sl.InputError, match=r"column 'x' of the dict.* in row 29999;"):
        sl.read(columns)


def test_a_decimal_column_with_a_late_marker_or_word(tmp_path: Path) -> None:
    cells = [f"{i % 997}.5" for i in range(30_000)]
    cells[29_000] = "NA"
    path = _csv(tmp_path / "a.csv", {"x": cells, "y": [str(i % 2) for i in range(30_000)]})
    table = sl.read(path)
    assert (table.source.columns["x"], table.schema["x"].missing) == ("DOUBLE", "value")
    path = _csv(tmp_path / "b.csv", {"x": [*cells[:-1], "odd"], "y": [str(i % 2) for i in range(30_000)]})
    with pytest.raises(sl.InputError, match="line 30001"):
        sl.read(path)


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "2", "A", "B"], "VARCHAR"),  # a few codes, some of them letters
        (["0012", "0345", "7000"], "VARCHAR"),  # leading zeros: codes, not quantities
        (["1", "+2", " 3"], "BIGINT"),
        (["1", "2.5", "3e2"], "DOUBLE"),
        (["99999999999999999999", "1", "2"], "DOUBLE"),
        (["true", "False"], "BOOLEAN"),
        (["yes", "no"], "VARCHAR"),
        (["2020-01-31", "2021-02-28"], "DATE"),
        (["31/01/2020", "28/02/2021"], "DATE"),
        (["01/31/2020", "02/28/2021"], "DATE"),
        (["2020-01-31", "2021-02-28 10:00"], "TIMESTAMP"),
        (["2020-01-31T10:00:00Z", "2021-02-28T11:00:00+02:00"], "TIMESTAMP WITH TIME ZONE"),
        (["10:30", "23:59:59"], "TIME"),
        (["12", "12a", "7b", *(f"{i}c" for i in range(40))], "VARCHAR"),
    ],
)
def test_text_is_read_as_what_it_stands_for_in_every_format(
    cells: list[str], kind: str, tmp_path: Path
) -> None:
    columns = {"x": [cells[i % len(cells)] for i in range(ROWS)], "y": list("ab") * (ROWS // 2)}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    for source in (_csv(tmp_path / "a.csv", columns), tmp_path / "a.parquet", columns):
        table = sl.read(source)
        assert table.source.columns["x"] == kind
        assert table.schema == sl.read(columns).schema


@pytest.mark.parametrize("name", ["adult", "nyse_fundamentals", "nyc_taxi_sample", "simfin_us_balance"])
def test_csv_and_parquet_of_one_table_give_one_schema(name: str, data: Path, tmp_path: Path) -> None:
    path = data / f"{name}.parquet"
    duckdb.sql(f"COPY (FROM '{path}') TO '{tmp_path / 'a.csv'}'")
    assert sl.read(tmp_path / "a.csv").schema == sl.read(path).schema


def test_a_text_file_is_scanned_once(tmp_path: Path, monkeypatch) -> None:
    columns = {f"x{i}": _with(["?"]) for i in range(20)}
    scans = []
    ask = LocalSource._opened
    monkeypatch.setattr(LocalSource, "_opened", lambda self: scans.append(self.store) or ask(self))
    table = sl.read(_csv(tmp_path / "a.csv", columns))
    table.pair_counts()
    assert len([store for store in scans if store is None]) == 1  # for the names of the columns


def test_what_was_kept_on_disk_goes_with_the_table(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "kept"))
    monkeypatch.setattr("sidelight.sources.files.LARGE", 10)
    (tmp_path / "kept").mkdir()
    path = _csv(tmp_path / "a.csv", {"x": _with(["?"]), "y": list("ab") * (ROWS // 2)})
    table = sl.read(path)
    assert list((tmp_path / "kept").rglob("rows.duckdb"))
    assert table.counts(["x", "y"])[0].total == ROWS
    del table
    assert list((tmp_path / "kept").iterdir()) == []
    with pytest.raises(sl.InputError):
        sl.read(_csv(tmp_path / "b.csv", {"x": ["1", "2"], "y": ["1", "1"]}), require=["y"])
    assert list((tmp_path / "kept").iterdir()) == []


def test_markers_are_written_as_they_are_compared() -> None:
    assert all(marker == marker.strip().lower() for marker in MARKERS)


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(
        st.sampled_from([*range(12), 0.5, 7.25, -3, float("inf"), None]), min_size=4, max_size=120
    ),
    bins=st.integers(2, 7),
    copies=st.sampled_from([1, 5]),
)
def test_masses_and_quantiles_are_those_of_plain_sorting(values, bins: int, copies: int) -> None:
    column = [None if value is None else float(value) for value in values * copies]
    source = open_object(pa.table({"x": pa.array(column, pa.float64())}))
    source.foresee(["x"], bins)
    finite = sorted(value for value in column if value is not None and np.isfinite(value))
    masses = sorted({value for value in finite if finite.count(value) * bins >= len(finite)})
    others = [value for value in finite if value not in masses]
    assert list(source.masses("x")) == masses
    cuts = (
        duckdb.connect()
        .execute(
            "SELECT quantile_disc(v, ?) FROM unnest(?::DOUBLE[]) t(v)",
            [[i / bins for i in range(1, bins)], others],
        )
        .fetchone()[0]
    )
    assert list(source.quantiles("x")) == (cuts or [])
    for mass in masses:
        above = [value for value in column if value is not None and value > mass]
        assert source.following("x", mass) == (min(above) if above else None)
