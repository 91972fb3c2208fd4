"""The SQL that every column is read by: DuckDB's own, here and on the workers of a cluster."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sidelight.schema import MISSING, OTHER, Attribute, Schema

_TEMPORAL = ("DATE", "TIME")
_DECIMAL = re.compile(r"-?\d+\.\d+")


def quoted(name: str) -> str:
    """Quote a column name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Quote a string for SQL."""
    return "'" + text.replace("'", "''") + "'"


def is_temporal(kind: str) -> bool:
    """Whether a column of this type holds dates or times."""
    return kind.startswith(_TEMPORAL)


def present(column: str, kind: str) -> str:
    """Return SQL for the column with NaN as missing; 0.50 is 0.5, as in a text file."""
    name = quoted(column)
    if kind == "DECIMAL":
        return f"{name}::DOUBLE"
    if kind not in ("FLOAT", "DOUBLE"):
        return name
    return f"(CASE WHEN {_is_number(name)} THEN {name} + 0 END)"  # + 0 makes one value of 0.0 and -0.0


def _is_number(name: str) -> str:
    """Return SQL for not NaN; DuckDB takes isnan for false by a Parquet file's bounds, which omit NaN."""
    return f"(isfinite({name}) OR isinf({name}))"


def number(column: str, kind: str) -> str:
    """Return SQL for the column as a double; dates and times, text among them, count seconds since 1970.

    A number of 32 bits is the shortest decimal that means it, as in a text file: 0.1, not 0.10000000149.
    """
    value = present(column, kind)
    if kind == "FLOAT":
        return f"{value}::VARCHAR::DOUBLE"
    if kind == "TIMESTAMPTZ_NS":  # the one kind of time of which DuckDB's epoch knows nothing
        value = f"{value}::TIMESTAMPTZ"
    if kind == "VARCHAR":
        return f"epoch({value}::TIMESTAMP)::DOUBLE"
    return f"epoch({value})::DOUBLE" if is_temporal(kind) else f"{value}::DOUBLE"


def label_code(attribute: Attribute, kind: str) -> str:
    """Return SQL for the code of an attribute's label.

    A value outside the alphabet and a missing value that is none of its values become NULL.
    """
    value = present(attribute.name, kind)
    labels = _shortest(attribute.values) if kind == "DECIMAL" else attribute.values
    alphabet = ", ".join(map(literal, labels))
    label = f"{value}::VARCHAR"
    code = f"TRY_CAST({label} AS ENUM({alphabet}))"
    if attribute.has_other:
        code = f"coalesce({code}, {literal(OTHER)}::ENUM({alphabet}))"
    absent = f"{literal(MISSING)}::ENUM({alphabet})" if attribute.missing == "value" else "NULL"
    return f"enum_code(CASE WHEN {value} IS NULL THEN {absent} ELSE {code} END)"


def _shortest(labels: Sequence[str]) -> Sequence[str]:
    """Return labels with 0.50 as 0.5, which is how a decimal is labelled; old plans have 0.50."""
    shortest = [repr(float(label)) if _DECIMAL.fullmatch(label) else label for label in labels]
    return shortest if len(set(shortest)) == len(shortest) else labels


def where_complete(schema: Schema, types: dict[str, str]) -> str:
    """Return the SQL condition that drops records with a missing value where an attribute asks for it."""
    tests = []
    for item in schema:
        if item.missing == "drop":
            kind, name = types[item.name], quoted(item.name)
            tests.append(f"{number(item.name, kind) if item.is_binned else name} IS NOT NULL")
            tests += [_is_number(name)] if kind in ("FLOAT", "DOUBLE") and not item.is_binned else []
    return "WHERE " + " AND ".join(tests) if tests else ""
