"""Which bins a column of numbers, dates or times is cut into.

Numbers get bins that are equally full or equally wide; dates get the calendar's where few of its units span
them, else equally full and rounded ones.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

from sidelight.foundation import calendar
from sidelight.foundation.calendar import UNITS, Unit, moment_of, seconds_of
from sidelight.schema import LARGEST_ALPHABET
from sidelight.sources.source import Summary

Ends = tuple[float, float]
MOST_EDGES = LARGEST_ALPHABET - 2
"""An attribute has one bin more than edges, and perhaps a value for what is missing."""
_MORE = 2
"""How many bins more than requested a calendar unit may give: twelve months instead of ten bins."""


def width_edges(ends: Ends, bins: int) -> tuple[float, ...] | None:
    """Return the inner edges of equally wide bins; None where doubles are too coarse for that many."""
    low, high = ends
    # Dividing first: the difference of the two ends may be too large for a double.
    edges = tuple(low + (high / bins - low / bins) * i for i in range(1, bins))
    return None if any(a >= b for a, b in pairwise((low, *edges, high))) else edges


def quantile_edges(summary: Summary, low: float) -> tuple[float, ...]:
    """Return the edges of equally full bins, with a bin of its own for every value that fills one.

    A plain quantile rule would put such a value into one bin with its neighbours and so erase what it
    leaks: nine in ten records of a census table have a capital gain of 0.
    """
    edges = {*summary.cuts, *summary.masses}
    for mass, following in summary.following.items():
        if following is not None and following not in edges:
            edges.add(math.nextafter(mass, math.inf))
    return tuple(sorted(edges - {float(low)}))


def date_edges(
    ends: Ends,
    cuts: Sequence[float],
    bins: int,
    following: Mapping[float, float | None] = MappingProxyType({}),
) -> tuple[float, ...]:
    """Return the inner edges for dates or times between two ends; `cuts` make bins of equal weight or width.

    Dates that fill a bin of their own are given each with the one that follows it.
    """
    by_calendar = _fitting_calendar(ends, sorted({*cuts, *following}), bins)
    if by_calendar is not None:
        return by_calendar
    edges = {*_rounded(ends[0], sorted(set(cuts)))}
    for mass, after in following.items():
        edges |= {mass} if after is None else {mass, _end_of(mass, after)}
    moments = filter(None, map(moment_of, edges))  # in whole microseconds, and none outside the calendar
    return tuple(sorted(edge for edge in map(seconds_of, moments) if edge > ends[0]))


def _fitting_calendar(ends: Ends, values: Sequence[float], bins: int) -> tuple[float, ...] | None:
    """Return the starts of the shortest unit of which few enough span the dates, if it tells many apart.

    A few dates far off do not count if the others are spanned so; the outer bins take them in.
    """
    for span in (ends, (values[0], values[-1])) if values else ():
        for unit in reversed(UNITS):
            starts = _starts(ends, span, unit, bins + _MORE - 1)
            # A unit that leaves most cuts in one bin would hide what equally full bins tell apart.
            if starts and 3 * len({bisect_right(starts, value) for value in values}) > len(values):
                return starts
    return None


def _starts(ends: Ends, span: Ends, unit: Unit, most: int) -> tuple[float, ...] | None:
    """Return the starts of the units that a span touches, as far as they part the dates between the ends."""
    inside = calendar.starts_between(*span, unit, most)
    if inside is None:
        return None
    last = moment_of(span[1])
    end = span[1] if last is None else seconds_of(calendar.next_start(last, unit))
    starts = sorted({*inside, _start_of(span[0], unit), end})
    return tuple(start for start in starts if ends[0] < start <= ends[1])


def _rounded(low: float, cuts: Sequence[float]) -> list[float]:
    """Return each cut at the start of its unit: the longest that is at most half the shortest gap."""
    gap = min((b - a for a, b in pairwise([low, *cuts]) if b > a), default=0.0)
    unit = next((unit for unit in UNITS if 2 * calendar.length(unit) <= gap), None)  # then no two cuts meet
    return [cut if unit is None else _start_of(cut, unit) for cut in cuts]


def _start_of(seconds: float, unit: Unit) -> float:
    moment = moment_of(seconds)
    return seconds if moment is None else seconds_of(calendar.floor_to(moment, unit))


def _end_of(mass: float, following: float) -> float:
    """Return where the bin of one value ends: with its day, hour, ... if it is the start of one."""
    moment = moment_of(mass)
    if moment is None:
        return following
    for unit in UNITS[UNITS.index("day") :]:
        end = seconds_of(calendar.next_start(moment, unit))
        if calendar.floor_to(moment, unit) == moment and end <= following:
            return end
    return following
