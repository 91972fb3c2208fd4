"""Rows on this machine, behind DuckDB: files are streamed, never held whole in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from sidelight.foundation.errors import InputError, check_choice, invalid
from sidelight.foundation.files import REPORTS_KEY, file_name
from sidelight.schema import Schema
from sidelight.sources.dates import ISO
from sidelight.sources.faults import not_columns, reading
from sidelight.sources.sql import literal, number, present, quoted, where_complete

_SUFFIXES = {
    ".csv": "csv",
    ".csv.gz": "csv",
    ".tsv": "tsv",
    ".tsv.gz": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_serial = count()


@dataclass(frozen=True)
class LocalSource:
    """Something DuckDB can scan again and again.

    Attributes:
        start: opens the rows anew, so that one scan does not disturb another. A relation of the caller's own
            connection can only be scanned once at a time.
        label: what to call it in messages.
        arrow: the rows, where they are an Arrow table in memory.
        notes: what a reader must know about how the rows were taken.
        view: its name in queries.
    """

    start: Callable[[], duckdb.DuckDBPyRelation | None]
    label: str
    arrow: pa.Table | None = None
    notes: tuple[str, ...] = ()
    view: str = field(default_factory=lambda: f"sidelight_source_{next(_serial)}")

    @cached_property
    def columns(self) -> dict[str, str]:
        """Every column's name and DuckDB type."""
        with reading(self.label):
            relation = self._opened()
            return dict(zip(relation.columns, map(_type_name, relation.types), strict=True))

    def rows(self, select: str, rest: str = "", column: str = "") -> list[tuple[Any, ...]]:
        """Run `SELECT select FROM source rest` and return its (few) rows; an error names the `column`."""
        with reading(self.label, column, self.columns[column] if column else ""):
            return self._query(select, rest).fetchall()

    def batches(self, select: str, rest: str, rows: int) -> Iterator[pa.RecordBatch]:
        """Run `SELECT select FROM source rest` and stream its rows, so many at a time."""
        with reading(self.label), self.reader(select, rest, rows) as reader:
            yield from reader

    def reader(self, select: str, rest: str = "", rows: int = 1 << 16) -> pa.RecordBatchReader:
        """Return a reader of the rows of `SELECT select FROM source rest`."""
        return self._query(select, rest).to_arrow_reader(rows)

    def profile(self, columns: Sequence[str]) -> tuple[int, list[tuple[int, int]]]:
        """Return the number of rows and, for each column, its values and about how many are distinct."""
        values = [present(column, self.columns[column]) for column in columns]
        parts = [f"count({value}), approx_count_distinct({value})" for value in values]
        figures = self.rows(", ".join(["count(*)", *parts]))[0]
        return figures[0], list(zip(figures[1::2], figures[2::2], strict=True))

    def distinct(self, column: str) -> int:
        """Return exactly how many distinct values a column has."""
        return int(self.rows(f"count(DISTINCT {present(column, self.columns[column])})", "", column)[0][0])

    def frequent(self, column: str, most: int) -> list[str]:
        """Return the labels of the `most` most frequent values; of equally frequent ones the first."""
        value = present(column, self.columns[column])
        value = f"{value}::VARCHAR" if self.columns[column] == "ENUM" else value
        found = self.rows(
            f"any_value({value})::VARCHAR",
            f"WHERE {value} IS NOT NULL GROUP BY {value} ORDER BY count(*) DESC, {value} LIMIT {most}",
            column,
        )
        return [row[0] for row in found]

    def dates(self, column: str) -> int:
        """Return how many values of a column of text are dates in ISO form."""
        name = quoted(column)
        is_date = f"regexp_full_match({name}, {literal(ISO)}) AND TRY_CAST({name} AS TIMESTAMP) IS NOT NULL"
        return int(self.rows(f"count(*) FILTER ({is_date})", "", column)[0][0])

    def ends(self, column: str) -> tuple[float | None, float | None]:
        """Return the least and the greatest finite number; None where there is none."""
        value = number(column, self.columns[column])
        low, high = self.rows(f"min({value}), max({value})", f"WHERE isfinite({value})", column)[0]
        return low, high

    def masses(self, column: str, bins: int) -> list[float]:
        """Return, in order, the finite numbers that at least one in `bins` of them equals."""
        value = number(column, self.columns[column])
        found = self.rows(
            f"{value}, count(*), sum(count(*)) OVER ()",
            f"WHERE isfinite({value}) GROUP BY 1 QUALIFY count(*) * {bins} >= sum(count(*)) OVER ()",
            column,
        )
        return sorted(float(row[0]) for row in found)

    def quantiles(self, column: str, bins: int, apart: Sequence[float]) -> list[float]:
        """Return the numbers that cut the finite ones, some set apart, into equally full bins."""
        value = number(column, self.columns[column])
        others = f"AND {value} NOT IN ({', '.join(repr(mass) for mass in apart)})" if apart else ""
        steps = ", ".join(repr(i / bins) for i in range(1, bins))
        rest = f"WHERE isfinite({value}) {others}"
        cuts = self.rows(f"quantile_disc({value}, [{steps}])", rest, column)[0][0]
        return [float(cut) for cut in cuts or ()]

    def following(self, column: str, above: float) -> float | None:
        """Return the least number above another."""
        value = number(column, self.columns[column])
        least: float | None = self.rows(f"min({value})", f"WHERE {value} > {above!r}", column)[0][0]
        return least

    def reach(self, column: str) -> tuple[float, float]:
        """Return the least and the greatest number, infinite ones among them."""
        value = number(column, self.columns[column])
        low, high = self.rows(f"min({value}), max({value})", "", column)[0]
        return low, high

    def complete(self, schema: Schema) -> int:
        """Return the number of rows that lack no value whose absence drops its record."""
        return int(self.rows("count(*)", where_complete(schema, self.columns))[0][0])

    def _query(self, select: str, rest: str) -> duckdb.DuckDBPyRelation:
        return _present(
            self._opened().query(self.view, f"SELECT {select} FROM {self.view} {rest}"), self.label
        )

    def _opened(self) -> duckdb.DuckDBPyRelation:
        return _present(self.start(), self.label)


def _present(relation: duckdb.DuckDBPyRelation | None, label: str) -> duckdb.DuckDBPyRelation:
    if relation is None:
        raise InputError(f"{label} returns no rows; it must be a SELECT.")
    return relation


def _type_name(kind: Any) -> str:
    """Return a type's name without its parameters: an enumeration's labels are data."""
    return {"enum": "ENUM", "decimal": "DECIMAL"}.get(kind.id, str(kind))


def open_path(path: str | Path, encoding: str = "utf-8") -> LocalSource:
    """Open a CSV, TSV or Parquet file, a glob of them, or a folder of files of one format."""
    text = str(path)
    pattern, suffix = locate(text)
    check_choice("encoding", encoding, ("utf-8", "utf-16", "latin-1"))
    options = [literal(pattern)]
    if suffix != "parquet":
        options.append(f"encoding = {literal(encoding)}")
    if suffix == "tsv":
        options.append(r"delim = '\t'")
    if suffix == "parquet":
        refuse_reports(pattern, text)
    reader = "read_parquet" if suffix == "parquet" else "read_csv"
    source = _scanning(reader, options, text)
    words = [] if suffix == "parquet" else _words_for_truth(source, reader, options)
    if words:
        source = _scanning(reader, [*options, _as_text(words)], text)
    only = next(iter(source.columns))
    if len(source.columns) == 1 and any(sign in only for sign in ",;|\t"):
        raise InputError(
            f"{text} has rows of different lengths, or an unknown separator; use commas or tabs."
        )
    notes = () if suffix == "parquet" else _header_notes(source, reader, options)
    return replace(source, notes=notes) if notes else source


def refuse_reports(pattern: str, label: str) -> None:
    """Raise if one of the Parquet files holds reports: they would be taken for what people really are."""
    query = f"SELECT file_name FROM parquet_kv_metadata({literal(pattern)}) WHERE key = ?::BLOB LIMIT 1"
    with reading(label):
        found = duckdb.connect().execute(query, [REPORTS_KEY]).fetchone()
    if found is not None:
        raise _are_reports(found[0], "is a file")


def _are_reports(label: str, noun: str) -> InputError:
    return InputError(
        f"{label} {noun} of reports, not of records; name the records they were collected from, or take the "
        "reports to `sidelight estimate`."
    )


def _header_notes(source: LocalSource, reader: str, options: list[str]) -> tuple[str, ...]:
    """Say which columns of a text file were given a name: those without one, and those with another's."""
    names = list(source.columns)
    if names == [f"column{place}" for place in range(len(names))]:
        name = file_name(source.label)
        return (f"{name} has no header row, so its columns are called column0, column1 and so on.",)
    lowered = {name.lower() for name in names}
    if not any(_may_be_made_up(name, place, lowered) for place, name in enumerate(names)):
        return ()
    plain = _scanning(reader, [*options, "header = false", "all_varchar = true"], source.label)
    first = plain.rows("*", "LIMIT 1")
    header = first[0] if first and len(first[0]) == len(names) else names
    return _rename_notes(header, names)


def _may_be_made_up(name: str, place: int, lowered: set[str]) -> bool:
    """Whether DuckDB may have made the name up: columnN where there was none, a_1 where a was taken."""
    stem, _, number = name.lower().rpartition("_")
    return name == f"column{place}" or (number.isdigit() and stem in lowered)


def _rename_notes(header: Sequence[str | None], names: Sequence[str]) -> tuple[str, ...]:
    """Say which names of columns are not those of the header."""
    notes = []
    for place, (given, name) in enumerate(zip(header, names, strict=True), start=1):
        if not given:
            notes.append(f"Column {place} has no name in the header and is called {name!r}.")
        elif given.strip() != name:
            taken = f"the name {given.strip()!r} is taken (capitals do not count)"
            notes.append(f"Column {place} is called {name!r}, since {taken}.")
    return tuple(notes)


def _scanning(reader: str, options: list[str], label: str) -> LocalSource:
    root = duckdb.connect()
    return LocalSource(lambda: root.cursor().sql(f"SELECT * FROM {reader}({', '.join(options)})"), label)


def _as_text(names: list[str]) -> str:
    types = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in names)
    return f"types = {{{types}}}"


def _words_for_truth(source: LocalSource, reader: str, options: list[str]) -> list[str]:
    """Return the columns that DuckDB takes for truth values though their words are others, as yes and no."""
    names = [name for name, kind in source.columns.items() if kind == "BOOLEAN"]
    if not names:
        return []
    plain = _scanning(reader, [*options, _as_text(names)], source.label)
    same = ", ".join(f"bool_and(lower({quoted(name)}) IN ('true', 'false'))" for name in names)
    return [name for name, kept in zip(names, plain.rows(same)[0], strict=True) if kept is False]


def locate(text: str) -> tuple[str, str]:
    """Return a glob DuckDB can read and the format of its files."""
    if not text.strip():
        raise InputError("the path is empty; name a file, a glob or a folder.")
    path = Path(text)
    if path.is_dir():
        return _locate_in_folder(path)
    if not any(sign in text for sign in "*?[") and not path.exists():
        raise InputError(f"there is no file {text}; check the path.")
    suffix = format_of(text)
    if not suffix:
        raise InputError(f"{text} must end in one of {', '.join(_SUFFIXES)}, so that its format is known.")
    if path.is_file() and path.stat().st_size == 0:
        raise InputError(f"{text} is empty; it needs a header and at least two rows.")
    return text, suffix


def format_of(text: str) -> str:
    """Return the format of a file by the end of its name; "" where it tells none."""
    return next((kind for end, kind in _SUFFIXES.items() if text.lower().endswith(end)), "")


def _locate_in_folder(folder: Path) -> tuple[str, str]:
    """Return the glob of a folder's files, sub-folders included, if they are all of one format."""
    found = {end for end in _SUFFIXES for file in folder.rglob(f"*{end}") if file.is_file()}
    if not found:
        raise InputError(f"the folder {folder} holds no .parquet, .csv or .tsv file.")
    if len(found) > 1:
        raise InputError(
            f"the folder {folder} holds files of several kinds ({', '.join(sorted(found))}); name a glob."
        )
    end = found.pop()
    return str(folder / "**" / f"*{end}"), _SUFFIXES[end]


def open_object(rows: object) -> LocalSource:
    """Open a DuckDB relation, an Arrow table, or anything that offers the Arrow stream interface."""
    if isinstance(rows, duckdb.DuckDBPyRelation):
        relation = rows
        return LocalSource(lambda: relation, "the DuckDB relation")
    if isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    if type(rows).__name__ == "LazyFrame" and hasattr(rows, "collect"):
        rows = rows.collect()
    if not hasattr(rows, "__arrow_c_stream__"):
        raise invalid(
            "source",
            "a path, an Arrow table, a DataFrame, a DuckDB relation or anything with an Arrow stream",
            type(rows).__name__,
        )
    label = f"the {type(rows).__name__}"
    table = _as_arrow(rows, label)
    if REPORTS_KEY in (table.schema.metadata or {}):
        raise _are_reports(label, "is a table")
    source = LocalSource(_opener(table), label, table)
    if len({name.lower() for name in table.column_names}) == table.num_columns:
        return source
    return replace(source, notes=_rename_notes(table.column_names, list(source.columns)))


def _as_arrow(rows: object, label: str) -> pa.Table:
    if isinstance(rows, pa.Table):
        return rows
    try:
        return pa.table(rows)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise not_columns(label, error) from None


def _opener(table: pa.Table) -> Callable[[], duckdb.DuckDBPyRelation]:
    root = duckdb.connect()
    return lambda: root.cursor().from_arrow(table)


def open_query(query: str, connection: Any) -> LocalSource:
    """Open the result of a query on a DuckDB connection or any DB-API 2.0 connection."""
    if isinstance(connection, duckdb.DuckDBPyConnection):
        return LocalSource(lambda: connection.sql(query), "the query")
    if not hasattr(connection, "cursor"):
        raise invalid("connection", "a DuckDB or DB-API 2.0 connection", type(connection).__name__)
    cursor = connection.cursor()
    try:
        cursor.execute(query)
    except Exception as error:
        raise InputError(
            f"the query cannot be run: {type(error).__name__}; check it against the database."
        ) from error
    if cursor.description is None:
        raise InputError("the query returns no rows; it must be a SELECT.")
    names = [column[0] for column in cursor.description]
    if len(set(names)) < len(names):
        raise InputError("the query returns two columns of the same name; rename one with AS.")
    rows = cursor.fetchall()
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    try:
        table = pa.table({name: list(values) for name, values in zip(names, columns, strict=True)})
    except pa.ArrowException:
        raise InputError("the query returns a column with values of several types; cast it to one.") from None
    return LocalSource(_opener(table), "the query")
