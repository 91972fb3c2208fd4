"""Files on this machine: which formats there are, how each is opened, and what is said of the others."""

from __future__ import annotations

import gzip
import re
import shutil
import sqlite3
import sys
import tempfile
import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import duckdb
import pyarrow as pa

from sidelight.foundation.errors import InputError, check_choice
from sidelight.foundation.files import REPORTS_KEY, file_name
from sidelight.foundation.modules import require
from sidelight.sources.cells import HEAD, REAL, Form, Stated, looks_like, settle
from sidelight.sources.faults import are_reports, reading
from sidelight.sources.local import LocalSource, columns_of, kept, of_arrow, open_query, rename_notes
from sidelight.sources.sql import literal, quoted
from sidelight.sources.store import LARGE, Store, connect

_TEXTS = {"csv": (".csv",), "tsv": (".tsv", ".tab"), "json": (".json", ".ndjson", ".jsonl")}
_SUFFIXES = {
    **{end + zipped: kind for kind, ends in _TEXTS.items() for end in ends for zipped in ("", ".gz")},
    ".parquet": "parquet", ".pq": "parquet",
    ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
    ".xlsx": "excel", ".xlsm": "excel",
    ".duckdb": "database", ".ddb": "database", ".db": "database",
    ".sqlite": "database", ".sqlite3": "database",
}  # fmt: skip
_ELSEWHERE = {
    ".xls": "save it as .xlsx or .csv",
    ".ods": "save it as .xlsx or .csv",
    ".sav": "read it with pandas.read_spss and hand over the DataFrame, or save it as .csv",
    ".dta": "read it with pandas.read_stata and hand over the DataFrame, or save it as .csv",
    ".sas7bdat": "read it with pandas.read_sas and hand over the DataFrame, or save it as .csv",
    ".orc": "read it with pyarrow.orc.read_table and hand over the table",
    ".zip": "unpack it first",
    ".txt": "name it .csv or .tsv, by its separator",
}
"""Formats that are not read, and the way to do it all the same."""
_FOLDERS = ("csv", "tsv", "json", "parquet")
STANDARD_INPUT = "-"
_KEPT = "sidelight_rows"
_SQLITE_TABLES = (
    "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY 1"
)
_DUCKDB_TABLES = "SELECT table_name FROM information_schema.tables ORDER BY 1"
_GZIP_RATIO = 8
_SAMPLE = "sample_size = 2048"
_WRITTEN = "Delimiter, Quote, Escape, SkipRows, HasHeader, Columns"
_FEW_VALUES = 1 << 24
_ROWS_ALIKE = 3
"""So many skipped lines with equally many separators are rows, not a title."""


def open_path(path: str | Path, encoding: str = "utf-8", sql: str | None = None) -> LocalSource:
    """Open a file, a glob of them, a folder of files of one format, or standard input.

    Args:
        path: where it is; "-" for standard input.
        encoding: of a text file.
        sql: a SELECT whose rows are taken; it names the tables of a database or the sheets of a workbook, and
            `data` where the file is a single table.
    """
    text = str(path)
    check_choice("encoding", encoding, ("utf-8", "utf-16", "latin-1"))
    pattern, kind = _arrived() if text == STANDARD_INPUT else locate(text)
    label = "standard input" if text == STANDARD_INPUT else text
    if kind == "database":
        return _open_database(Path(pattern), label, sql)
    if kind == "excel":
        return _chosen(_sheets(Path(pattern), label), label, sql)
    source = _opened(pattern, kind, label, encoding)
    return source if sql is None else _queried(source, sql)


def _opened(pattern: str, kind: str, label: str, encoding: str) -> LocalSource:
    """Open files that are one table."""
    if kind == "parquet":
        refuse_reports(pattern, label)
        source = _Scanned(pattern, label, "read_parquet", ()).source()
        return source if _is_small(pattern, label) else replace(source, loader=None)
    if kind == "arrow":
        return of_arrow(_ipc(Path(pattern), label), label)
    if kind == "json":
        return _Scanned(pattern, label, "read_json", ("sample_size = -1",)).source()
    return _delimited(pattern, label, encoding, [r"delim = '\t'"] if kind == "tsv" else [])


def refuse_reports(pattern: str, label: str) -> None:
    """Raise if one of the Parquet files holds reports: they would be taken for what people really are."""
    query = f"SELECT file_name FROM parquet_kv_metadata({literal(pattern)}) WHERE key = ?::BLOB LIMIT 1"
    with reading(label):
        found = connect().execute(query, [REPORTS_KEY]).fetchone()
    if found is not None:
        raise are_reports(found[0], "is a file")


def _is_small(pattern: str, label: str) -> bool:
    """Whether Parquet files have so few values that keeping them is faster than scanning them often."""
    metadata = f"SELECT sum(num_rows) FROM parquet_file_metadata({literal(pattern)})"
    columns = (
        f"SELECT count(*) FROM parquet_schema({literal(pattern)}) WHERE type IS NOT NULL GROUP BY file_name"
    )
    with reading(label):
        rows = connect().execute(metadata).fetchall()[0][0]
        return int(rows) * int(connect().execute(f"{columns} LIMIT 1").fetchall()[0][0]) <= _FEW_VALUES


@dataclass(frozen=True)
class _Scanned:
    """Files that are read once, when the first question comes.

    Attributes:
        pattern: the glob that DuckDB reads.
        label: what to call them.
        reader: DuckDB's function.
        options: its arguments.
        before: how many lines come before the first row; None where rows are no lines.
        stating: returns arguments that read the named columns as doubles; they fail if a cell is none.
    """

    pattern: str
    label: str
    reader: str
    options: tuple[str, ...]
    before: int | None = None
    stating: Callable[[frozenset[str]], tuple[str, ...]] | None = None

    def source(self, notes: tuple[str, ...] = ()) -> LocalSource:
        """Return the source, of which only the names of the columns are read yet."""
        root = connect()
        return LocalSource(
            lambda: root.cursor().sql(f"SELECT * FROM {self.scan()}"),
            self.label,
            notes=notes,
            loader=lambda columns: self.load(columns, notes),
        )

    def scan(self, pattern: str = "", options: tuple[str, ...] = ()) -> str:
        """Return SQL for the rows of all files, or of one."""
        return f"{self.reader}({', '.join([literal(pattern or self.pattern), *(options or self.options)])})"

    def load(self, columns: Sequence[str], notes: tuple[str, ...]) -> LocalSource:
        """Read the named columns into a store; text becomes what its first rows stand for as it is read."""
        with reading(self.label):
            store = Store(large=self._bytes > LARGE)
            forms = self._forms(columns)
            values = self._texts(columns) | {name: form.typed(quoted(name)) for name, form in forms.items()}
            reals = frozenset(name for name, form in forms.items() if form is REAL)
            if self.stating is not None:
                values = {name: sql for name, sql in values.items() if name not in reals}
            self._keep(store, columns, values, reals)
            strays = self._strays(store, [name for name in forms if name in values])
            if strays:
                store.forget(_KEPT)
                self._keep(store, columns, {n: sql for n, sql in values.items() if n not in strays}, reals)
        return kept(store, _KEPT, self.label, notes, self._find)

    def _keep(
        self, store: Store, columns: Sequence[str], values: Mapping[str, str], reals: frozenset[str]
    ) -> None:
        """Read columns into a store, some as SQL gives them, some as doubles if all their cells are."""
        wanted = ", ".join(
            f"{values[name]} AS {quoted(name)}" if name in values else quoted(name) for name in columns
        )
        typed = self.stating(reals) if self.stating is not None and reals else ()
        try:
            store.keep(_KEPT, f"SELECT {wanted} FROM {self.scan(options=typed)}")
        except (duckdb.ConversionException, duckdb.InvalidInputException):
            if not typed:
                raise
            store.keep(_KEPT, f"SELECT {wanted} FROM {self.scan()}")

    def _texts(self, columns: Sequence[str]) -> dict[str, str]:
        """Return SQL for columns of JSON that mix types: their values are text."""
        kinds = self.source().columns if self.reader == "read_json" else {}
        return {name: f"{quoted(name)} ->> '$'" for name in columns if kinds.get(name) == "JSON"}

    def _forms(self, columns: Sequence[str]) -> dict[str, Form]:
        """Return what the columns of a text file stand for by their first rows, where these agree."""
        if self.reader != "read_csv":
            return {}
        head = self.source().rows(", ".join(map(quoted, columns)), f"LIMIT {HEAD}")
        seen = zip(columns, zip(*head, strict=True), strict=False)
        return {name: form for name, cells in seen if (form := looks_like(cells)) is not None}

    def _strays(self, store: Store, names: Sequence[str]) -> set[str]:
        """Return which of the columns have cells of another form than the first rows: these became NULL."""
        if not names:
            return set()
        counts = ", ".join(f"count({quoted(name)})" for name in names)
        rows, *kept_cells = store.rows(_KEPT).aggregate(f"count(*), {counts}").fetchall()[0]
        lacking = {name: count for name, count in zip(names, kept_cells, strict=True) if count < rows}
        if not lacking:
            return set()
        counts = ", ".join(f"count({quoted(name)})" for name in lacking)
        cells = store.connection.execute(f"SELECT {counts} FROM {self.scan()}").fetchall()[0]
        return {name for name, count in zip(lacking, cells, strict=True) if count > lacking[name]}

    @property
    def _bytes(self) -> int:
        sizes = [(Path(file).stat().st_size, file.endswith(".gz")) for file in self._files]
        return sum(size * (_GZIP_RATIO if zipped else 1) for size, zipped in sizes)

    @cached_property
    def _files(self) -> list[str]:
        return files_of(self.pattern, self.label)

    def _find(self, row: int) -> tuple[str, str]:
        """Return the file and the line of a row; the rows of the files before it are counted once more."""
        files = self._files
        for file in files[:-1]:
            with reading(self.label):
                scan = self.scan(_escaped(file))
                rows = connect().execute(f"SELECT count(*) FROM {scan}").fetchall()[0][0]
            if row <= rows:
                return _within(file, self.label), self._line(row)
            row -= rows
        return _within(files[-1], self.label) if len(files) > 1 else self.label, self._line(row)

    def _line(self, row: int) -> str:
        return f"row {row}" if self.before is None else f"line {row + self.before}"


def files_of(pattern: str, label: str) -> list[str]:
    """Return the files that a glob means."""
    with reading(label):
        found = connect().execute(f"SELECT file FROM glob({literal(pattern)})").fetchall()
    if not found:
        raise InputError(f"there is no file {label}; check the path.")
    return [row[0] for row in found]


def _within(file: str, label: str) -> str:
    return label if file == label else f"{file} (of {label})"


def _delimited(pattern: str, label: str, encoding: str, options: list[str]) -> LocalSource:
    """Open text files with separators; how they are written is found out here, once."""
    first, *others = files_of(pattern, label)
    options = [f"encoding = {literal(encoding)}", *options]
    delimiter, quote, escape, skipped, header, columns = _sniffed(first, label, options)
    names = [column["name"] for column in columns]
    if len(names) == 1 and any(sign in names[0] for sign in ",;|\t"):
        raise InputError(
            f"{label} has rows of different lengths, or an unknown separator; use commas or tabs."
        )
    for file in others if skipped else ():
        if _sniffed(file, label, options)[3] != skipped:
            raise InputError(f"{file} has other lines before its table than {first}; remove them from both.")
    notes = _skip_notes(_first_lines(first, encoding, skipped), delimiter, label)
    written = _dialect(delimiter, quote, escape)
    options = [
        *(option for option in options if not option.startswith("delim")),
        *written,
        f"skip = {skipped}",
    ]
    plain = (*options, "header = false", "all_varchar = true")
    options.append(f"header = {str(header).lower()}")
    text: tuple[str, ...] = (*options, "all_varchar = true")
    stating = None
    if not others:  # of several files each is asked for its own columns
        stating = partial(_stated_columns, (*options, "auto_detect = false"), names)
        text = stating(frozenset())
    scanned = _Scanned(pattern, label, "read_csv", text, skipped + bool(header), stating)
    return scanned.source(notes + _header_notes(names, _Scanned(pattern, label, "read_csv", plain)))


def _sniffed(file: str, label: str, options: Sequence[str]) -> tuple[Any, ...]:
    """Return how a text file is written, and its columns."""
    sniffed = f"sniff_csv({', '.join([literal(_escaped(file)), *options, _SAMPLE])})"
    with reading(label):
        return tuple(connect().execute(f"SELECT {_WRITTEN} FROM {sniffed}").fetchall()[0])


def _first_lines(file: str, encoding: str, count: int) -> list[str]:
    """Return so many lines of a text file, which may be compressed."""
    opener: Callable[..., Any] = gzip.open if file.endswith(".gz") else open
    with opener(file, "rt", encoding=encoding, errors="replace") as text:
        return list(islice(text, count))


def _skip_notes(lines: Sequence[str], delimiter: str, label: str) -> tuple[str, ...]:
    """Say that lines before the table are skipped, as those of a title; raise if they are rows themselves."""
    written = [line for line in lines if line.strip()]
    alike = Counter(line.count(delimiter) for line in written if delimiter in line)
    if max(alike.values(), default=0) >= _ROWS_ALIKE:
        raise InputError(
            f"{label} has rows of different lengths: those from line {len(lines) + 1} on have another number "
            "of cells than those before; give all rows the same columns."
        )
    if not written:
        return ()
    return (f"{file_name(label)}: the table begins in line {len(lines) + 1}; what comes before was skipped.",)


def _stated_columns(options: tuple[str, ...], names: Sequence[str], reals: frozenset[str]) -> tuple[str, ...]:
    """Return arguments that read some columns as doubles and all others as text."""
    listed = ", ".join(f"{literal(name)}: '{'DOUBLE' if name in reals else 'VARCHAR'}'" for name in names)
    return (*options, f"columns = {{{listed}}}")


def _dialect(delimiter: str, quote: str, escape: str) -> list[str]:
    """Return how cells are written; a quote that the first lines lack may come later."""
    quote, escape = ('"', '"') if quote == "(empty)" else (quote, escape)
    escape = quote if escape == "(empty)" else escape
    return [f"{name} = {literal(sign)}" for name, sign in
            (("delim", delimiter), ("quote", quote), ("escape", escape))]  # fmt: skip


def _header_notes(names: Sequence[str], plain: _Scanned) -> tuple[str, ...]:
    """Say which columns of a text file were given a name: those without one, and those with another's."""
    if names == [f"column{place}" for place in range(len(names))]:
        name = file_name(plain.label)
        return (f"{name} has no header row, so its columns are called column0, column1 and so on.",)
    lowered = {name.lower() for name in names}
    if not any(_may_be_made_up(name, place, lowered) for place, name in enumerate(names)):
        return ()
    first = plain.source().rows("*", "LIMIT 1")
    header = first[0] if first and len(first[0]) == len(names) else names
    return rename_notes(header, names)


def _may_be_made_up(name: str, place: int, lowered: set[str]) -> bool:
    """Whether DuckDB may have made the name up: columnN where there was none, a_1 where a was taken."""
    stem, _, number = name.lower().rpartition("_")
    return name == f"column{place}" or (number.isdigit() and stem in lowered)


def _ipc(path: Path, label: str) -> pa.Table:
    """Read an Arrow file, or a stream in a file."""
    try:
        with pa.memory_map(str(path)) as opened:
            return pa.ipc.open_file(opened).read_all()
    except pa.ArrowInvalid:
        pass
    try:
        with pa.OSFile(str(path)) as opened:
            return pa.ipc.open_stream(opened).read_all()
    except pa.ArrowInvalid:
        raise InputError(f"{label} is not an Arrow file, or it is damaged; write it again.") from None


def _sheets(path: Path, label: str) -> dict[str, Callable[[], LocalSource]]:
    """Return the sheets of a workbook that hold rows; the first row names the columns."""
    openpyxl = require("openpyxl", "excel", "reading Excel files")
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except Exception as error:
        raise InputError(f"{label} is not an Excel workbook, or it is damaged; save it again.") from error
    with closing(book):
        sheets = {sheet.title: [row for row in sheet.values if any(cell is not None for cell in row)]
                  for sheet in book.worksheets}  # fmt: skip
    return {title: partial(_sheet, rows, label) for title, rows in sheets.items() if rows}


def _sheet(rows: list[tuple[Any, ...]], label: str) -> LocalSource:
    names = [str(name) if name is not None else f"column{place}" for place, name in enumerate(rows[0])]
    if len(set(names)) < len(names):
        raise InputError(f"{label} has two columns of the same name; rename one.")
    columns = list(zip(*rows[1:], strict=True)) or [()] * len(names)
    return of_arrow(columns_of(dict(zip(names, columns, strict=True)), label), label)


def _open_database(path: Path, label: str, sql: str | None) -> LocalSource:
    """Open a table of a DuckDB or SQLite file, or the rows of a query on it; the file is never written."""
    with path.open("rb") as opened:
        is_sqlite = opened.read(16) == b"SQLite format 3\0"
    if is_sqlite:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            return _table_of(connection, _SQLITE_TABLES, label, sql)
    with reading(label):
        return _table_of(
            connect(str(path), access_mode="READ_ONLY"), _DUCKDB_TABLES, label, sql and _select(sql, label)
        )


def _table_of(connection: Any, listing: str, label: str, sql: str | None) -> LocalSource:
    names = [row[0] for row in connection.execute(listing).fetchall()]
    opened = {name: partial(open_query, f"SELECT * FROM {quoted(name)}", connection) for name in names}
    return replace(open_query(sql, connection) if sql else _only(opened, label)(), label=label)


def _only(tables: Mapping[str, Callable[[], LocalSource]], label: str) -> Callable[[], LocalSource]:
    """Return the one table of a file."""
    if len(tables) == 1:
        return next(iter(tables.values()))
    if not tables:
        raise InputError(f"{label} holds no table.")
    shown = ", ".join(list(tables)[:20])
    raise InputError(
        f"{label} holds {len(tables)} tables ({shown}); say which rows are meant, as in sql='SELECT * FROM "
        f"{quoted(next(iter(tables)))}'."
    )


def _chosen(tables: Mapping[str, Callable[[], LocalSource]], label: str, sql: str | None) -> LocalSource:
    """Return the one table of a file, or the rows of a query on its tables."""
    if sql is None:
        return _only(tables, label)()
    connection = connect()
    for name, opened in tables.items():
        connection.register(name, opened().arrow)
    return replace(open_query(_select(sql, label), connection), label=label)


def _queried(source: LocalSource, sql: str) -> LocalSource:
    """Return the rows of a query on a source that is called `data`."""
    query = _select(sql, source.label)
    names = list(source.columns)
    rows = settle(source.load(names), names, Stated(words=frozenset(names)))
    return replace(rows, start=partial(rows.ask, "data", query), arrow=None, store=None, finder=None)


def _select(sql: str, label: str) -> str:
    """Return a query if it is one SELECT: nothing is written."""
    with reading(f"the query on {label}"):
        statements = connect().extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise InputError(f"the query on {label} must be one SELECT.")
    return statements[0].query


def locate(text: str) -> tuple[str, str]:
    """Return a glob DuckDB can read and the format of its files."""
    if not text.strip():
        raise InputError("the path is empty; name a file, a glob or a folder.")
    path = Path(text)
    if path.is_dir():
        return _locate_in_folder(path)
    if not path.exists():
        _refuse_absent(text)
    suffix = format_of(text)
    if not suffix:
        raise _unreadable_format(text)
    if path.is_file() and path.stat().st_size == 0:
        raise InputError(f"{text} is empty; it needs a header and at least two rows.")
    if suffix not in _FOLDERS:
        return text, suffix
    return (_escaped(text) if path.exists() else text), suffix


def _refuse_absent(text: str) -> None:
    """Raise unless a name that is no file is a glob."""
    if "://" in text:
        raise InputError(
            f"{text} is an address, and only files of this machine are read; download it first, or use "
            "--engine spark."
        )
    if not any(sign in text for sign in "*?["):
        raise InputError(f"there is no file {text}; check the path.")


def _unreadable_format(text: str) -> InputError:
    way = next((way for end, way in _ELSEWHERE.items() if text.lower().endswith(end)), "")
    if way:
        return InputError(f"{text} has a format that is not read; {way}.")
    return InputError(f"{text} must end in one of {', '.join(_SUFFIXES)}, so that its format is known.")


def _escaped(text: str) -> str:
    """Return a glob that means one file, whatever signs its name has."""
    return re.sub(r"[*?\[]", r"[\g<0>]", text)


def format_of(text: str) -> str:
    """Return the format of a file by the end of its name; "" where it tells none."""
    return next((kind for end, kind in _SUFFIXES.items() if text.lower().endswith(end)), "")


def _locate_in_folder(folder: Path) -> tuple[str, str]:
    """Return the glob of a folder's files, sub-folders included, if they are all of one format."""
    ends = [end for end, kind in _SUFFIXES.items() if kind in _FOLDERS]
    found = {end for end in ends for file in folder.rglob(f"*{end}") if file.is_file()}
    if not found:
        raise InputError(f"the folder {folder} holds no .parquet, .csv, .tsv or .json file.")
    if len(found) > 1:
        raise InputError(
            f"the folder {folder} holds files of several kinds ({', '.join(sorted(found))}); name a glob."
        )
    end = found.pop()
    return str(Path(_escaped(str(folder))) / "**" / f"*{end}"), _SUFFIXES[end]


class _Arrived:
    """What came by standard input, which can be read only once, in a file that goes with the process.

    The first bytes tell its format: Parquet, or text with separators that may be compressed.
    """

    def __init__(self, stream: BinaryIO) -> None:
        first = stream.read(1 << 16)
        self.kind = "parquet" if first.startswith(b"PAR1") else "csv"
        zipped = ".gz" if first.startswith(b"\x1f\x8b") else ""
        with tempfile.NamedTemporaryFile(prefix="sidelight-", suffix=zipped, delete=False) as file:
            weakref.finalize(self, Path(file.name).unlink, missing_ok=True)
            file.write(first)
            shutil.copyfileobj(stream, file)
        self.path = file.name
        self.is_empty = not first


_arrivals: dict[int, _Arrived] = {}


def _arrived() -> tuple[str, str]:
    """Return where standard input was put, and its format."""
    stream = sys.stdin.buffer
    if id(stream) not in _arrivals:
        _arrivals[id(stream)] = _Arrived(stream)
    found = _arrivals[id(stream)]
    if found.is_empty:
        raise InputError("standard input is empty; it needs a header and at least two rows.")
    return found.path, found.kind
