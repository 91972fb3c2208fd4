"""The messages: one schema for the page and the server."""

from __future__ import annotations

from pathlib import Path

from sidelight.studio.typescript import typescript

TYPES = Path(__file__).parents[2] / "studio" / "src" / "messages.ts"


def test_the_pages_types_are_made_from_the_models() -> None:
    assert TYPES.read_text("utf-8") == typescript(), (
        "run python -m sidelight.studio.typescript studio/src/messages.ts"
    )
