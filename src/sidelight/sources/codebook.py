"""From raw columns to codes: what DuckDB is asked for, and how its answer becomes small whole numbers.

Text is coded by DuckDB, which works once for each word of a column's dictionary. Narrow whole numbers come as
they are and are looked up in a table; other numbers come as doubles and are placed between edges.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sidelight.foundation.arrays import AnyCodes, Array
from sidelight.foundation.bits import code_type
from sidelight.foundation.errors import InputError
from sidelight.schema import MISSING, OTHER, Attribute, Schema
from sidelight.sources.sql import label_code, number, quoted

_TYPES: dict[str, type[np.integer[Any]]] = {
    "BOOLEAN": np.uint8, "UTINYINT": np.uint8, "USMALLINT": np.uint16, "UINTEGER": np.uint32,
    "UBIGINT": np.uint64, "TINYINT": np.int8, "SMALLINT": np.int16, "INTEGER": np.int32, "BIGINT": np.int64,
}  # fmt: skip
_WHOLE = {kind: np.iinfo(dtype) for kind, dtype in _TYPES.items()}
"""The ranges of DuckDB's whole numbers; truth values come as 0 and 1, wider ones as labels."""

_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,19}")
"""How DuckDB writes a whole number of at most 64 bits."""

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
        if self.size:
            out[:] = unsigned
            return not column.null_count and int(unsigned.max(initial=0)) < self.size
        if compiled:
            from sidelight.sources.kernels import look_up

            return bool(look_up(unsigned, self.table, out)) and not column.null_count
        codes = self.table[unsigned]
        out[:] = codes
        return not column.null_count and bool((codes >= 0).all())


@dataclass(frozen=True, eq=False)
class Placed(Coder):
    """DuckDB gives doubles, NaN for a missing one, whose code is `absent` (-1: there may be none)."""

    edges: Array
    absent: int

    def write(self, column: pa.Array, out: AnyCodes, compiled: bool) -> bool:
        """Count the edges at or below each number."""
        values = raw(column)
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

    Messages call the source by its `label`; where there is enough work, the loops are `compiled` ones.
    """

    schema: Schema
    types: dict[str, str]
    label: str
    compiled: bool

    @cached_property
    def coders(self) -> list[Coder]:
        """One for each attribute."""
        return [_coder(attribute, self.types[attribute.name]) for attribute in self.schema]

    @property
    def select(self) -> str:
        """What to ask DuckDB for."""
        return ", ".join(coder.select for coder in self.coders)

    @property
    def is_plain(self) -> bool:
        """Whether nothing is asked for but the columns as they are, all rows of them."""
        complete = all(attribute.missing != "drop" for attribute in self.schema)
        return complete and self.select == ", ".join(quoted(name) for name in self.schema.names)

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


def raw(column: pa.Array) -> NDArray[Any]:
    """Return the numbers of a column without copying; where one is missing, any number stands."""
    dtype = column.type.to_pandas_dtype()
    if not len(column):
        return np.empty(0, dtype)
    numbers = np.frombuffer(column.buffers()[1], dtype)
    return numbers[column.offset : column.offset + len(column)]


def _coder(attribute: Attribute, kind: str) -> Coder:
    if attribute.is_binned:
        absent = attribute.size - 1 if attribute.missing == "value" else -1
        select = f"coalesce({number(attribute.name, kind)}, 'NaN'::DOUBLE)"
        return Placed(select, np.asarray(attribute.edges, dtype=np.float64), absent)
    looked_up = _looked_up(attribute, kind) if kind in _WHOLE else None
    return looked_up or Labelled(label_code(attribute, kind))


def _whole_numbers(attribute: Attribute, kind: str) -> dict[int, int]:
    """Return the code of every number of the type that a label stands for, as DuckDB writes numbers."""
    if kind == "BOOLEAN":
        truths = {"false": 0, "true": 1}
        return {truths[label]: code for label, code in attribute.raw_labels.items() if label in truths}
    least, most = _WHOLE[kind].min, _WHOLE[kind].max
    codes = {int(label): code for label, code in attribute.raw_labels.items() if _NUMBER.fullmatch(label)}
    return {value: code for value, code in codes.items() if least <= value <= most}


def _looked_up(attribute: Attribute, kind: str) -> Coder | None:
    """Take a column of 8 or 16 bits as it is, else the distance from the least number where that is narrow.

    Of distances, the two after the last mean missing and other.
    """
    numbers, has_missing = _whole_numbers(attribute, kind), attribute.missing == "value"
    least, most = min(numbers, default=0), max(numbers, default=0)
    # A column as it is has no number to spare for what is missing.
    span, is_narrow = most - least, _WHOLE[kind].bits <= 16 and not has_missing
    if span >= _WIDEST - 2 and not is_narrow:  # two numbers beyond the span mean missing and other
        return None
    size = 1 << _WHOLE[kind].bits if is_narrow else _WIDEST
    table = np.full(size, attribute.code(OTHER) if attribute.has_other else -1, dtype=np.int32)
    for value, code in numbers.items():  # negative numbers are looked up by their unsigned bits
        table[value % size if is_narrow else value - least] = code
    name = f"{quoted(attribute.name)}::UTINYINT" if kind == "BOOLEAN" else quoted(attribute.name)
    if is_narrow:
        return LookedUp(name, table)
    if has_missing:
        table[span + 1] = attribute.code(MISSING)
    width = "UTINYINT" if span + 2 < 256 else "USMALLINT"
    wide = "HUGEINT" if kind == "UBIGINT" else "BIGINT"
    distance = f"CASE WHEN {name} BETWEEN {least} AND {most} THEN {name}::{wide} - {least}"
    absent = span + 1 if has_missing else "NULL"
    return LookedUp(f"({distance} WHEN {name} IS NULL THEN {absent} ELSE {span + 2} END)::{width}", table)
