"""Tables on a terminal: texts as they are, so that nothing in them is taken for markup or obeyed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from sidelight.foundation.terminal import ClosedPipeError, printable

if TYPE_CHECKING:
    from sidelight.schema import Attribute
    from sidelight.sources import Table

_WIDTH = 160
_SHOWN = 3


class _Console(Console):
    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)

    def on_broken_pipe(self) -> None:
        raise ClosedPipeError


def table_of(
    title: str, columns: Sequence[str], rows: Iterable[Iterable[RenderableType]] = (), *,
    left: Collection[str] = (),
) -> Grid:  # fmt: skip
    """Return a table; the columns named in `left` hold words and start on the left, the others numbers."""
    grid = Grid(title=title, title_justify="left")
    for name in columns:
        grid.add_column(name, justify="left" if name in left else "right", overflow="fold")
    for row in rows:
        grid.add_row(*row)
    return grid


def print_plain(columns: Sequence[str], rows: Iterable[Iterable[RenderableType]]) -> None:
    """Print columns of words without lines between them."""
    grid = table_of("", columns, rows, left=columns)
    grid.box, grid.pad_edge = None, False
    print_parts([grid])


def print_parts(
    parts: Iterable[RenderableType], notes: Iterable[str] = (), *, width: int = _WIDTH, wrap: bool = True
) -> None:
    """Print tables and lines, and then what a reader must know; without `wrap` the terminal folds notes.

    The console is as wide as the terminal, or has `width` where the output is no terminal.
    """
    plain: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}
    console = _Console(**plain, width=None if Console().is_terminal else width)
    for part in parts:
        console.print(part)
    for note in notes:
        console.print(f"- {note}", soft_wrap=not wrap)


def print_schema(table: Table) -> None:
    """Print every column's kind and values, those that are no attributes at the end, and what to know."""
    columns = ("column", "kind", "values", "which")
    grid = table_of(f"Columns of {table.source.label}", columns, left=("column", "kind", "which"))
    guessed = {item.column for item in table.guesses}
    for attribute in table.schema:
        kind = attribute.kind + (" (a guess)" if attribute.name in guessed else "")
        grid.add_row(attribute.name, kind, str(attribute.size), _values(attribute))
    for item in table.set_aside:
        guess = " (a guess)" if item.remedy else ""
        grid.add_row(item.column, item.kind + guess, "", item.reason)
    print_parts([grid], table.notes())


def _values(attribute: Attribute) -> str:
    """Return the first values and the last one."""
    values = attribute.values
    if len(values) <= _SHOWN + 1:
        return "; ".join(values)
    return "; ".join(values[:_SHOWN]) + f"; ...; {values[-1]}"
