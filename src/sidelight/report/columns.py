"""What the columns of a table are taken for, and what whoever publishes that must know."""

from __future__ import annotations

from sidelight.report.console import open_console, print_notes, table_of
from sidelight.schema import Attribute, Schema
from sidelight.sources import Table

AS_PUBLIC = "Bins and alphabets were taken from the data as if they were public."
_MOST_NAMED = 5


def publishing_notes(schema: Schema, holder: str) -> list[str]:
    """Say that a file (`holder`, in words) holds what was inferred from raw data: edges that are people's."""
    binned = [attribute.name for attribute in schema if attribute.edges]
    if not binned:
        return [f"{AS_PUBLIC} They are in {holder}."]
    shown = ", ".join(binned[:_MOST_NAMED]) + (", ..." if len(binned) > _MOST_NAMED else "")
    return [
        f"{AS_PUBLIC} They are in {holder}: the edges of the bins of {shown} are exact values of some "
        "people. Collect by a plan or protocol file with edges of your own to avoid it."
    ]


_SHOWN = 3


def print_schema(table: Table) -> None:
    """Print every column's kind and values, those that are no attributes at the end, and what to know."""
    console = open_console()
    columns = ("column", "kind", "values", "which")
    grid = table_of(f"Columns of {table.source.label}", columns, left=("column", "kind", "which"))
    guessed = {item.column for item in table.guesses}
    for attribute in table.schema:
        kind = attribute.kind + (" (a guess)" if attribute.name in guessed else "")
        grid.add_row(attribute.name, kind, str(attribute.size), _values(attribute))
    for item in table.set_aside:
        guess = " (a guess)" if item.remedy else ""
        grid.add_row(item.column, item.kind + guess, "", item.reason)
    console.print(grid)
    print_notes(console, table.notes())


def _values(attribute: Attribute) -> str:
    """Return the first values and the last one."""
    values = attribute.values
    if len(values) <= _SHOWN + 1:
        return "; ".join(values)
    return "; ".join(values[:_SHOWN]) + f"; ...; {values[-1]}"
