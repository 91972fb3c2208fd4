"""What all figures share: colours, fonts, axes, hover boxes.

The colours are safe for colour-blind readers (after Okabe and Ito 2008). Figures and the style sheet name a
colour; the page looks it up in the palette of the reader's theme.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # every page and table loads this module; the audits' code is loaded by those that need it
    from sidelight.auditing import Outcome

_COLOURS = {
    "page": ("#f6f7f9", "#10161c"),
    "card": ("#ffffff", "#18212a"),
    "ink": ("#1b2733", "#e6ebf0"),
    "muted": ("#566573", "#a3b0bc"),
    "line": ("#dce1e7", "#2f3b47"),
    "accent": ("#0b5f94", "#6fbdf0"),
    "within": ("#0b6fa8", "#5db7ee"),
    "within-soft": ("#e2f0f9", "#123247"),
    "exceeded": ("#b84300", "#ff9a5c"),
    "exceeded-soft": ("#fdebdf", "#46260f"),
    "uncertified": ("#75651a", "#e0cb62"),
    "uncertified-soft": ("#f7f2d8", "#3a3412"),
    "described": ("#4d5a66", "#c3ccd4"),
    "described-soft": ("#e9edf1", "#26313b"),
    "neutral": ("#8b97a3", "#7f8c99"),
    "own": ("#c9ced4", "#4a5663"),
    "edge": ("#2f7fb0", "#6fb4de"),
    "heat-0": ("#f4f7fa", "#1b2630"),
    "heat-1": ("#c6dbe9", "#1f4a68"),
    "heat-2": ("#7fb2d1", "#2f7fb0"),
    "heat-3": ("#2f7fb0", "#7fc0e6"),
    "heat-4": ("#0b3c66", "#e3f4ff"),
    "series-1": ("#0072b2", "#56b4e9"),
    "series-2": ("#d55e00", "#ff9a5c"),
    "series-3": ("#009e73", "#2fd0a2"),
    "series-4": ("#b0508c", "#e79ac6"),
    "series-5": ("#a87900", "#e6c229"),
    "series-6": ("#2a9fd6", "#9ad4f5"),
    "series-7": ("#5b4bb0", "#b3a5ff"),
    "series-8": ("#4d5a66", "#c3ccd4"),
}
LIGHT = {name: light for name, (light, _) in _COLOURS.items()}
DARK = {name: dark for name, (_, dark) in _COLOURS.items()}
HEAT = [[step / 4, f"@heat-{step}"] for step in range(5)]
SERIES = tuple(f"series-{number}" for number in range(1, 9))
VERDICTS: dict[Outcome, str] = {
    "exceeded": "exceeded", "not certified": "uncertified", "described": "described", "within": "within",
}  # fmt: skip
"""The colour of every verdict, worst first; what has no limit is described, not judged."""
MARKS: dict[Outcome, str] = {"exceeded": "✕", "not certified": "?", "described": "•", "within": "✓"}

Trace = dict[str, Any]

LEAST_SPAN = 0.01
"""No axis of leakages is shorter, in nats: figures that differ by a rounding error look alike."""
LEGEND = {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"}
CLEAR = "rgba(0,0,0,0)"
_FONT = "system-ui, sans-serif"
_BEYOND = 1.05  # a mark at the very end of an axis would be cut in half


def places(texts: Sequence[str]) -> Trace:
    """Return the part of an axis that writes a text at each of the places 0, 1, 2 and so on."""
    return {"tickmode": "array", "tickvals": list(range(len(texts))), "ticktext": texts}


def layout(**changes: Any) -> dict[str, Any]:
    """Return the layout all figures share, with changes."""
    font = {"family": _FONT, "size": 12, "color": "@ink"}
    common: dict[str, Any] = {
        "font": font, "paper_bgcolor": CLEAR, "plot_bgcolor": CLEAR,
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8}, "showlegend": False,
        "modebar": {"bgcolor": CLEAR, "color": "@muted", "activecolor": "@ink"},
        "dragmode": False, "hovermode": "closest",
        "hoverlabel": {"align": "left", "bgcolor": "@card", "bordercolor": "@muted", "font": font},
    }  # fmt: skip
    return common | changes


def axis(title: str, **changes: Any) -> dict[str, Any]:
    """Return an axis in the common style, with changes."""
    common: dict[str, Any] = {
        "title": {"text": title, "standoff": 8}, "automargin": True, "gridcolor": "@line",
        "linecolor": "@line", "zeroline": False, "fixedrange": True, "ticklabelstandoff": 4,
    }  # fmt: skip
    return common | changes


def scatter(
    mode: str, x: Sequence[Any], y: Sequence[Any], *, hovers: Sequence[str] | None = None, **changes: Any
) -> Trace:
    """Return points or lines, or both, with a hover text each if there are any: a trace of plotly's."""
    texts = {} if hovers is None else {"hoverinfo": "text", "hovertext": hovers}
    return {"type": "scatter", "mode": mode, "x": x, "y": y, **changes, **texts}


def whiskers(middles: Sequence[float], ends: Iterable[tuple[float, float]], **look: Any) -> Trace:
    """Return the intervals around figures as the error bars of a trace."""
    placed = list(zip(middles, ends, strict=True))
    above = [max(high - middle, 0.0) for middle, (_, high) in placed]
    below = [max(middle - low, 0.0) for middle, (low, _) in placed]
    return {"type": "data", "symmetric": False, "array": above, "arrayminus": below, **look}


def from_zero(values: Iterable[float]) -> list[float]:
    """Return the range of an axis of leakages: from 0 to a little beyond the largest finite value.

    >>> from_zero([0.5, 1.0, math.inf]), from_zero([1e-12])
    ([0.0, 1.05], [0.0, 0.0105])
    """
    largest = max((value for value in values if math.isfinite(value)), default=0.0)
    return [0.0, _BEYOND * max(largest, LEAST_SPAN)]


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
        # too many round numbers: powers of ten alone, every n-th, with the least n that keeps to the limit
        every = next(n for n in range(1, high - low + 2) if (high - low) // n + 1 <= most)
        ticks = [float(f"1e{power}") for power in range(low, high + 1, every)]
    ends = [math.log10(min(first, ticks[0])), math.log10(max(last, ticks[-1]))]
    texts = [f"{tick:,.0f}" if 1 <= tick < 1e6 else f"{tick:g}" for tick in ticks]
    return {"type": "log", "range": ends, "tickvals": ticks, "ticktext": texts}


def finite(value: float) -> float | None:
    """Return the value, or a gap for infinity, which JSON does not know.

    >>> finite(1.5), finite(math.inf)
    (1.5, None)
    """
    return value if math.isfinite(value) else None
