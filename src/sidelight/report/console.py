"""Tables on a terminal: texts as they are, so that nothing in them is taken for markup or obeyed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from sidelight.foundation.terminal import ClosedPipeError, printable

_WIDTH = 160


class _Console(Console):
    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)

    def on_broken_pipe(self) -> None:
        raise ClosedPipeError


def open_console(width: int = _WIDTH) -> Console:
    """Return what prints tables: as wide as the terminal, or `width` where the output is no terminal."""
    plain: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}
    return _Console(**plain, width=None if Console().is_terminal else width)


def table_of(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Iterable[RenderableType]] = (),
    *,
    left: Collection[str] = (),
) -> Grid:
    """Return a table; the columns named in `left` hold words and start on the left, the others numbers."""
    grid = Grid(title=title, title_justify="left")
    for name in columns:
        grid.add_column(name, justify="left" if name in left else "right", overflow="fold")
    for row in rows:
        grid.add_row(*row)
    return grid


def print_plain(columns: Sequence[str], rows: Iterable[Iterable[RenderableType]]) -> None:
    """Print columns of words without lines between them."""
    grid = Grid(box=None, pad_edge=False)
    for name in columns:
        grid.add_column(name, overflow="fold")
    for row in rows:
        grid.add_row(*row)
    open_console().print(grid)


def print_notes(console: Console, notes: Iterable[str], *, wrap: bool = True) -> None:
    """Print what a reader must know, a line each; without `wrap` a long line is left to the terminal."""
    for note in notes:
        console.print(f"- {note}", soft_wrap=not wrap)
