"""From raw columns to codes: what DuckDB is asked for, and how its answer becomes small whole numbers.

Text is coded by DuckDB, which works once for each word of a column's dictionary. Narrow whole numbers come as
they are and are looked up in a table; other numbers come as doubles and are placed between edges. Columns in
memory come as they are, numbers, dates and text alike, and of a dictionary only the values are coded.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sidelight.foundation.arrays import AnyCodes, Array
from sidelight.foundation.bits import code_type
from sidelight.foundation.errors import InputError
from sidelight.schema import MISSING, OTHER, Attribute, Schema
from sidelight.sources.faults import reading
from sidelight.sources.sql import label_code, number, quoted, written
from sidelight.sources.tally import (
    doubles,
    is_number,
    is_real,
    is_whole,
    is_word,
    occurring,
    raw,
    texts,
    value_type,
    without_minus_zero,
)

_TYPES: dict[str, type[np.integer[Any]]] = {
    "BOOLEAN": np.uint8, "UTINYINT": np.uint8, "USMALLINT": np.uint16, "UINTEGER": np.uint32,
    "UBIGINT": np.uint64, "TINYINT": np.int8, "SMALLINT": np.int16, "INTEGER": np.int32, "BIGINT": np.int64,
}  # fmt: skip
_WHOLE = {kind: np.iinfo(dtype) for kind, dtype in _TYPES.items()}
"""The ranges of DuckDB's whole numbers; truth values come as 0 and 1, wider ones as labels."""

_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,19}")
"""How DuckDB writes a whole number of at most 64 bits."""
_FRACTION = re.compile(r"-?([0-9]+(\.[0-9]+)?(e[+-][0-9]+)?|inf)")
"""How DuckDB may write a fraction."""

_NO_EDGES: Array = np.empty(0)
_WIDEST = 1 << 16
_MANY_EDGES = 64
"""With this many edges or more, a binary search is faster than comparing with each of them."""


@dataclass(frozen=True, eq=False)
class Coder(ABC):
    """How one attribute is asked for, by SQL to `select`, and how the answer becomes codes."""

    select: str

    @abstractmethod
    def write(self, column: pa.Array, out: AnyCodes, compiled: bool) -> bool:
        """Write the codes of a column to `out`; return whether every value has one."""


class Labelled(Coder):
    """DuckDB gives the codes themselves."""

    def write(self, column: pa.Array, out: AnyCodes, compiled: bool) -> bool:  # noqa: ARG002 - nothing to do
        """Copy the codes."""
        out[:] = raw(column)
        return not column.null_count


@dataclass(frozen=True, eq=False)
class LookedUp(Coder):
    """DuckDB gives whole numbers of 8 or 16 bits; `table` has the code of each, -1 where there is none."""

    table: NDArray[np.int32]

    @cached_property
    def size(self) -> int:
        """How many numbers from 0 on are their own codes, no other number having one; else 0."""
        size = int((self.table >= 0).sum())
        return size if np.array_equal(self.table[:size], np.arange(size)) else 0

    def write(self, column: pa.Array, out: AnyCodes, compiled: bool) -> bool:
        """Look the numbers up."""
        values = raw(column)
        unsigned = values.view(f"u{values.itemsize}")
        return self._look_up(unsigned, out, compiled) and not column.null_count

    def _look_up(self, unsigned: AnyCodes, out: AnyCodes, compiled: bool) -> bool:
        """Write the codes of unsigned numbers; return whether every number has one."""
        if self.size:
            out[:] = unsigned
            return int(unsigned.max(initial=0)) < self.size
        if compiled:
            from sidelight.sources.kernels import look_up

            return bool(look_up(unsigned, self.table, out))
        codes = self.table[unsigned]
        out[:] = codes
        return bool((codes >= 0).all())


@dataclass(frozen=True, eq=False)
class Measured(LookedUp):
    """Whole numbers of any width come as they are; their distances from the `least` are looked up.

    Of distances, the two after the `span` mean missing and other.
    """

    least: int
    span: int

    def write(self, column: pa.Array, out: AnyCodes, compiled: bool) -> bool:
        """Look the distances up."""
        kind = np.uint64 if pa.types.is_unsigned_integer(column.type) else np.int64
        # Below the least, unsigned distances wrap around to large ones.
        distances = raw(column).astype(kind).view(np.uint64) - np.uint64(self.least % (1 << 64))
        narrow = np.where(distances <= self.span, distances, self.span + 2).astype(np.uint16)
        if column.null_count:
            narrow[~np.asarray(column.is_valid())] = self.span + 1
        return self._look_up(narrow, out, compiled)


@dataclass(frozen=True, eq=False)
class Listed(Coder):
    """Words or numbers come as they are; `table` has the code of each of the `values`.

    Then it has that of any other value and that of none; a code of -1 means that there may be none.
    """

    values: pa.Array
    table: NDArray[np.int32]

    def write(self, column: pa.Array, out: AnyCodes, compiled: bool) -> bool:  # noqa: ARG002 - Arrow does it
        """Find each value among those that have a code."""
        values = _regular(column) if is_real(column.type) else column
        places = pc.index_in(values, value_set=self.values)
        if places.null_count:
            places = pc.if_else(values.is_valid(), places.fill_null(len(self.values)), len(self.values) + 1)
        codes = self.table[raw(places)]
        out[:] = codes
        return bool((codes >= 0).all())


def _regular(column: pa.Array) -> pa.Array:
    """Return fractions with 0.0 and -0.0 as one value, and NaN as missing."""
    numbers = without_minus_zero(raw(column))
    absent = np.isnan(numbers)
    if column.null_count:
        absent |= ~np.asarray(column.is_valid())
    return pa.array(numbers, mask=absent if absent.any() else None)


@dataclass(frozen=True, eq=False)
class Indexed(Coder):
    """A column with a dictionary comes as it is; the `coder` sees each value that occurs once."""

    coder: Coder

    def write(self, column: pa.Array, out: AnyCodes, compiled: bool) -> bool:
        """Code the values and give each row the code of its own."""
        values, places = occurring(column)
        codes = np.empty(len(values), out.dtype)
        is_known = self.coder.write(values, codes, compiled)
        out[:] = codes[places]
        return is_known


@dataclass(frozen=True, eq=False)
class Placed(Coder):
    """Numbers or dates come as they are, or from DuckDB as doubles; `absent` codes a missing one.

    An `absent` of -1 means that none may be missing.
    """

    edges: Array
    absent: int

    def write(self, column: pa.Array, out: AnyCodes, compiled: bool) -> bool:
        """Count the edges at or below each number."""
        values = doubles(column)
        if compiled and len(self.edges) < _MANY_EDGES:
            from sidelight.sources.kernels import place

            missing = place(values, self.edges, out)
        else:
            out[:] = np.searchsorted(self.edges, values, side="right")
            missing = int(np.isnan(values).sum())
        if missing and self.absent >= 0:
            out[np.isnan(values)] = self.absent
        return not missing or self.absent >= 0


@dataclass(frozen=True, eq=False)
class Codebook:
    """How the columns of a source, of DuckDB's `types`, become the codes of a schema.

    Messages call the source by its `label`; where there is enough work, the loops are `compiled` ones. Those
    of the columns that are `held` in memory, with their Arrow types, come as they are if they can.
    """

    schema: Schema
    types: dict[str, str]
    label: str
    compiled: bool
    held: Mapping[str, pa.DataType] = field(default_factory=dict)

    @cached_property
    def coders(self) -> list[Coder]:
        """One for each attribute."""
        with reading(self.label):
            edges = _edges(self.schema, self.held)
            return [
                _coder(item, self.types[item.name], self.held.get(item.name), edges.get(item.name, _NO_EDGES))
                for item in self.schema
            ]

    @property
    def select(self) -> str:
        """What to ask DuckDB for."""
        return ", ".join(coder.select for coder in self.coders)

    def codes(self, batch: pa.RecordBatch) -> AnyCodes:
        """Return a batch's codes, shape (attributes, records)."""
        out = np.empty((len(self.schema), batch.num_rows), dtype=code_type(max(self.schema.sizes)))
        for i, attribute in enumerate(self.schema):
            if not self.coders[i].write(batch.column(i), out[i], self.compiled):
                raise InputError(
                    f"column {attribute.name!r} of {self.label} has values outside the {attribute.size} "
                    "values of its attribute; code it with an alphabet that has '(other)' or '(missing)', or "
                    "correct the data."
                )
        return out


def _edges(schema: Schema, held: Mapping[str, pa.DataType]) -> dict[str, Array]:
    """Return the edges of each binned attribute, as the numbers that its coder sees compare with them."""
    edges = {item.name: np.asarray(item.edges, dtype=np.float64) for item in schema if item.is_binned}
    single = [name for name in edges if name in held and pa.types.is_float32(value_type(held[name]))]
    return edges | dict(zip(single, _single_edges([edges[name] for name in single]), strict=True))


def _single_edges(edges: Sequence[Array]) -> list[Array]:
    """Return, for edges of several columns, the least number of 32 bits that means each edge or more."""
    if not edges:
        return []
    flat = np.concatenate(edges)
    with np.errstate(over="ignore"):
        near = flat.astype(np.float32)
    # What a number means rounds to that number, so the least one is near or next to it.
    three = np.stack([np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf))])
    reaches = np.reshape(written(three.ravel().tolist()), three.shape) >= flat
    least = three[reaches.argmax(axis=0), np.arange(len(flat))].astype(np.float64)
    return np.split(least, np.cumsum([len(some) for some in edges])[:-1])


def _coder(attribute: Attribute, kind: str, held: pa.DataType | None, edges: Array) -> Coder:
    """Return how a column is taken as it is, if it is held and of a type we know, or asked for by SQL."""
    coder = None if held is None else _held(attribute, kind, value_type(held), edges)
    if coder is None:
        return _asked(attribute, kind, edges)
    return Indexed(coder.select, coder) if pa.types.is_dictionary(held) else coder


def _asked(attribute: Attribute, kind: str, edges: Array) -> Coder:
    """Return how DuckDB is asked for a column."""
    if attribute.is_binned:
        return _placed(attribute, f"coalesce({number(attribute.name, kind)}, 'NaN'::DOUBLE)", edges)
    looked_up = _looked_up(attribute, kind, is_held=False) if kind in _WHOLE else None
    return looked_up or Labelled(label_code(attribute, kind))


def _held(attribute: Attribute, kind: str, held: pa.DataType, edges: Array) -> Coder | None:
    """Return how a column is taken as it is; None where that is DuckDB's to say."""
    if attribute.is_binned:
        return _placed(attribute, quoted(attribute.name), edges) if is_number(held) else None
    if is_whole(held):
        looked_up = _looked_up(attribute, kind, is_held=True)
        return looked_up or _listed(attribute, _whole_numbers(attribute, kind), held)
    if is_real(held):
        return _listed(attribute, _fractions(attribute, held), held)
    return _listed(attribute, attribute.raw_labels, held) if is_word(held) else None


def _placed(attribute: Attribute, select: str, edges: Array) -> Placed:
    return Placed(select, edges, attribute.size - 1 if attribute.missing == "value" else -1)


def _listed(attribute: Attribute, codes: Mapping[Any, int], held: pa.DataType) -> Listed:
    rest = [attribute.code(label) if label in attribute.values else -1 for label in (OTHER, MISSING)]
    table = np.array([*codes.values(), *rest], dtype=np.int32)
    return Listed(quoted(attribute.name), pa.array(codes, held), table)


def _fractions(attribute: Attribute, held: pa.DataType) -> dict[float, int]:
    """Return the code of every number of the type that a label stands for, as DuckDB writes numbers."""
    codes = {label: code for label, code in attribute.raw_labels.items() if _FRACTION.fullmatch(label)}
    numbers = _regular(pa.array(map(float, codes), pa.float64()).cast(held, safe=False))
    found = zip(codes.items(), numbers.to_pylist(), texts(numbers), strict=True)
    return {value: code for (label, code), value, text in found if text == label}


def _whole_numbers(attribute: Attribute, kind: str) -> dict[int, int]:
    """Return the code of every number of the type that a label stands for, as DuckDB writes numbers."""
    if kind == "BOOLEAN":
        truths = {"false": 0, "true": 1}
        return {truths[label]: code for label, code in attribute.raw_labels.items() if label in truths}
    least, most = _WHOLE[kind].min, _WHOLE[kind].max
    codes = {int(label): code for label, code in attribute.raw_labels.items() if _NUMBER.fullmatch(label)}
    return {value: code for value, code in codes.items() if least <= value <= most}


def _looked_up(attribute: Attribute, kind: str, *, is_held: bool) -> Coder | None:
    """Take a column of 8 or 16 bits as it is, else the distance from the least number where that is narrow.

    Of distances, the two after the last mean missing and other.
    """
    numbers, has_missing = _whole_numbers(attribute, kind), attribute.missing == "value"
    least, most = min(numbers, default=0), max(numbers, default=0)
    # A column as it is has no number to spare for what is missing.
    span, is_narrow = most - least, _WHOLE[kind].bits <= 16 and not has_missing
    if span >= _WIDEST - 2 and not is_narrow:  # two numbers beyond the span mean missing and other
        return None
    size = 1 << _WHOLE[kind].bits if is_narrow else span + 3
    table = np.full(size, attribute.code(OTHER) if attribute.has_other else -1, dtype=np.int32)
    for value, code in numbers.items():  # negative numbers are looked up by their unsigned bits
        table[value % size if is_narrow else value - least] = code
    name = quoted(attribute.name)
    if is_narrow:
        return LookedUp(name if is_held or kind != "BOOLEAN" else f"{name}::UTINYINT", table)
    table[span + 1] = attribute.code(MISSING) if has_missing else -1
    return (
        Measured(name, table, least, span) if is_held else LookedUp(_distance(name, kind, least, span), table)
    )


def _distance(name: str, kind: str, least: int, span: int) -> str:
    """Return SQL for the distance of a whole number from the least, in as few bits as it takes."""
    value = f"{name}::UTINYINT" if kind == "BOOLEAN" else name
    wide = "HUGEINT" if kind == "UBIGINT" else "BIGINT"
    distance = f"CASE WHEN {value} BETWEEN {least} AND {least + span} THEN {value}::{wide} - {least}"
    width = "UTINYINT" if span + 2 < 256 else "USMALLINT"
    return f"({distance} WHEN {name} IS NULL THEN {span + 1} ELSE {span + 2} END)::{width}"
