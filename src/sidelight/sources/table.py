"""Table: where the rows are and how they are coded, and the engine that reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from sidelight.foundation.errors import InputError, invalid
from sidelight.foundation.progress import track
from sidelight.schema import Attribute, Schema
from sidelight.sources.counts import (
    LARGEST_GRAM,
    Codes,
    Counts,
    Records,
    block_counts,
    check_dense,
    distinct_records,
    merge_records,
)
from sidelight.sources.inference import SetAside, code_expression, number
from sidelight.sources.local import BATCH_ROWS, LocalSource, quoted

T = TypeVar("T")


class Engine(Protocol):
    """What every engine offers: counting attribute sets and mapping a function over coded batches."""

    def counts(self, table: Table, sets: Sequence[Sequence[str]]) -> list[Counts]:
        """Return the counts of every listed set of attributes, from one pass over the rows."""

    def map_batches(self, table: Table, function: Callable[[Codes], T]) -> Iterator[T]:
        """Apply `function` to batches of codes (rows, attributes); batches come in the table's order."""


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
    """

    schema: Schema
    source: Any
    engine: Engine
    rows: int
    dropped: int = 0
    set_aside: tuple[SetAside, ...] = field(default=())

    def __len__(self) -> int:
        return self.rows

    def __repr__(self) -> str:
        return f"Table({self.source.label!r}, {self.rows} rows, {len(self.schema)} attributes)"

    def counts(self, *sets: Sequence[str]) -> list[Counts]:
        """Count the records of every combination of values of the listed sets of attributes."""
        for names in sets:
            _check_set(self.schema, names)
        return self.engine.counts(self, sets)

    def records(self, largest: int = 1 << 22) -> Records | None:
        """Return the distinct records and how often each occurs; None if there are more than `largest`."""
        return merge_records(self.engine.map_batches(self, self._distinct), largest)

    def pair_counts(self) -> list[Counts]:
        """Count all pairs of attributes."""
        return self.counts(*combinations(self.schema.names, 2))

    def codes(self) -> Codes:
        """Return all rows coded, shape (rows, attributes); for tables that fit in memory."""
        parts = list(self.engine.map_batches(self, lambda batch: batch))
        return np.concatenate(parts) if parts else np.empty((0, len(self.schema)), dtype=np.uint16)

    def _distinct(self, codes: Codes) -> Records:
        return distinct_records(self.schema, codes, np.ones(len(codes)))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Stream the raw columns of the attributes, for any library that speaks Arrow."""
        columns = ", ".join(quoted(name) for name in self.schema.names)
        rest = where_complete(self.schema, self.source.columns)
        return self.source.reader(columns, rest).__arrow_c_stream__(requested_schema)


def _check_set(schema: Schema, names: Sequence[str]) -> None:
    if isinstance(names, str) or not names:
        raise invalid("sets", "lists of attribute names", names)
    check_dense(schema.select(names).sizes)


class LocalEngine:
    """One machine: DuckDB streams and codes the rows, numpy counts them."""

    def counts(self, table: Table, sets: Sequence[Sequence[str]]) -> list[Counts]:
        """Return the counts of every listed set of attributes, from one pass over the rows."""
        sizes = table.schema.sizes
        indices = [[table.schema.index(name) for name in names] for names in sets]
        schemas = [table.schema.select(names) for names in sets]
        small = (
            sum(sizes) <= LARGEST_GRAM and all(len(names) <= 2 for names in sets) and len(sets) > len(sizes)
        )
        if small:
            blocks = _sum(self.map_batches(table, lambda batch: block_counts(batch, sizes)))
            offsets = np.concatenate([[0], np.cumsum(sizes)])
            return [
                Counts(schema, _block(blocks, offsets, index))
                for schema, index in zip(schemas, indices, strict=True)
            ]
        totals = [np.zeros(schema.sizes, dtype=np.int64) for schema in schemas]
        for cells in self.map_batches(
            table, lambda batch: [_cells(batch, sizes, index) for index in indices]
        ):
            for total, part in zip(totals, cells, strict=True):
                total += part
        return [Counts(schema, total) for schema, total in zip(schemas, totals, strict=True)]

    def map_batches(self, table: Table, function: Callable[[Codes], T]) -> Iterator[T]:
        """Apply `function` to batches of codes (rows, attributes); batches come in the table's order."""
        source: LocalSource = table.source
        types = source.columns
        select = ", ".join(code_expression(attribute, types[attribute.name]) for attribute in table.schema)
        batches = source.batches(select, where_complete(table.schema, types))
        total = -(-table.rows // BATCH_ROWS)
        for batch in track(batches, "counting", total):
            yield function(_coded(batch, table.schema, source.label))


def where_complete(schema: Schema, types: dict[str, str]) -> str:
    """Return the SQL condition that drops records with a missing value where an attribute asks for it."""
    dropping = [attribute for attribute in schema if attribute.missing == "drop"]
    present = [
        f"{number(a.name, types[a.name])} IS NOT NULL" if a.kind == "numeric" else _is_present(a, types)
        for a in dropping
    ]
    return "WHERE " + " AND ".join(present) if present else ""


def _is_present(attribute: Attribute, types: dict[str, str]) -> str:
    name = quoted(attribute.name)
    not_a_number = f" AND NOT isnan({name})" if types[attribute.name] in ("FLOAT", "DOUBLE") else ""
    return f"{name} IS NOT NULL{not_a_number}"


def _coded(batch: pa.RecordBatch, schema: Schema, label: str) -> Codes:
    codes = np.empty((batch.num_rows, len(schema)), dtype=np.uint16)
    for i, attribute in enumerate(schema):
        column = batch.column(i)
        if attribute.kind == "numeric":
            codes[:, i] = _binned(column, attribute, label)
        else:
            _refuse_nulls(column, attribute, label)
            codes[:, i] = column.to_numpy(zero_copy_only=False)
    return codes


def _binned(column: pa.Array, attribute: Attribute, label: str) -> Codes:
    values = column.to_numpy(zero_copy_only=False)
    codes: Codes = np.searchsorted(np.asarray(attribute.edges), values, side="right").astype(np.uint16)
    if column.null_count:
        if attribute.missing != "value":
            _refuse_nulls(column, attribute, label)
        codes[np.asarray(column.is_null())] = attribute.size - 1
    return codes


def _refuse_nulls(column: pa.Array, attribute: Attribute, label: str) -> None:
    if column.null_count:
        raise InputError(
            f"column {attribute.name!r} of {label} has values outside the {attribute.size} values of its "
            "attribute; code it with an alphabet that has '(other)' or '(missing)', or correct the data."
        )


def _cells(codes: Codes, sizes: Sequence[int], index: Sequence[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    shape = tuple(sizes[i] for i in index)
    flat = np.ravel_multi_index(tuple(codes[:, i].astype(np.intp) for i in index), shape)
    return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape).astype(np.int64)


def _sum(parts: Iterable[np.ndarray[Any, np.dtype[np.float64]]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    total: np.ndarray[Any, np.dtype[np.float64]] | None = None
    for part in parts:
        total = part if total is None else total + part
    if total is None:
        raise InputError("the table has no rows left; at least two are needed.")
    return total


def _block(
    blocks: np.ndarray[Any, np.dtype[np.float64]],
    offsets: np.ndarray[Any, np.dtype[np.intp]],
    index: Sequence[int],
) -> np.ndarray[Any, np.dtype[np.int64]]:
    spans = [slice(offsets[i], offsets[i + 1]) for i in index]
    block = blocks[spans[0], spans[-1]]
    return np.rint(block if len(index) == 2 else np.diagonal(block)).astype(np.int64)
