"""What all figures share: fonts, axes, hover boxes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

Trace = dict[str, Any]

LEAST_SPAN = 0.01
"""No axis of leakages is shorter, in nats: figures that differ by a rounding error look alike."""
CLEAR = "rgba(0,0,0,0)"
_FONT = "system-ui, sans-serif"
_BEYOND = 1.05


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


def from_zero(values: Iterable[float]) -> list[float]:
    """Return the range of an axis of leakages: from 0 to a little beyond the largest finite value.

    >>> from_zero([0.5, 1.0, math.inf]), from_zero([1e-12])
    ([0.0, 1.05], [0.0, 0.0105])
    """
    largest = max((value for value in values if math.isfinite(value)), default=0.0)
    return [0.0, 1.05 * max(largest, LEAST_SPAN)]


def log_ticks(values: Sequence[float], most: int) -> Trace:
    """Return a logarithmic axis between two round numbers, with at most so many of them written out.

    >>> log_ticks([0.03, 0.4], 9)["ticktext"], log_ticks([0.03, 4000], 4)["ticktext"]
    (['0.02', '0.05', '0.1', '0.2', '0.5'], ['0.01', '1', '100', '10,000'])
    >>> log_ticks([0.9999999992, 1.0], 9)["ticktext"]
    ['0.5', '1', '2']
    """
    positive = [value for value in values if 0 < value < math.inf] or [1.0]
    least, largest = min(positive) / _BEYOND, max(positive) * _BEYOND
    low, high = math.floor(math.log10(least)), math.ceil(math.log10(largest))
    steps = [float(f"{step}e{power}") for power in range(low, high + 1) for step in (1, 2, 5)]
    first = max(step for step in steps if step <= least)
    last = min(step for step in steps if step >= largest)
    ticks = [step for step in steps if first <= step <= last]
    if len(ticks) > most:
        every = next(n for n in range(1, high - low + 2) if (high - low) // n + 1 <= most)
        ticks = [float(f"1e{power}") for power in range(low, high + 1, every)]
    ends = min(first, ticks[0]), max(last, ticks[-1])
    return {
        "type": "log",
        "range": [math.log10(end) for end in ends],
        "tickvals": ticks,
        "ticktext": [_plain(tick) for tick in ticks],
    }


def _plain(tick: float) -> str:
    return f"{tick:,.0f}" if 1 <= tick < 1e6 else f"{tick:g}"


def finite(value: float) -> float | None:
    """Return the value, or a gap for infinity, which JSON does not know.

    >>> finite(1.5), finite(math.inf)
    (1.5, None)
    """
    return value if math.isfinite(value) else None
