"""Who the rows of a table are: a column of names that no report ever holds."""

from __future__ import annotations

from collections import Counter

from sidelight.foundation.errors import InputError, unknown
from sidelight.schema import Schema
from sidelight.sources.sql import quoted, where_complete
from sidelight.sources.table import Table


def identifiers(table: Table, column: str, schema: Schema | None = None) -> list[str]:
    """Return the names of the rows' people from a column, in the table's order; everybody's own.

    Args:
        table: read with this column, which need not have become an attribute.
        column: its name.
        schema: the attributes whose missing values leave records out, where they are not all of the table's.
    """
    source = table.source
    if column not in source.columns:
        raise unknown("column", column, source.columns)
    if not table.engine.keeps_row_numbers:
        raise InputError(f"{source.label}: rows of a Spark DataFrame keep no order; name a file.")
    rest = where_complete(schema or table.schema, source.columns)
    rows = source.reader(f"CAST({quoted(column)} AS VARCHAR) AS person", rest).read_all()
    names = rows.column("person").to_pylist()
    if None in names:
        raise InputError(
            f"{source.label}: row {names.index(None) + 1} has no {column!r}; give everybody one."
        )
    name, often = Counter(names).most_common(1)[0]
    if often > 1:
        raise InputError(
            f"{source.label}: {column!r} is {name!r} in {often} rows; a person reports once in a round."
        )
    return list(names)
