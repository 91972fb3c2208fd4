"""What a reader must know of how a table was read, where its schema is published with a result."""

from __future__ import annotations

from sidelight.report.wording import counted
from sidelight.schema import Schema
from sidelight.sources import Table

AS_PUBLIC = "Bins and alphabets were taken from the data as if they were public."
_MOST_NAMED = 5


def reading_notes(table: Table) -> list[str]:
    """Say which columns were set aside, and how many records were left out."""
    found = [f"Column {item.column!r} {item.reason}; set aside." for item in table.set_aside]
    if table.dropped:
        found.append(f"Left out: {counted(table.dropped, 'record')} with a missing value.")
    return found


def publishing_notes(schema: Schema, holder: str) -> list[str]:
    """Say that a file holds what was taken from raw data: bins whose edges are people's own values.

    Args:
        schema: the attributes that were inferred from the data.
        holder: the file in words, as "every report file".
    """
    binned = [attribute.name for attribute in schema if attribute.edges]
    if not binned:
        return [f"{AS_PUBLIC} They are in {holder}."]
    shown = ", ".join(binned[:_MOST_NAMED]) + (", ..." if len(binned) > _MOST_NAMED else "")
    return [
        f"{AS_PUBLIC} They are in {holder}: the edges of the bins of {shown} are exact values of some "
        "people. Collect by a plan or protocol file with edges of your own to avoid it."
    ]
