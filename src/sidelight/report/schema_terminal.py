"""What the columns of a table are taken for, as a table for a terminal."""

from __future__ import annotations

from rich.table import Table as Grid

from sidelight.report.console import open_console
from sidelight.schema import Attribute
from sidelight.sources import Table

_SHOWN = 3


def print_schema(table: Table) -> None:
    """Print every column's kind and values, those that are no attributes at the end, and what to know."""
    console = open_console()
    grid = Grid(title=f"Columns of {table.source.label}", title_justify="left")
    for title in ("column", "kind", "values", "which"):
        grid.add_column(title, justify="right" if title == "values" else "left", overflow="fold")
    guessed = {item.column for item in table.guesses}
    for attribute in table.schema:
        kind = attribute.kind + (" (a guess)" if attribute.name in guessed else "")
        grid.add_row(attribute.name, kind, str(attribute.size), _values(attribute))
    for item in table.set_aside:
        guess = " (a guess)" if item.remedy else ""
        grid.add_row(item.column, item.kind + guess, "", item.reason)
    console.print(grid)
    for note in table.notes():
        console.print(f"- {note}")


def _values(attribute: Attribute) -> str:
    """Return the first values and the last one."""
    values = attribute.values
    if len(values) <= _SHOWN + 1:
        return "; ".join(values)
    return "; ".join(values[:_SHOWN]) + f"; ...; {values[-1]}"
