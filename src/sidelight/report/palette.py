"""The colours of a report, light and dark; safe for colour-blind readers (after Okabe and Ito 2008).

Figures and the style sheet name a colour; the page looks it up in the palette of the reader's theme.
"""

from __future__ import annotations

from sidelight.auditing import Outcome

LIGHT = {
    "page": "#f6f7f9",
    "card": "#ffffff",
    "ink": "#1b2733",
    "muted": "#566573",
    "line": "#dce1e7",
    "accent": "#0b5f94",
    "within": "#0b6fa8",
    "within-soft": "#e2f0f9",
    "exceeded": "#b84300",
    "exceeded-soft": "#fdebdf",
    "uncertified": "#75651a",
    "uncertified-soft": "#f7f2d8",
    "neutral": "#8b97a3",
    "own": "#c9ced4",
    "edge": "#2f7fb0",
    "heat-0": "#f4f7fa",
    "heat-1": "#c6dbe9",
    "heat-2": "#7fb2d1",
    "heat-3": "#2f7fb0",
    "heat-4": "#0b3c66",
    "series-1": "#0072b2",
    "series-2": "#d55e00",
    "series-3": "#009e73",
    "series-4": "#b0508c",
    "series-5": "#a87900",
    "series-6": "#2a9fd6",
    "series-7": "#5b4bb0",
    "series-8": "#4d5a66",
}

DARK = {
    "page": "#10161c",
    "card": "#18212a",
    "ink": "#e6ebf0",
    "muted": "#a3b0bc",
    "line": "#2f3b47",
    "accent": "#6fbdf0",
    "within": "#5db7ee",
    "within-soft": "#123247",
    "exceeded": "#ff9a5c",
    "exceeded-soft": "#46260f",
    "uncertified": "#e0cb62",
    "uncertified-soft": "#3a3412",
    "neutral": "#7f8c99",
    "own": "#4a5663",
    "edge": "#6fb4de",
    "heat-0": "#1b2630",
    "heat-1": "#1f4a68",
    "heat-2": "#2f7fb0",
    "heat-3": "#7fc0e6",
    "heat-4": "#e3f4ff",
    "series-1": "#56b4e9",
    "series-2": "#ff9a5c",
    "series-3": "#2fd0a2",
    "series-4": "#e79ac6",
    "series-5": "#e6c229",
    "series-6": "#9ad4f5",
    "series-7": "#b3a5ff",
    "series-8": "#c3ccd4",
}

HEAT = [[step / 4, f"@heat-{step}"] for step in range(5)]
SERIES = tuple(f"series-{number}" for number in range(1, 9))
VERDICTS: dict[Outcome, str] = {"exceeded": "exceeded", "not certified": "uncertified", "within": "within"}
"""The colour of every verdict, worst first."""
