"""Table: where the rows are and how they are coded, and the engine that reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa

from sidelight.foundation.arrays import Codes
from sidelight.foundation.errors import invalid
from sidelight.foundation.files import write_atomically
from sidelight.foundation.html import html_table, listed
from sidelight.schema import OTHER, Schema
from sidelight.sources.columns import Guess, SetAside
from sidelight.sources.counts import Counts, Records, check_dense
from sidelight.sources.engine import Engine
from sidelight.sources.source import Source
from sidelight.sources.sql import quoted, where_complete


@dataclass(frozen=True, eq=False)
class Table:
    """A lazy table: rows stay where they are until they are counted or mapped.

    Attributes:
        schema: the attributes and their alphabets.
        source: where the rows are.
        engine: what reads them.
        rows: the number of records that are used.
        dropped: the number of records left out because a value is missing.
        set_aside: columns that are no attributes, with the reason.
        guesses: what was guessed about columns, and how to state it.
    """

    schema: Schema
    source: Source
    engine: Engine
    rows: int
    dropped: int = 0
    set_aside: tuple[SetAside, ...] = ()
    guesses: tuple[Guess, ...] = ()

    def __len__(self) -> int:
        return self.rows

    def __repr__(self) -> str:
        return f"Table({self.source.label!r}, {self.rows} rows, {len(self.schema)} attributes)"

    def _repr_html_(self) -> str:
        rows = [[item.name, item.kind, item.size, listed(item.values), "used"] for item in self.schema]
        rows += [[item.column, "", "", "", f"set aside: {item.reason}"] for item in self.set_aside]
        return html_table(repr(self), ("column", "kind", "size", "values", ""), rows)

    def notes(self) -> list[str]:
        """Return what a reader of figures about the table must know: what was renamed, left out or folded."""
        notes = list(self.source.notes)
        notes += [
            f"Column {item.column!r} {item.reason}; set aside{'; ' * bool(item.remedy)}{item.remedy}."
            for item in self.set_aside
        ]
        notes += [f"Column {item.column!r} {item.reason}: a guess; {item.remedy}." for item in self.guesses]
        notes += [
            f"Column {item.name!r} keeps {len(item.listed)} values; all others count as one, {OTHER}."
            for item in self.schema
            if item.has_other
        ]
        if self.dropped:
            notes.append(f"Records with a missing value, left out: {self.dropped}.")
        return notes

    def counts(self, *sets: Sequence[str]) -> list[Counts]:
        """Count the records of every combination of values of the listed sets of attributes."""
        for names in sets:
            if isinstance(names, str) or not names:
                raise invalid("sets", "lists of attribute names", names)
            check_dense(self.schema.select(names).sizes)
        return self.engine.counts(self, sets) if sets else []

    def records(self, largest: int = 1 << 22) -> Records | None:
        """Return the distinct records and how often each occurs; None if there are more than `largest`."""
        return self.engine.records(self, largest)

    def pair_counts(self) -> list[Counts]:
        """Count all pairs of attributes."""
        return self.counts(*combinations(self.schema.names, 2))

    def codes(self) -> Codes:
        """Return all rows coded, shape (rows, attributes); for tables that fit in memory."""
        parts = list(self.engine.map_batches(self, lambda codes, _: codes))
        return np.concatenate(parts) if parts else np.empty((0, len(self.schema)), dtype=np.uint16)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Stream the raw columns of the attributes, for any library that speaks Arrow."""
        columns = ", ".join(quoted(name) for name in self.schema.names)
        rest = where_complete(self.schema, self.source.columns)
        return self.source.reader(columns, rest).__arrow_c_stream__(requested_schema)


def write_table(table: Table, path: str | Path) -> Path:
    """Write the attributes of `table` to a .csv or .parquet file, atomically; return where it is."""
    return write_rows(pa.table(table), path)


def write_rows(rows: pa.Table, path: str | Path) -> Path:
    """Write rows to a .csv or .parquet file, atomically; return where it is."""
    from pyarrow import csv, parquet

    writers = {".csv": csv.write_csv, ".parquet": parquet.write_table}
    writer = writers.get(Path(path).suffix.lower())
    if writer is None:
        raise invalid("path", "a .csv or .parquet file", str(path))
    return write_atomically(path, lambda temporary: writer(rows, temporary))
