"""What all figures share: fonts, axes, hover boxes."""

from __future__ import annotations

import math
from typing import Any

Trace = dict[str, Any]

CLEAR = "rgba(0,0,0,0)"
_FONT = "system-ui, sans-serif"


def layout(**changes: Any) -> dict[str, Any]:
    """Return the layout all figures share, with changes."""
    common: dict[str, Any] = {
        "font": {"family": _FONT, "size": 12, "color": "@ink"},
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "showlegend": False,
        "modebar": {"bgcolor": CLEAR, "color": "@muted", "activecolor": "@ink"},
        "dragmode": False,
        "hovermode": "closest",
        "hoverlabel": {
            "align": "left",
            "bgcolor": "@card",
            "bordercolor": "@muted",
            "font": {"family": _FONT, "color": "@ink", "size": 12},
        },
    }
    return common | changes


def axis(title: str, **changes: Any) -> dict[str, Any]:
    """Return an axis in the common style, with changes."""
    common: dict[str, Any] = {
        "title": {"text": title, "standoff": 8},
        "automargin": True,
        "gridcolor": "@line",
        "linecolor": "@line",
        "zeroline": False,
        "fixedrange": True,
        "ticklabelstandoff": 4,
    }
    return common | changes


def finite(value: float) -> float | None:
    """Return the value, or a gap for infinity, which JSON does not know.

    >>> finite(1.5), finite(math.inf)
    (1.5, None)
    """
    return value if math.isfinite(value) else None
