"""Tables on a terminal: texts as they are, so that nothing in them is taken for markup or obeyed."""

from __future__ import annotations

from typing import Any

from rich.console import Console
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
