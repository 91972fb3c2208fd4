"""What whoever publishes a schema must know where it was taken from raw data."""

from __future__ import annotations

from sidelight.schema import Schema

AS_PUBLIC = "Bins and alphabets were taken from the data as if they were public."
_MOST_NAMED = 5


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
