"""A small table in HTML, as notebooks show results: everything in it is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from sidelight.foundation.numbers import significant

_MOST_ROWS = 60
_LONGEST = 200
"""A longer text loses its middle."""


def html_table(caption: str, titles: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table with a caption; numbers have four digits, and of very many rows the first are shown.

    >>> html_table("a < b", ["x"], [[0.123456], [None]])[:50]
    '<table><caption>a &lt; b</caption><thead><tr><th>x'
    """
    lines = [_row("td", cells) for cells in rows]
    hidden = len(lines) - _MOST_ROWS
    if hidden > 0:
        lines = [*lines[:_MOST_ROWS], _row("td", [f"and {hidden} more", *[""] * (len(titles) - 1)])]
    head = f"<caption>{escape(caption)}</caption><thead>{_row('th', titles)}</thead>"
    return f"<table>{head}<tbody>{''.join(lines)}</tbody></table>"


def _row(tag: str, cells: Sequence[object]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(_text(cell))}</{tag}>' for cell in cells)}</tr>"


def _text(cell: object) -> str:
    if cell is None:
        return "none"
    text = significant(cell) if isinstance(cell, float) else str(cell)
    half = _LONGEST // 2
    return text if len(text) <= _LONGEST else f"{text[:half]}…{text[-half:]}"


def listed(items: Sequence[object], most: int = 6) -> str:
    """Return the first items in one line, and how many there are beyond them.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    shown = ", ".join(map(str, items[:most]))
    return shown if len(items) <= most else f"{shown} and {len(items) - most} more"
