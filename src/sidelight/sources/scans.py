"""Files that DuckDB reads once, when the first question comes.

How a text file with separators is written is found out before, once.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from sidelight.foundation.errors import InputError
from sidelight.foundation.files import file_name
from sidelight.sources.cells import HEAD, REAL, Form, looks_like
from sidelight.sources.faults import is_interruption, reading
from sidelight.sources.local import LocalSource, in_store, rename_notes
from sidelight.sources.memory import of_arrow
from sidelight.sources.sql import LARGE, Store, literal, quoted, scratch

_KEPT = "sidelight_rows"
_SMALL = 64 << 20
"""Files of at most this many bytes are kept in memory as Arrow tables of less than `LARGE` bytes, ..."""
_ALIKE = frozenset(
    ("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
     "FLOAT", "DOUBLE", "VARCHAR", "DATE", "TIMESTAMP")
)  # fmt: skip
"""... if their columns are of types that Arrow gives back as they were."""
_AT_ONCE = 1 << 13  # so many rows come as one batch of them
_TOO_LONG = "Arrow Appender"
"""What DuckDB's error names where a column's text is too long for one batch."""
_GZIP_RATIO = 8
"""How many times larger than its compressed file a text is assumed to be."""
_SAMPLE = "sample_size = 2048"
_WRITTEN = "Delimiter, Quote, Escape, SkipRows, HasHeader, Columns"
_ROWS_ALIKE = 3
"""This many skipped lines with the same number of separators are rows, not a title."""


@dataclass(frozen=True)
class Scan:
    """Files that are read once, when the first question comes.

    Where it is given, `stating` returns arguments that read the named columns as doubles; they fail if a cell
    is none.
    """

    pattern: str  # the glob that DuckDB reads
    label: str  # what to call them
    reader: str  # DuckDB's function
    options: tuple[str, ...]  # its arguments
    before: int | None = None  # how many lines come before the first row; None where rows are no lines
    stating: Callable[[frozenset[str]], tuple[str, ...]] | None = None

    def source(self, notes: tuple[str, ...] = ()) -> LocalSource:
        """Return the source, of which only the names of the columns are read yet."""
        return LocalSource(
            lambda: scratch().sql(f"SELECT * FROM {self.scan()}"),
            scan=self.scan(),
            loader=lambda columns: self.load(columns, notes),
            label=self.label,
            notes=notes,
        )

    def scan(self, pattern: str = "", options: tuple[str, ...] = ()) -> str:
        """Return SQL for the rows of all files, or of one."""
        return f"{self.reader}({', '.join([literal(pattern or self.pattern), *(options or self.options)])})"

    def load(self, columns: Sequence[str], notes: tuple[str, ...]) -> LocalSource:
        """Read the named columns once; text is parsed on the way, as its first rows suggest."""
        with reading(self.label):
            forms = self._forms(columns)
            values = self._texts(columns) | {name: form.typed(quoted(name)) for name, form in forms.items()}
            reals = frozenset(name for name, form in forms.items() if form is REAL)
            if self.stating is not None:
                values = {name: sql for name, sql in values.items() if name not in reals}
            source = self._read(columns, values, reals)
            strays = self._strays(source, [name for name in forms if name in values])
            if strays:
                del source  # whose space is given back before the next one takes its own
                known = {name: sql for name, sql in values.items() if name not in strays}
                source = self._read(columns, known, reals)
        return replace(source, finder=self._find, notes=notes)

    def _read(self, columns: Sequence[str], values: Mapping[str, str], reals: frozenset[str]) -> LocalSource:
        """Read columns, some as SQL gives them, some as doubles if all cells are."""
        wanted = ", ".join(f"{values.get(name, quoted(name))} AS {quoted(name)}" for name in columns)
        typed = self.stating(reals) if self.stating is not None and reals else ()
        try:
            return self._kept(f"SELECT {wanted} FROM {self.scan(options=typed)}")
        except (duckdb.ConversionException, duckdb.InvalidInputException, OSError) as error:
            # A later cell is no double; the column is read as text, and `settle` looks at all of it.
            if not typed or is_interruption(error):
                raise
            return self._kept(f"SELECT {wanted} FROM {self.scan()}")

    def _kept(self, query: str) -> LocalSource:
        """Run a query once and keep its rows: in memory where they are few, else in a store."""
        is_large = self._bytes > LARGE
        if self._bytes <= _SMALL:
            relation = scratch().sql(query)
            if _ALIKE.issuperset(map(str, relation.types)):
                rows = _gathered(relation)
                if rows is not None:
                    return of_arrow(rows, self.label)
                is_large = True
        store = Store(large=is_large)
        return in_store(store, store.keep(_KEPT, query), self.label)

    def _texts(self, columns: Sequence[str]) -> dict[str, str]:
        """Return SQL for columns of JSON that mix types: their values are text."""
        kinds = self.source().columns if self.reader == "read_json" else {}
        return {name: f"{quoted(name)} ->> '$'" for name in columns if kinds.get(name) == "JSON"}

    def _forms(self, columns: Sequence[str]) -> dict[str, Form]:
        """Return the form that the first rows of each column of a text file have in common, if any."""
        if self.reader != "read_csv":
            return {}
        head = self.source().rows(", ".join(map(quoted, columns)), f"LIMIT {HEAD}")
        seen = zip(columns, zip(*head, strict=True), strict=False)
        return {name: form for name, cells in seen if (form := looks_like(cells)) is not None}

    def _strays(self, source: LocalSource, names: Sequence[str]) -> set[str]:
        """Return which of the columns have cells of another form than the first rows: these became NULL."""
        if not names:
            return set()
        counts = ", ".join(f"count({quoted(name)})" for name in names)
        rows, *kept_cells = source.rows(f"count(*), {counts}")[0]
        lacking = {name: count for name, count in zip(names, kept_cells, strict=True) if count < rows}
        if not lacking:
            return set()
        cells = self.source().rows(", ".join(f"count({quoted(name)})" for name in lacking))[0]
        return {name for name, count in zip(lacking, cells, strict=True) if count > lacking[name]}

    @cached_property
    def _bytes(self) -> int:
        """About how many bytes all files have without compression."""
        if self.reader == "read_parquet":
            query = f"SELECT sum(total_uncompressed_size) FROM parquet_metadata({literal(self.pattern)})"
            return int(scratch().execute(query).fetchall()[0][0] or 0)
        return sum(
            Path(file).stat().st_size * (_GZIP_RATIO if file.endswith(".gz") else 1) for file in self._files
        )

    @cached_property
    def _files(self) -> list[str]:
        return files_of(self.pattern, self.label)

    def _find(self, row: int) -> tuple[str, str]:
        """Return the file and the line of a row; the rows of the files before it are counted once more."""
        *before, found = self._files
        for file in before:
            with reading(self.label):
                query = f"SELECT count(*) FROM {self.scan(escaped(file))}"
                rows = scratch().execute(query).fetchall()[0][0]
            if row <= rows:
                found = file
                break
            row -= rows
        place = f"{found} (of {self.label})" if before and found != self.label else self.label
        return place, f"row {row}" if self.before is None else f"line {row + self.before}"


def _gathered(rows: duckdb.DuckDBPyRelation) -> pa.Table | None:
    """Return rows as an Arrow table; None if they take too much memory, as text that many rows share."""
    batches, size = [], 0
    try:
        with rows.to_arrow_reader(_AT_ONCE) as reader:
            for batch in reader:
                size += batch.nbytes
                if size >= LARGE:
                    return None
                batches.append(batch)
            return pa.Table.from_batches(batches, reader.schema)
    except OSError as error:
        if _TOO_LONG not in str(error):
            raise
        return None


def open_text(pattern: str, label: str, encoding: str, options: list[str]) -> LocalSource:
    """Open text files with separators; how they are written is found out here, once."""
    first, *others = files_of(pattern, label)
    options = [f"encoding = {literal(encoding)}", *options]
    delimiter, quote, escape, skipped, header, columns = _sniffed(first, label, options)
    names = [column["name"] for column in columns]
    if len(names) == 1 and any(sign in names[0] for sign in ",;|\t"):
        reason = "has rows of different lengths, or an unknown separator"
        raise InputError(f"{label} {reason}; use commas or tabs.")
    for file in others if skipped else ():
        if _sniffed(file, label, options)[3] != skipped:
            raise InputError(f"{file} has other lines before its table than {first}; remove them from both.")
    notes = _skip_notes(_first_lines(first, encoding, skipped), delimiter, label)
    said = (option for option in options if not option.startswith("delim"))
    options = [*said, *_dialect(delimiter, quote, escape), f"skip = {skipped}"]
    plain = (*options, "header = false", "all_varchar = true")
    options.append(f"header = {str(header).lower()}")
    text: tuple[str, ...] = (*options, "all_varchar = true")
    stating = None
    if not others:  # of several files each is asked for its own columns
        stating = partial(_stated_columns, (*options, "auto_detect = false"), names)
        text = stating(frozenset())
    scanned = Scan(pattern, label, "read_csv", text, skipped + bool(header), stating)
    return scanned.source(notes + _header_notes(names, Scan(pattern, label, "read_csv", plain)))


def _sniffed(file: str, label: str, options: Sequence[str]) -> tuple[Any, ...]:
    """Return how a text file is written, and its columns."""
    sniffed = f"sniff_csv({', '.join([literal(escaped(file)), *options, _SAMPLE])})"
    with reading(label):
        return tuple(scratch().execute(f"SELECT {_WRITTEN} FROM {sniffed}").fetchall()[0])


def _first_lines(file: str, encoding: str, count: int) -> list[str]:
    """Return the first `count` lines of a text file, which may be compressed."""
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
    signs = {"delim": delimiter, "quote": quote, "escape": escape}
    return [f"{name} = {literal(sign)}" for name, sign in signs.items()]


def _header_notes(names: Sequence[str], plain: Scan) -> tuple[str, ...]:
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


def escaped(text: str) -> str:
    """Return a glob that means one file, whatever signs its name has."""
    return re.sub(r"[*?\[]", r"[\g<0>]", text)


def files_of(pattern: str, label: str) -> list[str]:
    """Return the files that a glob means."""
    with reading(label):
        rows = scratch().execute(f"SELECT file FROM glob({literal(pattern)})").fetchall()
    if not rows:
        raise InputError(f"there is no file {label}; check the path.")
    return [row[0] for row in rows]
