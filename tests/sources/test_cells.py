"""What text stands for: missing markers, numbers, dates, codes and words, the same from every format."""

from __future__ import annotations

from decimal import Decimal
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
from sidelight.sources.local import LocalSource
from sidelight.sources.memory import open_object
from sidelight.sources.sql import scratch

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
    assert "set na='' (--na '')" in note


def test_a_column_of_text_keeps_its_question_marks(data: Path, tmp_path: Path) -> None:
    duckdb.sql(f"COPY (FROM '{data / 'adult.parquet'}') TO '{tmp_path / 'adult.csv'}'")
    table = sl.read(tmp_path / "adult.csv", columns=["workclass", "age"])
    assert "?" in table.schema["workclass"].values
    assert table.notes() == []
    told = sl.read(tmp_path / "adult.csv", columns=["workclass", "age"], na="?")
    assert "?" not in told.schema["workclass"].values
    assert told.schema["workclass"].missing == "value"


def test_a_missing_cell_can_be_named_beside_numbers_with_fractions() -> None:
    columns = {"x": [-9.0 if i % 10 == 0 else i / 7 for i in range(ROWS)], "y": list("ab") * (ROWS // 2)}
    for na in ("refused", "inf", "nan"):
        assert sl.read(columns, na=na).schema["x"].missing == "absent"
    assert sl.read(columns, na="-9").counts(["x"])[0].cells[-1] == ROWS // 10


@pytest.mark.parametrize("kind", ["csv", "arrow"])
def test_what_is_missing_can_be_said(kind: str, tmp_path: Path) -> None:
    columns = {"x": [str(i % 50) if i % 10 else "-9" for i in range(ROWS)], "y": list("ab") * (ROWS // 2)}
    typed = pa.table({"x": [int(cell) for cell in columns["x"]], "y": columns["y"]})
    source = _csv(tmp_path / "a.csv", columns) if kind == "csv" else typed
    assert sl.read(source).schema["x"].missing == "absent"
    told = sl.read(source, na=["-9"])
    assert told.schema["x"].missing == "value"
    assert told.counts(["x"])[0].cells[-1] == ROWS // 10
    assert told.schema["y"].values == ("a", "b")
    with pytest.raises(sl.InputError, match="`na` must be text"):
        sl.read(source, na=[9])  # type: ignore[list-item]


def test_naming_a_missing_cell_leaves_the_usual_ones_missing(tmp_path: Path) -> None:
    cells = ["refused" if i == 250 else "NA" if i % 10 == 0 else str(i % 50) for i in range(ROWS)]
    words = ["none" if i % 3 else "some" for i in range(ROWS)]
    path = _csv(tmp_path / "a.csv", {"shares & more": cells, "y": words})
    with pytest.raises(sl.InputError, match="--kind 'shares & more=categorical'"):
        sl.read(path)
    table = sl.read(path, na="refused")
    assert table.schema["shares & more"].kind == "numeric"
    assert table.counts(["shares & more"])[0].cells[-1] == ROWS // 10
    assert table.schema["y"].values == ("none", "some")
    kept = sl.read(path, na="", kinds={"shares & more": "categorical"}, max_values=100)
    assert {"NA", "refused"} <= set(kept.schema["shares & more"].values)


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
        (["99999999999999999999", "1", "2"], "HUGEINT"),
        (["9" * 40, "1", "2"], "DOUBLE"),
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
    sources = _csv(tmp_path / "a.csv", columns), tmp_path / "a.parquet", columns
    read = [sl.read(source) for source in sources]
    assert [table.source.columns["x"] for table in read] == [kind] * 3
    assert read[0].schema == read[1].schema == read[2].schema


@pytest.mark.parametrize("name", ["adult", "nyse_fundamentals", "nyc_taxi_sample", "simfin_us_balance"])
def test_csv_and_parquet_of_one_table_give_one_schema(name: str, data: Path, tmp_path: Path) -> None:
    path = data / f"{name}.parquet"
    duckdb.sql(f"COPY (FROM '{path}') TO '{tmp_path / 'a.csv'}'")
    assert sl.read(tmp_path / "a.csv").schema == sl.read(path).schema


@pytest.mark.parametrize(
    "column",
    [
        pa.array(np.arange(ROWS) / 70, pa.float32()),
        pa.array(np.arange(ROWS) % 3 / 10, pa.float32()),
        pa.array([Decimal(i % 4) / 2 for i in range(ROWS)], pa.decimal128(9, 2)),
        pa.array([Decimal(i) / 4 for i in range(ROWS)], pa.decimal128(9, 2)),
        pa.array([Decimal(i) for i in range(ROWS)], pa.decimal128(20, 0)),
        pa.array([2**63 + i for i in range(ROWS)], pa.uint64()),
        pa.array([2**63 + i % 5 for i in range(ROWS)], pa.uint64()),
    ],
    ids=["short", "few short", "few decimals", "decimals", "whole decimals", "wide ids", "few wide ids"],
)
def test_csv_and_parquet_of_every_kind_of_number_give_one_schema(column: pa.Array, tmp_path: Path) -> None:
    rows = pa.table({"x": column, "y": list("ab") * (ROWS // 2)})
    pq.write_table(rows, tmp_path / "a.parquet")
    duckdb.sql(f"COPY (FROM '{tmp_path / 'a.parquet'}') TO '{tmp_path / 'a.csv'}'")
    text, typed = sl.read(tmp_path / "a.csv"), sl.read(tmp_path / "a.parquet")
    assert text.schema == typed.schema
    assert [item.kind for item in text.set_aside] == [item.kind for item in typed.set_aside]
    names = [[name] for name in text.schema.names]
    for ours, theirs in zip(text.counts(*names), typed.counts(*names), strict=True):
        assert np.array_equal(ours.cells, theirs.cells)


def test_labels_of_decimals_in_older_plans_are_still_found() -> None:
    rows = {"x": pa.array([Decimal(i % 3) / 2 for i in range(ROWS)], pa.decimal128(9, 2))}
    schema = sl.Schema((sl.categorical("x", ["0.00", "0.50", "1.00"]),))
    assert sl.read(pa.table(rows), schema=schema).counts(["x"])[0].cells.tolist() == [100, 100, 100]


@pytest.mark.parametrize("longer", [3, 60])
def test_rows_before_longer_rows_are_never_skipped(longer: int, tmp_path: Path) -> None:
    short, long = ["1,a", "2,b"] * 50, ["1,a,x", "2,b,y"] * longer
    (tmp_path / "a.csv").write_text("\n".join(["n,w", *short, *long]) + "\n")
    with pytest.raises(sl.InputError, match="rows of different lengths: those from line 102"):
        sl.read(tmp_path / "a.csv")


def test_a_title_before_the_table_is_skipped_and_a_note_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("\n".join(["Members of 2020", "n,w", *["1,a", "2,b"] * 50]) + "\n")
    table = sl.read(tmp_path / "a.csv")
    assert (table.schema.names, len(table)) == (("n", "w"), 100)
    assert table.notes() == ["a.csv: the table begins in line 2; what comes before was skipped."]


def test_a_title_in_one_of_several_files_costs_no_row(tmp_path: Path) -> None:
    rows = ["n,w", *["1,a", "2,b"] * 50]
    (tmp_path / "1.csv").write_text("\n".join(["Members of 2020", *rows]) + "\n")
    (tmp_path / "2.csv").write_text("\n".join(rows) + "\n")
    with pytest.raises(sl.InputError, match="2.csv has other lines before its table than"):
        sl.read(tmp_path)
    (tmp_path / "2.csv").write_text("\n".join(["Members of 2021", *rows]) + "\n")
    assert len(sl.read(tmp_path)) == 200


def test_a_text_file_is_scanned_once(tmp_path: Path, monkeypatch) -> None:
    columns = {f"x{i}": _with(["?"]) for i in range(20)}
    scans = []
    for name in ("opened", "_own"):
        ask = getattr(LocalSource, name)
        monkeypatch.setattr(LocalSource, name, lambda self, ask=ask: scans.append(self.scan) or ask(self))
    table = sl.read(_csv(tmp_path / "a.csv", columns))
    table.pair_counts()
    assert len([scan for scan in scans if scan]) == 2  # for names and first rows


def test_what_was_kept_on_disk_goes_with_the_table(tmp_path: Path, monkeypatch) -> None:
    scratch()  # has a folder of its own
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "kept"))
    monkeypatch.setattr("sidelight.sources.scans._SMALL", 5)
    monkeypatch.setattr("sidelight.sources.scans.LARGE", 10)
    (tmp_path / "kept").mkdir()
    path = _csv(tmp_path / "a.csv", {"x": _with(["?"]), "y": list("ab") * (ROWS // 2)})
    table = sl.read(path)
    assert list((tmp_path / "kept").rglob("rows.duckdb"))
    assert all(folder.stat().st_mode & 0o077 == 0 for folder in (tmp_path / "kept").iterdir())
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
    summary = source.summary("x", bins)
    finite = sorted(value for value in column if value is not None and np.isfinite(value))
    masses = sorted({value for value in finite if finite.count(value) * bins >= len(finite)})
    others = [value for value in finite if value not in masses]
    assert list(summary.masses) == masses
    steps = ", ".join(repr(i / bins) for i in range(1, bins))  # literals, which DuckDB takes as decimals
    query = f"SELECT quantile_disc(v, [{steps}]) FROM unnest(?::DOUBLE[]) t(v)"
    cuts = duckdb.connect().execute(query, [others]).fetchone()[0]
    assert list(summary.cuts) == (cuts or [])
    for mass in masses:
        above = [value for value in column if value is not None and value > mass]
        assert summary.following[mass] == (min(above) if above else None)


def test_columns_are_typed_while_a_file_is_read_and_strays_are_found_out(tmp_path: Path) -> None:
    """What the first rows look like decides how a column is read; a later cell of another form undoes it."""
    late = [str(i) for i in range(400)]
    columns = {
        "whole": late,
        "fraction_late": [*late[:-1], "5.7"],
        "code_late": [*late[:-1], "007"],
        "marker_late": [*late[:-1], "NA"],
        "gap": [*late[:-1], ""],
        "truth": ["true", "false"] * 200,
        "t_late": [*(["true", "false"] * 199), "true", "t"],
    }
    table = sl.read(_csv(tmp_path / "a.csv", columns))
    plain = sl.read(pa.table({name: [cell or None for cell in cells] for name, cells in columns.items()}))
    assert table.schema == plain.schema
    assert isinstance(table.source, LocalSource)
    kinds = {name: table.source.columns[name] for name in columns}
    assert kinds == {
        "whole": "BIGINT", "fraction_late": "DOUBLE", "code_late": "VARCHAR", "marker_late": "BIGINT",
        "gap": "BIGINT", "truth": "BOOLEAN", "t_late": "VARCHAR",
    }  # fmt: skip
