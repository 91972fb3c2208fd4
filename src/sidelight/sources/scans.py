"""Scan: files that DuckDB reads once, when the first question comes, into a store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import duckdb

from sidelight.sources.cells import HEAD, REAL, Form, looks_like
from sidelight.sources.faults import reading
from sidelight.sources.local import LocalSource, kept
from sidelight.sources.locations import escaped, files_of
from sidelight.sources.sql import literal, quoted
from sidelight.sources.store import LARGE, Store, connect

_KEPT = "sidelight_rows"
_GZIP_RATIO = 8
"""How many times larger than its compressed file a text is assumed to be."""


@dataclass(frozen=True)
class Scan:
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
            loader=lambda columns: self.load(columns, notes),
            label=self.label,
            notes=notes,
        )

    def scan(self, pattern: str = "", options: tuple[str, ...] = ()) -> str:
        """Return SQL for the rows of all files, or of one."""
        return f"{self.reader}({', '.join([literal(pattern or self.pattern), *(options or self.options)])})"

    def load(self, columns: Sequence[str], notes: tuple[str, ...]) -> LocalSource:
        """Read the named columns into a store; text is parsed on the way, as its first rows suggest."""
        with reading(self.label):
            sizes = (
                Path(file).stat().st_size * (_GZIP_RATIO if file.endswith(".gz") else 1)
                for file in self._files
            )
            store = Store(large=sum(sizes) > LARGE)
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
        wanted = ", ".join(f"{values.get(name, quoted(name))} AS {quoted(name)}" for name in columns)
        typed = self.stating(reals) if self.stating is not None and reals else ()
        try:
            store.keep(_KEPT, f"SELECT {wanted} FROM {self.scan(options=typed)}")
        except (duckdb.ConversionException, duckdb.InvalidInputException):
            # A later cell is no double; the column is read as text, and `settle` looks at all of it.
            if not typed:
                raise
            store.keep(_KEPT, f"SELECT {wanted} FROM {self.scan()}")

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

    @cached_property
    def _files(self) -> list[str]:
        return files_of(self.pattern, self.label)

    def _find(self, row: int) -> tuple[str, str]:
        """Return the file and the line of a row; the rows of the files before it are counted once more."""
        *before, found = self._files
        for file in before:
            with reading(self.label):
                query = f"SELECT count(*) FROM {self.scan(escaped(file))}"
                rows = connect().execute(query).fetchall()[0][0]
            if row <= rows:
                found = file
                break
            row -= rows
        place = f"{found} (of {self.label})" if before and found != self.label else self.label
        return place, f"row {row}" if self.before is None else f"line {row + self.before}"
