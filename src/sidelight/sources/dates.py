"""Which bins fit dates and times: the calendar's where few span them, else equally full and rounded ones."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise

from sidelight.foundation.calendar import (
    UNITS,
    Unit,
    floor_to,
    length,
    moment_of,
    next_start,
    seconds_of,
    starts_between,
)

ISO = r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?Z?)?"
"""Text that is taken for a date; an engine must be able to read it as one besides."""

_MORE = 2
"""A calendar may give so many bins more than were asked for: twelve months instead of ten bins."""
_CLOCK_NAMES = re.compile(r"(unix|epoch|timestamp|time|ts)(_?s(ec(ond)?s?)?)?$|_at$|^(unix|epoch)")
_EARLIEST, _LATEST = 315_532_800, 4_102_444_800


def are_dates(labels: Iterable[str]) -> bool:
    """Whether all labels look like dates in ISO form."""
    return all(re.fullmatch(ISO, label) for label in labels)


def tells_time(name: str) -> bool:
    """Whether a column is called as one of moments is.

    >>> [tells_time(name) for name in ("unix_time", "Timestamp", "created_at", "lifetime_value")]
    [True, True, True, False]
    """
    return _CLOCK_NAMES.search(name.lower()) is not None


def are_moments(low: float, high: float) -> bool:
    """Whether numbers can be seconds since 1970, by their range: the years 1980 to 2100."""
    return low >= _EARLIEST and high <= _LATEST


def date_edges(
    ends: tuple[float, float], cuts: Sequence[float], masses: Sequence[tuple[float, float | None]], bins: int
) -> tuple[float, ...]:
    """Return the inner edges for dates or times.

    Args:
        ends: the first and the last.
        cuts: what cuts them into bins of equal weight or width.
        masses: those that fill a bin of their own, each with the one that follows it.
        bins: how many bins are wanted.
    """
    values = sorted({*cuts, *(mass for mass, _ in masses)})
    by_calendar = _fitting_calendar(ends, values, bins)
    if by_calendar is not None:
        return by_calendar
    edges = {*_rounded(ends[0], sorted(set(cuts)))}
    for mass, following in masses:
        edges |= {mass} if following is None else {mass, _end_of(mass, following)}
    return tuple(sorted(edge for edge in map(_whole, edges) if edge is not None and edge > ends[0]))


def _fitting_calendar(
    ends: tuple[float, float], values: Sequence[float], bins: int
) -> tuple[float, ...] | None:
    """Return the starts of the shortest unit of which few enough span the dates, if it tells many apart.

    A few dates far off do not count if the others are spanned so; the outer bins take them in.
    """
    for span in (ends, (values[0], values[-1])) if values else ():
        for unit in reversed(UNITS):
            starts = _starts(ends, span, unit, bins + _MORE - 1)
            if starts and 3 * len({bisect_right(starts, value) for value in values}) > len(values):
                return starts
    return None


def _starts(
    ends: tuple[float, float], span: tuple[float, float], unit: Unit, most: int
) -> tuple[float, ...] | None:
    """Return the starts of the units that a span touches, as far as they part the dates between the ends."""
    inside = starts_between(*span, unit, most)
    if inside is None:
        return None
    last = moment_of(span[1])
    outer = (_start_of(span[0], unit), span[1] if last is None else seconds_of(next_start(last, unit)))
    starts = sorted({*inside, *outer})
    return tuple(start for start in starts if ends[0] < start <= ends[1])


def _rounded(low: float, cuts: Sequence[float]) -> list[float]:
    """Return each cut at the start of its unit: the longest that is at most half the shortest gap."""
    gap = min((b - a for a, b in pairwise([low, *cuts]) if b > a), default=0.0)
    unit = next((unit for unit in UNITS if 2 * length(unit) <= gap), None)
    return [cut if unit is None else _start_of(cut, unit) for cut in cuts]


def _start_of(seconds: float, unit: Unit) -> float:
    moment = moment_of(seconds)
    return seconds if moment is None else seconds_of(floor_to(moment, unit))


def _end_of(mass: float, following: float) -> float:
    """Return where the bin of one value ends: with its day, hour, ... if it is the start of one."""
    moment = moment_of(mass)
    if moment is None:
        return following
    for unit in UNITS[UNITS.index("day") :]:
        end = seconds_of(next_start(moment, unit))
        if floor_to(moment, unit) == moment and end <= following:
            return end
    return following


def _whole(seconds: float) -> float | None:
    """Return a number in whole microseconds; None where no calendar has it."""
    moment = moment_of(seconds)
    return None if moment is None else seconds_of(moment)
